// The ranges of a chart's axes, and their tick labels.
import { type Along, duration_ticks } from "./axis";
import type { Maybe } from "./contract";
import { count, duration, number, percent } from "./format";

export type Unit = "number" | "percent" | "duration" | "count";

export const format_value: Record<Unit, (value: Maybe | undefined) => string> = {
  number: (v) => number(v, 4),
  percent: (v) => percent(v, 1),
  duration: (v) => duration(v),
  count: (v) => number(v, 4),
};

export function y_ticks(splits: number[], unit: Unit): string[] {
  if (unit === "duration") return duration_ticks(splits);
  if (unit === "percent") return splits.map((v) => `${number(v * 100)} %`);
  return splits.map((v) => {
    if (v === null) return "";
    const thousands = Math.abs(v) >= 1e4 && Math.abs(v) < 1e6 && v % 1000 === 0;
    return thousands ? `${count(v / 1000)}k` : number(v);
  });
}

interface Range {
  unit: Unit;
  from_zero?: boolean;
  upper?: number;
}

// The grid lines of a logarithmic axis: at 1, 2 and 5 of each decade.
export function round_ones(_u: unknown, splits: number[]): (number | null)[] {
  return splits.map((v) => ([1, 2, 5].includes(Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9))) ? v : null));
}

// Ranks have a margin on both sides. A single point gets a range of 1.
export function x_range(low: number, high: number, along: Along | undefined): [number, number] {
  if (along === "rank") return [low - 0.5, high + 0.5];
  return high > low ? [low, high] : [low, low + 1];
}

// The range with a small margin. It does not go below zero for non-negative values, or above 100 %.
export function y_range(low: number, high: number, options: Range): [number, number] {
  if (low === null || high === null || (low === 0 && high === 0) || !Number.isFinite(low) || !Number.isFinite(high))
    return [0, 1];
  const bottom = options.from_zero ? 0 : options.upper === undefined ? low : Math.min(low, options.upper * high);
  const margin = (high - bottom || Math.abs(high) || 1) * 0.06;
  const top = options.unit === "percent" ? Math.min(1, high + margin) : high + margin;
  return [
    options.from_zero ? 0 : low >= 0 ? Math.max(0, bottom - margin) : bottom - margin,
    top <= bottom ? bottom + 1 : top,
  ];
}

// The value at an index, or the last value before it if the line has none there (undefined). Null is a value and means unknown.
export function at_or_before(line: (Maybe | undefined)[], index: number): Maybe {
  for (let i = Math.min(index, line.length - 1); i >= 0; i--) {
    const value = line[i];
    if (value !== undefined) return value;
  }
  return null;
}
