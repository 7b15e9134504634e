// The time saved vs. synchronous as text: a lower bound, and an estimate with forecasts.
import type { Totals } from "./contract";
import { duration, percent } from "./format";

function share(saved: number, t: Totals): string {
  const all = t.waited_s + saved;
  return all > 0 ? `${percent(saved / all)} of ${duration(all)}` : "";
}

// For the numbers on top. The lower bound comes first, because forecasts of workers that the policy drops can be outdated.
export function saved_figure(t: Totals): { value: string; about: string } {
  if (t.saved_exact) return { value: duration(t.saved_s), about: share(t.saved_s, t) };
  const value = `≥ ${duration(t.saved_s)}`;
  if (t.saved_about_s === null) return { value, about: `at least ${share(t.saved_s, t)}` };
  return { value, about: `about ${duration(t.saved_about_s)} (forecast), ${share(t.saved_about_s, t)}` };
}

export function saved_words(t: Totals): string {
  const at_least = t.saved_exact ? "" : "at least ";
  const words = `The steps took ${duration(t.waited_s)}. Synchronous steps would have taken ${at_least}${duration(t.wait_all_s)}: ${at_least}${duration(t.saved_s)} more.`;
  if (t.saved_exact) return words;
  const why = "Some gradients never arrived, so only a lower bound of their run-times is known.";
  if (t.saved_about_s === null) return `${words} ${why}`;
  return `${words} ${why} By the forecasts of the last gradients, they would have taken about ${duration(t.waited_s + t.saved_about_s)}: about ${duration(t.saved_about_s)} more (forecast).`;
}
