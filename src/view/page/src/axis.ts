// The x axis that the charts share: steps, or time since the start of the run.
import { clock, count, number, time_unit } from "./format";

export type Along = "steps" | "time" | "rank";

const seconds = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 432000,
];
const small = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const whole: number[] = [];
for (let size = 1; size <= 1e9; size *= 10) whole.push(size, 2 * size, 5 * size);

export function increments(along: Along): number[] {
  return along === "time" ? small.concat(seconds) : whole;
}

export function tick(along: Along, value: number, most: number): string {
  if (along !== "time") return count(value);
  return most >= 120 ? clock(value) : `${number(value)} s`;
}

// Ticks of an axis of durations, all in the unit of the largest.
export function duration_ticks(splits: number[]): string[] {
  const unit = time_unit(Math.max(...splits.map(Math.abs), 0));
  return splits.map((value) => (value === 0 ? "0" : `${number(value / unit.size)} ${unit.name}`));
}

// The value at x by linear interpolation. xs must ascend.
export function interpolate(xs: number[], ys: number[], x: number): number {
  if (xs.length === 0) return NaN;
  if (x <= xs[0]!) return ys[0]!;
  let low = 0;
  let high = xs.length - 1;
  if (x >= xs[high]!) return ys[high]!;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle]! <= x) low = middle;
    else high = middle;
  }
  const share = (x - xs[low]!) / (xs[high]! - xs[low]!);
  return ys[low]! + share * (ys[high]! - ys[low]!);
}
