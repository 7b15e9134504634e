// The JSON that the server sends to the page, format 1. Times are seconds; unknown values are null.

export type Maybe = number | null;

export interface Run {
  file: string;
  id: string;
  started: string;
  command: string;
  job: string; // TOML
  outcome: "running" | "completed" | "interrupted" | "failed";
  reason: string;
  warning: string;
  policy: string;
  model: string;
  data: string;
  workers: number;
  shards: number;
  steps: Maybe;
  batch: number;
  settings: Record<string, string>;
  environment: Record<string, string>;
  digest: string;
  cell: Cell | null; // position of the run in an experiment in progress
}

export interface Cell {
  title: string;
  number: number;
  of: number;
}

export type State = "waiting" | "running" | "silent" | "completed" | "interrupted" | "failed";

export interface Progress {
  step: number; // steps done
  steps: Maybe; // null: the workers' scripts determine the number
  elapsed_s: number;
  left_s: Maybe;
  steps_per_s: Maybe;
  state: State;
  quiet_s: number;
}

export interface Totals {
  samples: number;
  used: number;
  late: number;
  refused: number;
  censored: number;
  contributors_mean: Maybe;
  loss: Maybe;
  accuracy: Maybe;
  test_loss: Maybe;
  test_accuracy: Maybe;
  step_median_s: Maybe;
  step_p90_s: Maybe;
  waited_s: number;
  wait_all_s: number;
  saved_s: number; // vs. synchronous
  saved_exact: boolean; // false: saved_s is a lower bound, because some run-times are censored
  saved_about_s: Maybe; // estimated with forecasts of these; null: there is none
}

// Each bucket has `per` steps: its first step, when that opened, and means over the bucket except where noted.
export interface Steps {
  per: number;
  from: number;
  step: number[];
  at_s: number[];
  elapsed_s: number[];
  elapsed_min_s: number[];
  elapsed_max_s: number[];
  cutoff: Maybe[];
  alive: number[];
  contributors: number[];
  oracle: Maybe[];
  loss: Maybe[];
  accuracy: Maybe[];
  samples: number[];
  learning_rate: Maybe[];
  noise_scale: Maybe[];
  computing_s: Maybe[];
  waiting_s: Maybe[];
  aggregating_s: number[];
  deciding_s: number[];
  moving_s: Maybe[];
  late: number[]; // sums
  refused: number[];
  saved_s: number[];
  saved_about_s: number[];
  fresh: Maybe[];
}

export interface Evaluations {
  step: number[];
  at_s: number[];
  loss: Maybe[];
  accuracy: Maybe[];
}

export interface Decision {
  step: number;
  at_s: number;
  cutoff: number;
  alive: number;
  limit_s: Maybe;
  reason: string;
}

export interface HeatRow {
  label: string;
  first: number;
  count: number;
  node: string;
}

export interface Heat {
  per: number;
  from: number;
  rows: HeatRow[];
  step: number[];
  time_s: Maybe[][]; // [column][row]; includes lower bounds
  late: number[][]; // [column][row]: share of gradients not in time
}

export interface Worker {
  worker: number;
  node: string;
  state: "alive" | "lost" | "finished";
  steps: number;
  inclusion: Maybe;
  recurrence: Maybe; // repeat-straggler rate: share of the steps after a missed one that it missed too
  median_s: Maybe;
  median_exact: boolean;
  late: number;
  censored: number;
  last: number; // steps in which it was the last worker in time
}

export interface Shard {
  shard: number;
  busy_share: Maybe;
}

export interface RunEvent {
  at_s: number;
  step: number;
  kind: string;
  peer: string;
  text: string;
}

export interface All {
  format: 1;
  run: Run;
  progress: Progress;
  totals: Totals;
  steps: Steps;
  evaluations: Evaluations;
  decisions: Decision[]; // newest first
  heat: Heat;
  workers: Worker[];
  shards: Shard[];
  events: RunEvent[]; // newest first
}

export type HeatUpdate = Omit<Heat, "rows"> & { rows?: HeatRow[] };
export type Update = Partial<Omit<All, "heat">> & { heat?: HeatUpdate };

export interface Arrival {
  worker: number;
  time_s: number;
  censored: boolean;
  late: boolean;
  used: boolean;
}

export interface Forecast {
  rank: number[];
  mean_s: number[];
  low_s: number[]; // 10 %
  high_s: number[]; // 90 %
}

export interface StepDetail {
  step: number;
  elapsed_s: number;
  cutoff: Maybe;
  oracle: Maybe;
  contributors: number;
  reason: string;
  decisions: { at_s: number; cutoff: number; limit_s: Maybe; reason: string }[];
  arrivals: Arrival[]; // those in time first; each group by time
  forecast: Forecast | null;
}

export interface ReportedRun extends All {
  steps_detail?: Record<string, StepDetail>;
}

export interface Report {
  runs: ReportedRun[];
  made: string;
  command: string;
}
