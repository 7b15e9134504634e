// Generated runs in the server's JSON format, to test the page without training.

function random_numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const at = (seed, ...keys) =>
  random_numbers(keys.reduce((sum, key) => Math.imul(sum ^ (key + 0x9e3779b9), 0x85ebca6b), seed))();
const normal = (seed, ...keys) =>
  Math.sqrt(-2 * Math.log(1 - at(seed, ...keys, 1))) * Math.cos(2 * Math.PI * at(seed, ...keys, 2));

// A node is slow for the middle fifth of the run; one worker in forty is always slow.
function run_time(o, step, worker) {
  const node = Math.floor(worker / o.per_node);
  const slow_node = node === 1 && step > 0.4 * o.steps && step < 0.6 * o.steps ? 2.4 : 1;
  const slow_worker = worker % 40 === 7 ? 1.9 : 1;
  const hiccup = at(o.seed, step, worker, 3) < 0.012 ? 3 : 1;
  return o.base_s * slow_node * slow_worker * hiccup * Math.exp(0.09 * normal(o.seed, step, worker));
}

const cutoff_at = (o, step) =>
  o.policy === "sync"
    ? o.workers
    : Math.round(
        o.workers * (step > 0.41 * o.steps && step < 0.61 * o.steps && o.nodes > 1 ? 1 - 1.05 / o.nodes : 0.955) -
          2 * at(o.seed, Math.floor(step / 7)),
      );
const elapsed_at = (o, step) =>
  o.policy === "sync"
    ? o.base_s * (step > 0.4 * o.steps && step < 0.6 * o.steps ? 2.9 : 2.2) * (1 + 0.3 * at(o.seed, step, 9))
    : o.base_s * (1.18 + 0.12 * at(o.seed, step, 9));
const loss_at = (o, step) =>
  0.28 + 2.05 * Math.exp(-step / (0.09 * o.steps)) + 0.05 * normal(o.seed, step, 5) * Math.exp(-step / o.steps);
const accuracy_at = (o, step) =>
  Math.min(0.99, 0.905 - 0.8 * Math.exp(-step / (0.08 * o.steps)) + 0.012 * normal(o.seed, step, 6));

export function defaults(options = {}) {
  const o = {
    steps: 1500,
    workers: 24,
    nodes: 3,
    shards: 2,
    policy: "bayes",
    seed: 1,
    base_s: 0.032,
    batch: 32,
    file: "runs/lenet.db",
    state: "running",
    reason: "",
    warning: "",
    ...options,
  };
  o.per_node = Math.ceil(o.workers / o.nodes);
  return o;
}

// The complete state after `done` steps.
export function made_up(options, done) {
  const o = defaults(options);
  let per = 1;
  while (done / per > 1000) per *= 2;
  const names = [
    "step",
    "at_s",
    "elapsed_s",
    "elapsed_min_s",
    "elapsed_max_s",
    "cutoff",
    "alive",
    "contributors",
    "oracle",
    "loss",
    "accuracy",
    "samples",
    "learning_rate",
    "noise_scale",
    "computing_s",
    "waiting_s",
    "aggregating_s",
    "deciding_s",
    "moving_s",
    "late",
    "refused",
    "saved_s",
    "saved_about_s",
    "fresh",
  ];
  const steps = { per, from: 0 };
  for (const name of names) steps[name] = [];
  let clock = 0;
  for (let first = 0; first < done; first += per) {
    const n = Math.min(per, done - first);
    const elapsed = elapsed_at(o, first);
    const cutoff = cutoff_at(o, first);
    const all_known = o.policy === "sync" || at(o.seed, first, 77) < 0.4;
    const aggregating = o.base_s * 0.06,
      deciding = o.base_s * 0.015,
      moving = o.base_s * (0.1 + 0.03 * at(o.seed, first, 4)),
      computing = o.base_s * 0.9;
    const row = {
      step: first,
      at_s: clock,
      elapsed_s: elapsed,
      elapsed_min_s: elapsed * 0.9,
      elapsed_max_s: elapsed * 1.3,
      cutoff,
      alive: o.workers - (o.lost && first > 0.7 * o.steps ? 1 : 0),
      contributors: cutoff + at(o.seed, first, 8) * 0.02 * o.workers,
      oracle: all_known ? Math.round(o.workers * 0.95) : null,
      loss: loss_at(o, first),
      accuracy: accuracy_at(o, first),
      samples: cutoff * o.batch,
      learning_rate: first < o.steps / 2 ? 0.1 : first < 0.8 * o.steps ? 0.05 : 0.01,
      noise_scale: first < 5 ? null : 90 * Math.exp((3.2 * first) / o.steps) * (1 + 0.15 * normal(o.seed, first, 11)),
      computing_s: computing,
      waiting_s: Math.max(0, elapsed - computing - moving - aggregating - deciding),
      aggregating_s: aggregating,
      deciding_s: deciding,
      moving_s: moving,
      late: Math.floor(3 * at(o.seed, first, 12)) * n,
      refused: 0,
      saved_s: o.policy === "sync" ? 0 : n * o.base_s * (1.1 + at(o.seed, first, 13)),
      saved_about_s: o.policy === "sync" ? 0 : n * o.base_s * (2.4 + at(o.seed, first, 13)),
      fresh: null,
    };
    for (const name of names) steps[name].push(row[name]);
    clock += elapsed * n;
  }
  const evaluations = { step: [], at_s: [], loss: [], accuracy: [] };
  const every = Math.max(1, Math.floor(o.steps / 30));
  for (let step = every; step <= done; step += every) {
    evaluations.step.push(step);
    evaluations.at_s.push((step / Math.max(1, done)) * clock);
    evaluations.loss.push(loss_at(o, step) * 1.05 + 0.02);
    evaluations.accuracy.push(Math.min(0.99, accuracy_at(o, step) - 0.01));
  }
  const saved = steps.saved_s.reduce((a, b) => a + b, 0);
  const last = done - 1;
  const ended = ["completed", "failed", "interrupted"].includes(o.state);
  const decisions = [];
  for (let step = last; step >= 0 && decisions.length < 30; step--) {
    decisions.push({
      step,
      at_s: 0,
      cutoff: cutoff_at(o, step),
      alive: o.workers,
      limit_s: step % 5 === 0 ? o.base_s * 2 : null,
      reason:
        o.policy === "sync"
          ? "wait for all workers"
          : `most gradients a second: ${(cutoff_at(o, step) / 0.0378 / 1000).toFixed(1)}k/s expected with ${cutoff_at(o, step)}, ${(o.workers / 0.071 / 1000).toFixed(1)}k/s with all`,
    });
  }
  return {
    format: 1,
    run: {
      file: o.file,
      id: (0x9f86d0818 + o.seed).toString(16),
      started: "2026-11-16T04:00:00Z",
      command: `drover train --policy ${o.policy} --workers ${o.workers} --shards ${o.shards} --steps ${o.steps} --seed ${o.seed} --dashboard`,
      job: `workers = ${o.workers}\nshards = ${o.shards}\nsteps = ${o.steps}\nseed = ${o.seed}\npolicy = "${o.policy}"\nlr = 0.1\n`,
      outcome: ended ? o.state : "running",
      reason: o.reason,
      warning: o.warning,
      policy: o.policy,
      model: "lenet",
      data: "fashion-mnist",
      workers: o.workers,
      shards: o.shards,
      steps: o.endless ? null : o.steps,
      batch: o.batch,
      settings: {
        workers: String(o.workers),
        shards: String(o.shards),
        steps: String(o.steps),
        batch: String(o.batch),
        policy: o.policy,
        seed: String(o.seed),
        lr: "0.1",
        momentum: "0.9",
        note: "</script><b>not bold</b>",
      },
      environment: { host: "node-0", cores: "16", drover: "0.5" },
      digest: ended ? "2c26b46b68ffc68f" : "",
      cell: o.cell ?? null,
    },
    progress: {
      step: done,
      steps: o.endless ? null : o.steps,
      elapsed_s: clock,
      left_s: ended || done === 0 || o.endless ? null : ((o.steps - done) / Math.max(1, done)) * clock,
      steps_per_s: clock ? done / clock : null,
      state: done === 0 && !ended ? "waiting" : o.state,
      quiet_s: o.state === "silent" ? 754 : 0.2,
    },
    totals: {
      samples: done * o.workers * o.batch,
      used: Math.round(done * o.workers * (o.policy === "sync" ? 1 : 0.93)),
      late: o.policy === "sync" ? 0 : Math.round(done * o.workers * 0.02),
      refused: 0,
      censored: o.policy === "sync" ? 0 : Math.round(done * o.workers * 0.05),
      contributors_mean: done ? o.workers * (o.policy === "sync" ? 1 : 0.93) : null,
      loss: done ? loss_at(o, last) : null,
      accuracy: done ? accuracy_at(o, last) : null,
      test_loss: evaluations.loss.at(-1) ?? null,
      test_accuracy: evaluations.accuracy.at(-1) ?? null,
      step_median_s: done ? elapsed_at(o, 0) : null,
      step_p90_s: done ? elapsed_at(o, 0) * 1.21 : null,
      waited_s: clock,
      wait_all_s: clock + saved,
      saved_s: saved,
      saved_exact: o.policy === "sync",
      saved_about_s: o.policy === "sync" ? null : steps.saved_about_s.reduce((a, b) => a + b, 0),
    },
    steps,
    evaluations,
    decisions,
    heat: heat_of(o, done),
    workers: workers_of(o, done),
    shards: Array.from({ length: o.shards }, (_, shard) => ({
      shard,
      busy_share: done ? 0.21 + 0.3 * at(o.seed, shard, 21) : null,
    })),
    events: [
      ...(ended ? [{ at_s: clock, step: done, kind: "ended", peer: "", text: o.reason || "all steps done" }] : []),
      ...(o.lost && done > 0.7 * o.steps
        ? [
            {
              at_s: 0.7 * clock,
              step: Math.round(0.7 * o.steps),
              kind: "lost",
              peer: "worker 5",
              text: "its connection ended",
            },
          ]
        : []),
    ],
  };
}

function heat_of(o, done) {
  let per = 1;
  while (done / per > 400) per *= 2;
  const size = Math.ceil(o.workers / 256);
  const rows = [];
  for (let first = 0; first < o.workers;) {
    const node = Math.floor(first / o.per_node);
    const count = Math.min(size, o.workers - first, (node + 1) * o.per_node - first);
    rows.push({
      label: count === 1 ? `worker ${first}` : `workers ${first}–${first + count - 1}`,
      first,
      count,
      node: `node-${node}`,
    });
    first += count;
  }
  rows.length = Math.min(rows.length, 256);
  const heat = { per, from: 0, rows, step: [], time_s: [], late: [] };
  for (let first = 0; first < done; first += per) {
    const times = rows.map((row) => run_time(o, first, row.first));
    heat.step.push(first);
    heat.time_s.push(times.map((t) => (o.policy === "sync" ? t : Math.min(t, o.base_s * 2.2))));
    heat.late.push(times.map((t) => (o.policy !== "sync" && t > o.base_s * 1.45 ? 1 : 0)));
  }
  return heat;
}

function workers_of(o, done) {
  return Array.from({ length: done ? o.workers : 0 }, (_, worker) => {
    const slow = worker % 40 === 7;
    const missed =
      o.policy === "sync"
        ? 0
        : slow
          ? 0.97
          : 0.012 + 0.02 * at(o.seed, worker, 31) + (Math.floor(worker / o.per_node) === 1 ? 0.18 : 0);
    return {
      worker,
      node: `node-${Math.floor(worker / o.per_node)}`,
      state: o.lost && worker === 5 ? "lost" : "alive",
      steps: done,
      inclusion: 1 - missed,
      recurrence: missed ? Math.min(1, missed * 1.02 + 0.01) : null,
      median_s: o.base_s * (slow ? 1.31 : 1) * (0.97 + 0.06 * at(o.seed, worker, 32)),
      median_exact: !slow,
      late: Math.round(done * missed * 0.3),
      censored: Math.round(done * missed * 0.7),
      last: Math.floor((done / o.workers) * (1 - missed)),
    };
  });
}

// The details of a step.
export function made_up_step(options, step) {
  const o = defaults(options);
  const cutoff = cutoff_at(o, step);
  const times = Array.from({ length: o.workers }, (_, worker) => ({ worker, time: run_time(o, step, worker) })).sort(
    (a, b) => a.time - b.time,
  );
  const closed = times[cutoff - 1].time;
  const arrivals = times
    .map(({ worker, time }, i) => {
      const late = i >= cutoff && worker % 3 === 0;
      return {
        worker,
        time_s: i < cutoff || late ? time : closed,
        censored: i >= cutoff && !late,
        late,
        used: i < cutoff,
      };
    })
    .sort((a, b) => a.time_s - b.time_s);
  const rank = times.map((_, i) => i + 1);
  const mean = rank.map((r) => o.base_s * (0.83 + 0.3 * (r / o.workers) + 0.9 * Math.pow(r / o.workers, 24)));
  return {
    step,
    elapsed_s: closed * 1.08,
    cutoff,
    oracle: arrivals.some((a) => a.censored) ? null : Math.round(0.95 * o.workers),
    contributors: cutoff,
    reason: "most gradients a second",
    decisions: [
      {
        at_s: 0,
        cutoff: cutoff - 1,
        limit_s: null,
        reason: "most gradients a second, of 1,000 samples of the forecast",
      },
      {
        at_s: closed * 0.8,
        cutoff,
        limit_s: closed * 1.5,
        reason: "arrivals were faster than forecast: wait for one more",
      },
    ],
    arrivals,
    forecast:
      o.policy === "sync"
        ? null
        : {
            rank,
            mean_s: mean,
            low_s: mean.map((m) => m * 0.88),
            high_s: mean.map((m, i) => m * (1.1 + 0.5 * Math.pow(i / o.workers, 12))),
          },
  };
}

// The update from `before` to `after`.
export function update_of(before, after) {
  const tail = (was, is) => {
    const from = was.per === is.per ? Math.max(0, was.step.length - 1) : 0;
    return Object.fromEntries(
      Object.entries(is).map(([name, value]) => [
        name,
        name === "from"
          ? from
          : name === "rows" && from > 0
            ? undefined
            : Array.isArray(value) && name !== "rows"
              ? value.slice(from)
              : value,
      ]),
    );
  };
  return {
    run: after.run,
    progress: after.progress,
    totals: after.totals,
    steps: tail(before.steps, after.steps),
    evaluations: after.evaluations,
    decisions: after.decisions,
    heat: tail(before.heat, after.heat),
    workers: after.workers,
    shards: after.shards,
    events: after.events,
  };
}

export function made_up_report(list) {
  const runs = list.map((options) => {
    const o = defaults({ state: "completed", ...options });
    const detail = {};
    for (let i = 0; i < 40; i++) {
      const step = Math.floor((i * (o.steps - 1)) / 39);
      detail[step] = made_up_step(o, step);
    }
    return { ...made_up(o, o.done ?? o.steps), steps_detail: detail };
  });
  return {
    runs,
    made: "2026-11-16T04:30:00Z",
    command: `drover report ${runs.map((run) => run.run.file).join(" ")} --out report.html`,
  };
}
