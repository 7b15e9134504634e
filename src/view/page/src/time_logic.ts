// A step's time by what it went on, over buckets of steps.
import type { All, Maybe, Steps } from "./contract";
import { bucket_sizes } from "./view";

export const parts = ["computing", "moving", "waiting", "aggregating", "deciding"] as const;
export type Part = (typeof parts)[number];

export const meanings: Record<Part, string> = {
  computing: "the slowest gradient that was used",
  moving: "parameters and gradients on their way",
  waiting: "for those who had not come",
  aggregating: "summing and updating",
  deciding: "how long to wait next",
};

export function values_of(steps: Steps, part: Part): Maybe[] {
  return steps[`${part}_s`];
}

// From the top of the stack down: all parts, all but the last, ... the first alone.
export function stacked(steps: Steps): { lines: (Maybe | undefined)[][]; values: Maybe[][]; order: Part[] } {
  const sums = steps.step.map(() => 0);
  const lines: number[][] = [];
  for (const part of parts) {
    values_of(steps, part).forEach((value, i) => (sums[i]! += Math.max(0, value ?? 0)));
    lines.push([...sums]);
  }
  const order = [...parts].reverse();
  return { lines: lines.reverse(), values: order.map((part) => values_of(steps, part)), order };
}

// Seconds of the whole run that went on each part.
export function spent(all: All): { part: Part; seconds: number }[] {
  const sizes = bucket_sizes(all.steps, all.progress.step);
  return parts.map((part) => ({
    part,
    seconds: values_of(all.steps, part).reduce<number>((sum, value, i) => sum + (value ?? 0) * sizes[i]!, 0),
  }));
}

// Where to cut a chart of times off: a few steps that took many times as long would flatten all others. Infinite: nowhere.
export function cut_at(values: (Maybe | undefined)[]): number {
  const known = values.filter((v): v is number => typeof v === "number").sort((a, b) => a - b);
  if (known.length < 20) return Infinity;
  const usual = known[Math.floor(0.98 * (known.length - 1))]!;
  return known[known.length - 1]! > 2.5 * usual ? 1.5 * usual : Infinity;
}

export function cumulative(values: number[]): number[] {
  let sum = 0;
  return values.map((value) => (sum += value));
}
