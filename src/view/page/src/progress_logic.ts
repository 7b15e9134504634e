// The progress of a run as text. The number of steps is unknown if the workers' scripts determine it.
import type { Progress } from "./contract";
import { clock, count, number, percent, plural } from "./format";

export interface HowFar {
  share: number | null; // share of the steps done; null: unknown
  where: string;
  left: string;
  title: string; // short text for the title of a running run
}

export function is_going(progress: Progress): boolean {
  return progress.state === "running" || progress.state === "waiting";
}

// "4 of 100 steps", or "4 steps".
export function steps_done(progress: Progress): string {
  return progress.steps === null
    ? plural(progress.step, "step")
    : `${count(progress.step)} of ${plural(progress.steps, "step")}`;
}

export function how_far(progress: Progress): HowFar {
  const { step, steps, left_s, elapsed_s } = progress;
  const share = steps === null ? null : steps > 0 ? Math.min(1, step / steps) : 0;
  const pace = progress.steps_per_s === null || step === 0 ? "" : `${number(progress.steps_per_s)} steps/s  ·  `;
  const elapsed = `${clock(elapsed_s)} elapsed`;
  return {
    share,
    where: steps === null ? steps_done(progress) : `step ${count(step)} of ${count(steps)}`,
    left: !is_going(progress)
      ? `${clock(elapsed_s)} total`
      : left_s !== null
        ? `${pace}${clock(left_s)} left`
        : share === null
          ? `${pace}${elapsed}`
          : elapsed,
    title: share === null ? steps_done(progress) : percent(share, 0),
  };
}
