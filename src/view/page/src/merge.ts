// Applies an update to the state of a run.
import type { All, Heat, HeatUpdate, Steps, Update } from "./contract";

// The new state. `known` is not changed, and the new state shares the parts that the update does not contain.
export function merge(known: All, update: Update): All {
  const merged = { ...known, ...update } as All;
  if (update.steps) merged.steps = merge_steps(known.steps, update.steps);
  if (update.heat) merged.heat = merge_heat(known.heat, update.heat);
  return merged;
}

// The number of buckets to keep: those before the update's first one, found by its step.
function kept(known: { per: number; step: number[] }, update: { per: number; from: number; step: number[] }): number {
  if (known.per !== update.per) return 0;
  if (update.step.length === 0) return update.from === 0 ? 0 : known.step.length;
  const first = known.step.findIndex((step) => step >= update.step[0]!);
  return first < 0 ? known.step.length : first;
}

function merge_steps(known: Steps, update: Steps): Steps {
  const keep = kept(known, update);
  const merged = { per: update.per, from: 0 } as Record<string, unknown>;
  for (const [name, values] of Object.entries(update)) {
    if (!Array.isArray(values)) continue;
    const before = (known as unknown as Record<string, unknown[]>)[name] ?? [];
    merged[name] = before.slice(0, keep).concat(values);
  }
  return merged as unknown as Steps;
}

function merge_heat(known: Heat, update: HeatUpdate): Heat {
  const keep = kept(known, update);
  return {
    per: update.per,
    from: 0,
    rows: update.rows ?? known.rows,
    step: known.step.slice(0, keep).concat(update.step),
    time_s: known.time_s.slice(0, keep).concat(update.time_s),
    late: known.late.slice(0, keep).concat(update.late),
  };
}
