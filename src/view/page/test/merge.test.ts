import { describe, expect, it } from "vitest";
import { merge } from "../src/merge";
import { run, steps } from "./fixture";

describe("an update", () => {
  it("replaces the parts it contains and keeps the others", () => {
    const before = run();
    const after = merge(before, { progress: { ...before.progress, step: 5 } });
    expect(after.progress.step).toBe(5);
    expect(after.steps).toBe(before.steps);
    expect(before.progress.step).toBe(4);
  });

  it("replaces buckets of steps from its first one", () => {
    const after = merge(run(), { steps: steps(1, 3, 3, 9) });
    expect(after.steps.step).toEqual([0, 1, 2, 3, 4, 5]);
    expect(after.steps.loss).toEqual([1, 1, 1, 9, 9, 9]);
    expect(after.steps.saved_s).toHaveLength(6);
  });

  it("finds its position by the step, regardless of `from`", () => {
    const before = run({ steps: steps(4, 0, 5) });
    for (const from of [3, 12]) {
      const after = merge(before, { steps: { ...steps(4, 12, 3, 9), from } });
      expect(after.steps.step).toEqual([0, 4, 8, 12, 16, 20]);
      expect(after.steps.loss).toEqual([1, 1, 1, 9, 9, 9]);
    }
  });

  it("with other buckets replaces all of them", () => {
    const after = merge(run(), { steps: steps(2, 0, 2, 5) });
    expect(after.steps.per).toBe(2);
    expect(after.steps.step).toEqual([0, 2]);
    expect(merge(run(), { steps: { ...steps(2, 0, 0), from: 4 } }).steps.step).toEqual([]);
  });

  it("that has no new bucket changes none", () => {
    expect(merge(run(), { steps: { ...steps(1, 0, 0), from: 4 } }).steps.step).toEqual([0, 1, 2, 3]);
  });

  it("grows the heat map by columns", () => {
    const before = run();
    const after = merge(before, {
      heat: {
        per: 1,
        from: 1,
        step: [1, 2],
        time_s: [
          [7, 8],
          [9, 10],
        ],
        late: [
          [1, 1],
          [0, 0],
        ],
      },
    });
    expect(after.heat.step).toEqual([0, 1, 2]);
    expect(after.heat.rows).toEqual(before.heat.rows);
    expect(after.heat.time_s).toEqual([
      [1, 2],
      [7, 8],
      [9, 10],
    ]);
    expect(after.heat.late).toEqual([
      [0, 1],
      [1, 1],
      [0, 0],
    ]);
  });

  it("with other rows replaces the whole map", () => {
    const before = run();
    const rows = [...before.heat.rows, { label: "worker 2", first: 2, count: 1, node: "b" }];
    const after = merge(before, {
      heat: {
        ...before.heat,
        rows,
        time_s: [
          [1, 2, 3],
          [4, 5, 6],
        ],
        late: [
          [0, 0, 0],
          [0, 0, 0],
        ],
      },
    });
    expect(after.heat.rows).toHaveLength(3);
    expect(after.heat.time_s[0]).toEqual([1, 2, 3]);
  });

  it("after update gives the same as the complete state", () => {
    let known = run({ steps: steps(1, 0, 1, 0) });
    for (let done = 1; done <= 50; done += 7) known = merge(known, { steps: steps(1, done - 1, 8, 0) });
    expect(known.steps).toEqual(steps(1, 0, 57, 0));
  });
});
