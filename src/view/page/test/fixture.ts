// Small runs for tests.
import type { All, StepDetail, Steps, Worker } from "../src/contract";

export function steps(per: number, first: number, buckets: number, value = 1): Steps {
  const list = Array.from({ length: buckets }, (_, i) => first + i * per);
  const same = () => list.map(() => value);
  return {
    per,
    from: first / per,
    step: list,
    at_s: list.map((s) => s * 0.1),
    elapsed_s: same(),
    elapsed_min_s: same(),
    elapsed_max_s: same(),
    cutoff: same(),
    alive: same(),
    contributors: same(),
    oracle: same(),
    loss: same(),
    accuracy: same(),
    samples: same(),
    learning_rate: same(),
    noise_scale: same(),
    computing_s: same(),
    waiting_s: same(),
    aggregating_s: same(),
    deciding_s: same(),
    moving_s: same(),
    late: same(),
    refused: same(),
    saved_s: same(),
    saved_about_s: same(),
    fresh: same(),
  };
}

export function run(changes: Partial<All> = {}, settings: Record<string, string> = {}, file = "runs/a.db"): All {
  return {
    format: 1,
    run: {
      file,
      id: "1",
      started: "2026-11-16T04:00:00Z",
      command: "drover train",
      job: "workers = 4\n",
      outcome: "running",
      reason: "",
      warning: "",
      policy: settings["policy"] ?? "sync",
      model: "lenet",
      data: "mnist",
      workers: 4,
      shards: 2,
      steps: 100,
      batch: 32,
      settings,
      environment: {},
      digest: "",
      cell: null,
    },
    progress: { step: 4, steps: 100, elapsed_s: 0.4, left_s: 9.6, steps_per_s: 10, state: "running", quiet_s: 0 },
    totals: {
      samples: 0,
      used: 12,
      late: 2,
      refused: 0,
      censored: 2,
      contributors_mean: 3,
      loss: 1,
      accuracy: 0.5,
      test_loss: null,
      test_accuracy: null,
      step_median_s: 0.1,
      step_p90_s: 0.2,
      waited_s: 0.4,
      wait_all_s: 0.8,
      saved_s: 0.4,
      saved_exact: true,
      saved_about_s: null,
    },
    steps: steps(1, 0, 4),
    evaluations: { step: [], at_s: [], loss: [], accuracy: [] },
    decisions: [],
    heat: {
      per: 1,
      from: 0,
      rows: [
        { label: "worker 0", first: 0, count: 1, node: "a" },
        { label: "worker 1", first: 1, count: 1, node: "b" },
      ],
      step: [0, 1],
      time_s: [
        [1, 2],
        [3, null],
      ],
      late: [
        [0, 1],
        [0, 0],
      ],
    },
    workers: [],
    shards: [],
    events: [],
    ...changes,
  };
}

export function worker(changes: Partial<Worker>): Worker {
  return {
    worker: 0,
    node: "node-0",
    state: "alive",
    steps: 10,
    inclusion: 1,
    recurrence: null,
    median_s: 0.1,
    median_exact: true,
    late: 0,
    censored: 0,
    last: 9,
    ...changes,
  };
}

export function detail(changes: Partial<StepDetail> = {}): StepDetail {
  return {
    step: 7,
    elapsed_s: 0.05,
    cutoff: 2,
    oracle: null,
    contributors: 2,
    reason: "because",
    decisions: [],
    arrivals: [
      { worker: 3, time_s: 0.01, censored: false, late: false, used: true },
      { worker: 1, time_s: 0.04, censored: false, late: false, used: true },
      { worker: 0, time_s: 0.05, censored: true, late: false, used: false },
      { worker: 2, time_s: 0.09, censored: false, late: true, used: false },
    ],
    forecast: { rank: [1, 2, 4], mean_s: [0.01, 0.03, 0.1], low_s: [0.009, 0.02, 0.08], high_s: [0.012, 0.05, 0.2] },
    ...changes,
  };
}
