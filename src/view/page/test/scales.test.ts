import { describe, expect, it } from "vitest";
import { at_or_before, round_ones, format_value, x_range, y_range, y_ticks } from "../src/chart_scales";

describe("a chart's axes", () => {
  it("have a small margin, but none below zero or above 100 %", () => {
    expect(y_range(1, 2, { unit: "number" })).toEqual([0.94, 2.06]);
    expect(y_range(0.01, 2, { unit: "number" })[0]).toBe(0);
    expect(y_range(-3, -1, { unit: "number" })).toEqual([-3.12, -0.88]);
    expect(y_range(0.2, 0.99, { unit: "percent" })[1]).toBe(1);
  });
  it("begin at zero where asked to, or low enough for small changes to look small", () => {
    expect(y_range(5, 10, { unit: "count", from_zero: true })[0]).toBe(0);
    expect(y_range(2170, 2175, { unit: "count", upper: 0.8 })[0]).toBeLessThan(1740);
    expect(y_range(14, 24, { unit: "count", upper: 0.8 })[0]).toBeCloseTo(13.4);
  });
  it("are valid for no value or a single one", () => {
    for (const [low, high] of [
      [0, 0],
      [5, 5],
      [-1, -1],
      [null, null],
    ] as [number, number][]) {
      const [bottom, top] = y_range(low, high, { unit: "number" });
      expect(top).toBeGreaterThan(bottom);
    }
    expect(x_range(3, 3, undefined)).toEqual([3, 4]);
    expect(x_range(1, 24, "rank")).toEqual([0.5, 24.5]);
  });
  it("are labelled in their unit", () => {
    expect(y_ticks([0, 0.5], "percent")).toEqual(["0 %", "50 %"]);
    expect(y_ticks([0, 20000, 1500], "count")).toEqual(["0", "20k", "1,500"]);
    expect(format_value.duration(0.0123)).toBe("12.3 ms");
  });
  it("that are logarithmic have lines at 1, 2 and 5", () => {
    expect(round_ones(null, [10, 20, 30, 50, 90, 100, 0.2])).toEqual([10, 20, null, 50, null, 100, 0.2]);
  });
});

describe("a legend", () => {
  it("shows the value at the cursor, or the last one before it if the line has none there", () => {
    const line = [undefined, 1, undefined, null, undefined];
    expect([0, 1, 2, 3, 4, 99].map((i) => at_or_before(line, i))).toEqual([null, 1, 1, null, null, null]);
  });
});
