import { describe, expect, it } from "vitest";
import { duration_ticks, increments, interpolate, tick } from "../src/axis";
import { notices } from "../src/notices";
import { how_far, steps_done } from "../src/progress_logic";
import { api, inlined } from "../src/source";
import { Choices, describe_arrival, describe_step, order_statistics } from "../src/step_logic";
import { cumulative, cut_at, spent, stacked } from "../src/time_logic";
import { bucket_sizes } from "../src/view";
import { matching, pressed, sorted } from "../src/worker_logic";
import { detail, run, steps, worker } from "./fixture";

describe("the slider", () => {
  it("reaches every step of a live run", () => {
    const all = new Choices(null, 100);
    expect([all.length, all.step_at(0), all.step_at(99), all.step_at(500), all.position_of(42)]).toEqual([
      100, 0, 99, 99, 42,
    ]);
  });
  it("reaches the steps that a report contains, and selects the nearest", () => {
    const kept = new Choices([0, 10, 30], 31);
    expect([0, 1, 2, 9].map((p) => kept.step_at(p))).toEqual([0, 10, 30, 30]);
    expect([0, 4, 9, 21, 99].map((s) => kept.position_of(s))).toEqual([0, 0, 1, 2, 2]);
  });
  it("shows each arrival by rank and outcome", () => {
    const s = order_statistics(detail());
    expect(s.rank).toEqual([1, 2, 3, 4]);
    expect(s.used).toEqual([0.01, 0.04, null, null]);
    expect(s.censored).toEqual([null, null, 0.05, null]);
    expect(s.late).toEqual([null, null, null, 0.09]);
    expect(s.mean[0]).toBe(0.01);
    expect(s.mean[1]).toBe(0.03);
    expect(s.mean[2]).toBeCloseTo(0.065, 9); // interpolated between the forecasts of ranks 2 and 4
    expect(s.mean[3]).toBe(0.1);
  });
  it("shows a forecast of more ranks than have arrived, or no forecast", () => {
    expect(order_statistics(detail({ arrivals: [] })).rank).toEqual([1, 2, 4]);
    expect(order_statistics(detail({ forecast: null })).mean).toEqual([null, null, null, null]);
  });
  it("describes the step", () => {
    expect(describe_step(detail())).toBe(
      "Step 7 closed after 50 ms with 2 gradients of 4 workers. The cutoff was 2. 1 arrived late. 1 had not arrived when it closed.",
    );
    expect(describe_step(detail({ oracle: 3, forecast: null }))).toContain("the oracle's 3. 1 arrived");
    expect(describe_arrival(detail().arrivals[2]!, 3)).toBe(
      "3. worker 0, at least 50 ms, had not arrived when the step closed",
    );
  });
});

describe("the table of workers", () => {
  const list = [
    worker({ worker: 0, inclusion: 0.5, node: "node-10" }),
    worker({ worker: 1, inclusion: 0.9, node: "node-2", recurrence: 0.3, state: "lost" }),
    worker({ worker: 2, inclusion: 0.5, node: "node-2", recurrence: 0.7 }),
  ];
  const order = (column: Parameters<typeof pressed>[1], descending: boolean) =>
    sorted(list, { column, descending }).map((w) => w.worker);
  it("sorts in both directions, equal values by worker", () => {
    expect(order("inclusion", false)).toEqual([0, 2, 1]);
    expect(order("inclusion", true)).toEqual([1, 0, 2]);
  });
  it("sorts unknown values last in both directions", () => {
    expect(order("recurrence", false)).toEqual([1, 2, 0]);
    expect(order("recurrence", true)).toEqual([2, 1, 0]);
  });
  it("does so for any initial order", () => {
    const mixed = [0.4, null, 0.2, null, 0.6].map((recurrence, i) => worker({ worker: i, recurrence }));
    expect(sorted(mixed, { column: "recurrence", descending: false }).map((w) => w.worker)).toEqual([2, 0, 4, 1, 3]);
    expect(sorted(mixed, { column: "recurrence", descending: true }).map((w) => w.worker)).toEqual([4, 0, 2, 1, 3]);
  });
  it("sorts node-2 before node-10", () => expect(order("node", false)).toEqual([1, 2, 0]));
  it("sorts a copy", () => {
    order("inclusion", true);
    expect(list.map((w) => w.worker)).toEqual([0, 1, 2]);
  });
  it("reverses on a second click, and has a default direction per column", () => {
    expect(pressed({ column: "late", descending: true }, "late").descending).toBe(false);
    expect(pressed({ column: "late", descending: true }, "median_s").descending).toBe(true);
    expect(pressed({ column: "late", descending: true }, "inclusion").descending).toBe(false);
  });
  it("finds numbers, ranges, nodes and states", () => {
    const found = (words: string) => matching(list, words).map((w) => w.worker);
    expect([found("1"), found("1-2"), found("node-2"), found("lost"), found(" "), found("nowhere")]).toEqual([
      [1],
      [1, 2],
      [1, 2],
      [1],
      [0, 1, 2],
      [],
    ]);
  });
});

describe("time", () => {
  it("is stacked from the top down, the sum first", () => {
    const s = stacked(steps(1, 0, 2, 2));
    expect(s.lines.map((line) => line[0])).toEqual([10, 8, 6, 4, 2]);
    expect(s.order[0]).toBe("deciding");
  });
  it("counts unknown parts as zero", () => {
    const some = { ...steps(1, 0, 1, 2), waiting_s: [null] };
    expect(stacked(some).lines[0]).toEqual([8]);
  });
  it("of the whole run weighs buckets by their steps", () => {
    const all = run({ steps: steps(4, 0, 3, 1) });
    all.progress.step = 10;
    expect(bucket_sizes(all.steps, 10)).toEqual([4, 4, 2]);
    expect(spent(all).find((s) => s.part === "waiting")!.seconds).toBe(10);
  });
  it("is clipped only if a few peaks would flatten the rest", () => {
    const calm = Array.from({ length: 100 }, (_, i) => 1 + (i % 7) / 10);
    expect(cut_at(calm)).toBe(Infinity);
    expect(cut_at([...calm, 50])).toBeCloseTo(2.4);
    expect(cut_at([1, 50])).toBe(Infinity);
    expect(cut_at([null, undefined])).toBe(Infinity);
  });
  it("adds up", () => expect(cumulative([1, 2, 3])).toEqual([1, 3, 6]));
});

describe("the axis", () => {
  it("shows steps as numbers and time as a clock", () => {
    expect([tick("steps", 1500, 3000), tick("time", 90, 600), tick("time", 0.5, 2)]).toEqual([
      "1,500",
      "1:30",
      "0.5 s",
    ]);
    expect(increments("time")).toContain(60);
    expect(increments("steps").every((v) => v >= 1)).toBe(true);
  });
  it("has one unit", () => expect(duration_ticks([0, 0.05, 0.1])).toEqual(["0", "50 ms", "100 ms"]));
  it("finds times between steps", () => {
    expect([-1, 0, 5, 15, 99].map((x) => interpolate([0, 10, 20], [0, 1, 3], x))).toEqual([0, 0, 0.5, 2, 3]);
    expect(interpolate([], [], 1)).toBeNaN();
  });
});

describe("the progress of a run", () => {
  const progress = run().progress;
  const endless = { ...progress, step: 1234, steps: null, left_s: null, elapsed_s: 83 };
  it("is relative to the planned steps", () =>
    expect(how_far(progress)).toEqual({
      share: 0.04,
      where: "step 4 of 100",
      left: "10 steps/s  ·  0:10 left",
      title: "4 %",
    }));
  it("has no share and no time left if the number of steps is unknown", () => {
    expect(how_far(endless)).toEqual({
      share: null,
      where: "1,234 steps",
      left: "10 steps/s  ·  1:23 elapsed",
      title: "1,234 steps",
    });
    expect(how_far({ ...endless, state: "completed" }).left).toBe("1:23 total");
    expect(how_far({ ...endless, step: 0, steps_per_s: null, state: "waiting" }).left).toBe("1:23 elapsed");
  });
  it("is in the notice when it ends", () => {
    expect(steps_done(progress)).toBe("4 of 100 steps");
    expect(steps_done({ ...endless, step: 1 })).toBe("1 step");
    const all = { ...run(), progress: { ...endless, state: "completed" as const } };
    expect(notices(all, { kind: "open" })[0]!.text).toBe("1,234 steps in 83 s.");
  });
});

describe("notices", () => {
  const open = { kind: "open" } as const;
  const lost = { kind: "lost", since: 0, words: "" } as const;
  const in_state = (state: "waiting" | "silent" | "completed" | "failed" | "interrupted", reason = "") => {
    const all = run();
    return { ...all, run: { ...all.run, reason }, progress: { ...all.progress, state, quiet_s: 130 } };
  };
  it("are empty without problems", () => expect(notices(run(), open)).toEqual([]));
  it("say that there is no step yet", () => expect(notices(in_state("waiting"), open)[0]!.text).toContain("first step"));
  it("say how a run ended", () => {
    expect(notices(in_state("completed"), open)[0]!.title).toBe("The run is complete");
    expect(notices(in_state("failed", "shard 0 was lost"), open)[0]!).toMatchObject({
      kind: "error",
      text: "shard 0 was lost. 4 of 100 steps in 400 ms.",
    });
    expect(notices(in_state("interrupted"), open)[0]!.kind).toBe("warning");
  });
  it("say that a run has fallen silent", () =>
    expect(notices(in_state("silent"), open)[0]!.title).toBe("No new data for 2:10"));
  it("report a lost connection as an error, but not after the end of the run", () => {
    expect(notices(run(), lost)[0]!).toMatchObject({ kind: "error", title: "Connection lost" });
    expect(notices(in_state("completed"), lost).map((n) => n.title)).toEqual([
      "The run is complete",
      "Server stopped",
    ]);
    expect(notices(null, lost)[0]!.title).toBe("No connection");
  });
  it("contain the server's message", () =>
    expect(notices(null, { ...lost, words: "needs a token" })[0]!.text).toBe("needs a token"));
  it("contain warnings of the run file", () => {
    const all = run();
    all.run.warning = "the last step is half written";
    expect(notices(all, open)[0]!).toMatchObject({ kind: "warning", text: "the last step is half written" });
  });
});

describe("the source", () => {
  it("keeps the token, and works below a path", () => {
    expect(api("api/step/3", "http://host:8410/")).toBe("http://host:8410/api/step/3");
    expect(api("api/events", "http://host/x/?token=a%26b")).toBe("http://host/x/api/events?token=a%26b");
  });
  it("detects a report by its data", () => {
    expect(inlined(" \n")).toBeNull();
    expect(inlined('{"runs":[{}],"made":"","command":""}')!.runs).toHaveLength(1);
    expect(() => inlined('{"runs":[]}')).toThrow("no run");
    expect(() => inlined("{")).toThrow();
  });
});
