import { describe, expect, it } from "vitest";
import { clock, count, date, duration, fixed, number, percent, plural, time_unit } from "../src/format";

describe("numbers", () => {
  it("have three significant digits", () => {
    expect([0, 1, 1.2345, 12.345, 123.45, 12345, 0.012345, -2.5].map((v) => number(v))).toEqual([
      "0",
      "1",
      "1.23",
      "12.3",
      "123",
      "12,345",
      "0.0123",
      "-2.5",
    ]);
  });
  it("have an exponent only if they are very large or small", () => {
    expect([1234567, 0.000012, 0.00001].map((v) => number(v))).toEqual(["1.23e6", "1.2e-5", "1e-5"]);
  });
  it("that are unknown are a dash", () => {
    expect([number(null), count(undefined), percent(NaN), duration(null), clock(null), fixed(null, 2)]).toEqual([
      "–",
      "–",
      "–",
      "–",
      "–",
      "–",
    ]);
  });
  it("of shares are percent", () =>
    expect([percent(0.8704, 2), percent(1), percent(0.5, 0)]).toEqual(["87.04 %", "100.0 %", "50 %"]));
  it("agree with their noun", () =>
    expect([plural(1, "run"), plural(2175, "worker")]).toEqual(["1 run", "2,175 workers"]));
});

describe("durations", () => {
  it("come in the unit that suits them", () => {
    expect([0, 4.2e-7, 0.00087, 0.0123, 0.4, 1, 12.34, 99, 723, 11045].map((v) => duration(v))).toEqual([
      "0 s",
      "0.42 µs",
      "870 µs",
      "12.3 ms",
      "400 ms",
      "1 s",
      "12.3 s",
      "99 s",
      "12:03",
      "3:04:05",
    ]);
  });
  it("are not a thousand of the smaller unit", () =>
    expect([0.9999, 0.00099999].map((v) => duration(v))).toEqual(["1 s", "1 ms"]));
  it("on a clock", () =>
    expect([0, 27.4, 60, 3600, 90061].map(clock)).toEqual(["0:00", "0:27", "1:00", "1:00:00", "1 d 1:01:01"]));
  it("in columns keep their zeros", () =>
    expect([0.041, 0.0412, 2].map((v) => duration(v, true))).toEqual(["41.0 ms", "41.2 ms", "2.00 s"]));
  it("below zero keep their sign", () => expect([duration(-0.01), clock(-65)]).toEqual(["−10 ms", "−1:05"]));
  it("have axes in one unit", () =>
    expect([0.0009, 0.5, 30, 3000, 1e5].map((v) => time_unit(v).name)).toEqual(["µs", "ms", "s", "min", "h"]));
});

describe("dates", () => {
  it("are UTC", () => expect(date("2026-11-16T04:00:30Z")).toBe("16 Nov 2026, 04:00 UTC"));
  it("are unchanged if invalid", () => expect(date("yesterday")).toBe("yesterday"));
});
