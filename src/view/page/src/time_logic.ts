// The parts of the time of steps, over buckets of steps.
import type { All, Maybe, Steps } from "./contract";
import { bucket_sizes } from "./view";

export const parts = ["computing", "moving", "waiting", "aggregating", "deciding"] as const;
export type Part = (typeof parts)[number];

export const meanings: Record<Part, string> = {
  computing: "the slowest used gradient",
  moving: "transfer of parameters and gradients",
  waiting: "for missing gradients",
  aggregating: "summing and updating",
  deciding: "waiting for the policy's decision",
};

export function values_of(steps: Steps, part: Part): Maybe[] {
  return steps[`${part}_s`];
}

// The lines of the stack from its top: the sum of all parts, of all but the last, ..., the first part.
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

// Seconds of each part over the whole run.
export function spent(all: All): { part: Part; seconds: number }[] {
  const sizes = bucket_sizes(all.steps, all.progress.step);
  return parts.map((part) => ({
    part,
    seconds: values_of(all.steps, part).reduce<number>((sum, value, i) => sum + (value ?? 0) * sizes[i]!, 0),
  }));
}

// The upper limit of a chart of times, so that a few very long steps do not flatten the others. Infinity: no limit.
export function cut_at(values: (Maybe | undefined)[]): number {
  const known = values.filter((v): v is number => typeof v === "number").sort((a, b) => a - b);
  if (known.length < 20) return Infinity;
  const typical = known[Math.floor(0.98 * (known.length - 1))]!;
  return known[known.length - 1]! > 2.5 * typical ? 1.5 * typical : Infinity;
}

export function cumulative(values: number[]): number[] {
  let sum = 0;
  return values.map((value) => (sum += value));
}
