import { describe, expect, it } from "vitest";
import {
  common_target,
  differing,
  kinds,
  metrics,
  names,
  statistics,
  time_to_accuracy,
  winners,
} from "../src/compare_logic";
import type { All } from "../src/contract";
import {
  cividis,
  column_ticks,
  describe_cell,
  describe_heat,
  groups,
  heat_scale,
  row_tops,
  shade,
} from "../src/heat_logic";
import { run, steps } from "./fixture";

function reached(accuracy: (number | null)[], settings: Record<string, string>, file: string): All {
  return run(
    {
      evaluations: { step: accuracy.map((_, i) => i), at_s: accuracy.map((_, i) => i * 10), loss: accuracy, accuracy },
    },
    settings,
    file,
  );
}

describe("several runs", () => {
  const list = [
    reached([0.5, 0.8], { policy: "sync", seed: "1", workers: "4" }, "runs/a.db"),
    reached([0.7, 0.9], { policy: "bayes", seed: "1", workers: "4" }, "runs/b.db"),
    reached([0.6, 0.8505], { policy: "bayes", seed: "2", workers: "4" }, "runs/c.db"),
  ];
  it("are distinguished by the settings that differ, except seeds", () => expect(differing(list)).toEqual(["policy"]));
  it("have unique names", () => {
    expect(names(list)).toEqual(["sync, seed 1", "bayes, seed 1", "bayes, seed 2"]);
    expect(names([list[0]!, { ...list[0]!, run: { ...list[0]!.run, file: "runs/z.db" } }])).toEqual([
      "sync (a.db)",
      "sync (z.db)",
    ]);
  });
  it("are of one configuration if only their seeds differ", () =>
    expect(kinds(list)).toEqual([
      { kind: "sync", members: [0] },
      { kind: "bayes", members: [1, 2] },
    ]));
  it("are timed to an accuracy that all reached", () => {
    expect(common_target(list)).toBe(0.8);
    expect(list.map((all) => time_to_accuracy(all, 0.8))).toEqual([10, 10, 10]);
    expect(time_to_accuracy(list[0]!, 0.99)).toBeNull();
    expect(metrics(list)[1]!.title).toBe("Time to 80.0 %");
    expect(common_target([...list, run()])).toBeNull();
  });
  it("have a mean, a best and a worst value", () => {
    expect(statistics([3, null, 1], "less")).toEqual({ known: 2, mean: 2, best: 1, worst: 3 });
    expect(statistics([3, 1], "more")).toMatchObject({ best: 3, worst: 1 });
    expect(statistics([null], "more").mean).toBeNull();
  });
  it("have winners if values differ", () => {
    expect([...winners([1, 3, 3, null], "more")]).toEqual([1, 2]);
    expect([...winners([1, 3], "less")]).toEqual([0]);
    expect([...winners([1, 3], null), ...winners([2, 2], "more"), ...winners([2, null], "more")]).toEqual([]);
  });
});

describe("the heat map", () => {
  const { heat } = run();
  it("has a scale without outliers", () => {
    const wide = {
      ...heat,
      step: [0],
      time_s: [Array.from({ length: 1000 }, (_, i) => i + 1)],
      rows: Array.from({ length: 1000 }, () => heat.rows[0]!),
    };
    const scale = heat_scale(wide)!;
    expect(scale.low).toBeLessThan(15);
    expect(scale.high).toBeGreaterThan(985);
    expect(heat_scale({ ...heat, time_s: [[null, null]] })).toBeNull();
  });
  it("has a scale even if all times are equal", () => {
    const scale = heat_scale({
      ...heat,
      time_s: [
        [2, 2],
        [2, 2],
      ],
    })!;
    expect(shade(2, scale)).toBeCloseTo(0.5, 1);
  });
  it("grows lighter with time", () => {
    const light = (share: number) => cividis(share).reduce((a, b) => a + b);
    expect(light(0)).toBeLessThan(light(0.5));
    expect(light(0.5)).toBeLessThan(light(1));
    expect(cividis(-1)).toEqual(cividis(0));
  });
  it("groups rows by node, with gaps", () => {
    expect(groups(heat)).toEqual([
      { node: "a", first: 0, rows: 1 },
      { node: "b", first: 1, rows: 1 },
    ]);
    expect(row_tops(groups(heat), 10, 4)).toEqual([0, 14, 24]);
  });
  it("has round labels under its columns, in steps and in time", () => {
    const long = { ...heat, per: 4, step: Array.from({ length: 100 }, (_, i) => 4 * i) };
    expect(column_ticks(long, steps(1, 0, 400), "steps", 4)).toEqual(
      [0, 100, 200, 300].map((s) => ({ label: String(s), column: s / 4 })),
    );
    expect(column_ticks(long, steps(1, 0, 400), "time", 4).map((t) => t.label)).toEqual([
      "0 s",
      "10 s",
      "20 s",
      "30 s",
    ]);
    expect(column_ticks(long, steps(1, 0, 400), "time", 4)[1]!.column).toBeCloseTo(25);
    expect(column_ticks({ ...heat, step: [] }, steps(1, 0, 0), "steps", 4)).toEqual([]);
  });
  it("describes cells", () => {
    expect(describe_cell(heat, 0, 1)).toBe("worker 1 on b, step 0: 2 s, not in time");
    expect(describe_cell(heat, 1, 1)).toBe("worker 1 on b, step 1: unknown");
    expect(describe_cell({ ...heat, per: 5, step: [0, 5] }, 1, 0)).toContain("steps 5 to 9");
    expect(describe_heat(heat)).toContain("Least often in time: worker 1 on b, late in 50 %");
  });
});
