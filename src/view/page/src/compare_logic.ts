// The comparison of several runs: the settings in which they differ, and their results.
import type { All, Maybe } from "./contract";
import { count, duration, number, percent } from "./format";

const own = new Set(["seed", "run_file", "save_model", "stop_at"]); // differ between repetitions of a run

// The settings in which the runs differ, except seeds and file names.
export function differing(runs: All[]): string[] {
  const keys = new Set(runs.flatMap((all) => Object.keys(all.run.settings)));
  return [...keys]
    .filter((key) => !own.has(key) && new Set(runs.map((all) => all.run.settings[key] ?? "")).size > 1)
    .sort((a, b) => Number(b === "policy") - Number(a === "policy") || a.localeCompare(b));
}

// The configuration of a run: everything except its seed. Runs of one configuration are repetitions.
export function kind_of(all: All, keys: string[]): string {
  const parts = keys.map((key) =>
    key === "policy" ? all.run.settings[key] : `${key} ${all.run.settings[key] ?? "–"}`,
  );
  return parts.join(", ") || all.run.policy || all.run.file;
}

// A unique name for each run.
export function names(runs: All[]): string[] {
  const keys = differing(runs);
  const seeds = new Set(runs.map((all) => all.run.settings["seed"] ?? "")).size > 1;
  const list = runs.map(
    (all) => kind_of(all, keys) + (seeds && all.run.settings["seed"] ? `, seed ${all.run.settings["seed"]}` : ""),
  );
  return list.map((name, i) =>
    list.indexOf(name) === list.lastIndexOf(name) ? name : `${name} (${base_name(runs[i]!.run.file)})`,
  );
}

export function base_name(file: string): string {
  return file.split("/").pop() || file;
}

export interface Metric {
  title: string;
  of: (all: All) => Maybe;
  format: (value: Maybe) => string;
  better: "more" | "less" | null;
}

function best(values: Maybe[]): Maybe {
  const known = values.filter((v): v is number => v !== null);
  return known.length ? Math.max(...known) : null;
}

export function time_to_accuracy(all: All, target: number): Maybe {
  const at = all.evaluations.accuracy.findIndex((v) => v !== null && v >= target);
  return at < 0 ? null : all.evaluations.at_s[at]!;
}

// The highest test accuracy that every run reached, in tenths of a percent. If any run completed, only completed runs count.
export function common_target(runs: All[]): Maybe {
  const completed = runs.filter((all) => all.progress.state === "completed");
  const reached = (completed.length ? completed : runs).map((all) => best(all.evaluations.accuracy));
  if (reached.some((v) => v === null)) return null;
  const least = Math.min(...(reached as number[]));
  return Math.floor(least * 1000 + 1e-9) / 1000;
}

export function metrics(runs: All[]): Metric[] {
  const target = common_target(runs);
  const list: Metric[] = [
    {
      title: "Best test accuracy",
      of: (a) => best(a.evaluations.accuracy),
      format: (v) => percent(v, 2),
      better: "more",
    },
    { title: "Time", of: (a) => a.progress.elapsed_s, format: (v) => duration(v, true), better: null },
    { title: "Steps", of: (a) => a.progress.step, format: count, better: null },
    { title: "Median step time", of: (a) => a.totals.step_median_s, format: (v) => duration(v, true), better: "less" },
    { title: "Gradients per step", of: (a) => a.totals.contributors_mean, format: (v) => number(v), better: null },
    {
      title: runs.every((a) => a.totals.saved_exact) ? "Time saved" : "Time saved (lower bound)",
      of: (a) => a.totals.saved_s,
      format: (v) => duration(v, true),
      better: null,
    },
  ];
  if (runs.some((a) => a.totals.saved_about_s !== null)) {
    list.push({
      title: "Time saved (forecast)",
      of: (a) => a.totals.saved_about_s ?? (a.totals.saved_exact ? a.totals.saved_s : null),
      format: (v) => duration(v, true),
      better: null,
    });
  }
  if (target !== null && target > 0) {
    list.splice(1, 0, {
      title: `Time to ${percent(target)}`,
      of: (a) => time_to_accuracy(a, target),
      format: (v) => duration(v, true),
      better: "less",
    });
  }
  return list;
}

// The indices of the best values; none if all values are equal or the metric has no better direction.
export function winners(values: Maybe[], better: Metric["better"]): Set<number> {
  const known = values.filter((v): v is number => v !== null);
  if (better === null || known.length < 2) return new Set();
  const top = better === "more" ? Math.max(...known) : Math.min(...known);
  const list = values.flatMap((v, i) => (v === top ? [i] : []));
  return list.length === values.length ? new Set() : new Set(list);
}

export interface Statistics {
  known: number;
  mean: Maybe;
  best: Maybe;
  worst: Maybe;
}

export function statistics(values: Maybe[], better: Metric["better"]): Statistics {
  const known = values.filter((v): v is number => v !== null).sort((a, b) => a - b);
  if (known.length === 0) return { known: 0, mean: null, best: null, worst: null };
  const mean = known.reduce((a, b) => a + b, 0) / known.length;
  const least = known[0]!;
  const most = known[known.length - 1]!;
  return better === "more"
    ? { known: known.length, mean, best: most, worst: least }
    : { known: known.length, mean, best: least, worst: most };
}

// Runs grouped by configuration, in order of appearance.
export function kinds(runs: All[]): { kind: string; members: number[] }[] {
  const keys = differing(runs);
  const list: { kind: string; members: number[] }[] = [];
  runs.forEach((all, i) => {
    const kind = kind_of(all, keys);
    const known = list.find((entry) => entry.kind === kind);
    if (known) known.members.push(i);
    else list.push({ kind, members: [i] });
  });
  return list;
}
