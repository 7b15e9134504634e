// How far a run is, in words. Where workers' own programs say when they are done, nobody knows how many steps there will be.
import type { Progress } from "./contract";
import { clock, count, number, percent, plural } from "./format";

export interface HowFar {
  share: number | null; // of the steps; null: not known
  where: string;
  left: string;
  title: string; // short, while the run goes
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
  const so_far = `${clock(elapsed_s)} so far`;
  return {
    share,
    where: steps === null ? steps_done(progress) : `step ${count(step)} of ${count(steps)}`,
    left: !is_going(progress)
      ? `${clock(elapsed_s)} in all`
      : left_s !== null
        ? `${pace}${clock(left_s)} left`
        : share === null
          ? `${pace}${so_far}`
          : so_far,
    title: share === null ? steps_done(progress) : percent(share, 0),
  };
}
