// The steps that the slider can select, and the data of the selected step.
import type { Arrival, Maybe, StepDetail } from "./contract";
import { count, duration, plural } from "./format";

// The steps that the slider can select: all steps done, or those that a report contains.
export class Choices {
  constructor(
    private readonly kept: number[] | null,
    private readonly done: number,
  ) {}

  get length(): number {
    return this.kept ? this.kept.length : this.done;
  }

  step_at(position: number): number {
    const at = Math.max(0, Math.min(this.length - 1, Math.round(position)));
    return this.kept ? this.kept[at]! : at;
  }

  // The position of the available step nearest to `step`.
  position_of(step: number): number {
    if (!this.kept) return Math.max(0, Math.min(this.done - 1, Math.round(step)));
    let best = 0;
    this.kept.forEach((kept, i) => {
      if (Math.abs(kept - step) < Math.abs(this.kept![best]! - step)) best = i;
    });
    return best;
  }
}

export interface OrderStatistics {
  rank: number[];
  used: Maybe[];
  late: Maybe[];
  censored: Maybe[];
  mean: Maybe[];
  low: Maybe[];
  high: Maybe[];
}

// With many workers only some ranks have a forecast; the others are interpolated.
function between(ranks: number[], values: number[], rank: number): Maybe {
  const after = ranks.findIndex((each) => each >= rank);
  if (after < 0) return null;
  if (ranks[after] === rank) return values[after] ?? null;
  if (after === 0) return null;
  const share = (rank - ranks[after - 1]!) / (ranks[after]! - ranks[after - 1]!);
  return values[after - 1]! + share * (values[after]! - values[after - 1]!);
}

// Run-times by rank (1 is the first arrival), with the forecast of each rank.
export function order_statistics(detail: StepDetail): OrderStatistics {
  const forecast = detail.forecast;
  const ranks = new Set<number>(detail.arrivals.map((_, i) => i + 1));
  forecast?.rank.forEach((rank) => ranks.add(rank));
  const rank = [...ranks].sort((a, b) => a - b);
  const forecast_of = (values: number[] | undefined) =>
    rank.map((r) => (forecast && values ? between(forecast.rank, values, r) : null));
  const seen = (is: (a: Arrival) => boolean) =>
    rank.map((r) => {
      const arrival = detail.arrivals[r - 1];
      return arrival && is(arrival) ? arrival.time_s : null;
    });
  return {
    rank,
    used: seen((a) => !a.censored && !a.late),
    late: seen((a) => a.late),
    censored: seen((a) => a.censored && !a.late),
    mean: forecast_of(forecast?.mean_s),
    low: forecast_of(forecast?.low_s),
    high: forecast_of(forecast?.high_s),
  };
}

export function describe_arrival(arrival: Arrival, rank: number): string {
  const what = arrival.late
    ? "late"
    : arrival.censored
      ? "had not arrived when the step closed"
      : arrival.used
        ? "used"
        : "in time, but not used";
  return `${count(rank)}. worker ${arrival.worker}, ${arrival.censored ? "at least " : ""}${duration(arrival.time_s)}, ${what}`;
}

export function describe_step(detail: StepDetail): string {
  const late = detail.arrivals.filter((a) => a.late).length;
  const missing = detail.arrivals.filter((a) => a.censored && !a.late).length;
  const parts = [
    `Step ${count(detail.step)} closed after ${duration(detail.elapsed_s)} with ${plural(detail.contributors, "gradient")} of ${plural(detail.arrivals.length, "worker")}.`,
  ];
  if (detail.cutoff !== null)
    parts.push(
      `The cutoff was ${count(detail.cutoff)}${detail.oracle === null ? "" : `, the oracle's ${count(detail.oracle)}`}.`,
    );
  if (late) parts.push(`${count(late)} arrived late.`);
  if (missing) parts.push(`${count(missing)} had not arrived when it closed.`);
  if (!detail.forecast) parts.push("There is no forecast of this step.");
  return parts.join(" ");
}
