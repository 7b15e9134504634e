import { describe, expect, it } from "vitest";
import { metrics } from "../src/compare_logic";
import { saved_figure, saved_words } from "../src/saved_logic";
import { run } from "./fixture";

const totals = { ...run().totals, waited_s: 60, wait_all_s: 80, saved_s: 20 };
const bound = { ...totals, saved_exact: false };
const with_forecast = { ...bound, saved_about_s: 60 };

describe("the time saved vs. synchronous", () => {
  it("is exact if every run-time is known", () => {
    expect(saved_figure(totals)).toEqual({ value: "20 s", about: "25.0 % of 80 s" });
    expect(saved_words(totals)).not.toMatch(/at least|about/);
  });

  it("is a lower bound if gradients never arrived and there is no forecast", () => {
    expect(saved_figure(bound)).toEqual({ value: "≥ 20 s", about: "at least 25.0 % of 80 s" });
    expect(saved_words(bound)).toContain("at least 20 s more");
    expect(saved_words(bound)).not.toContain("about");
  });

  it("is a lower bound and an estimate if there is a forecast", () => {
    expect(saved_figure(with_forecast)).toEqual({ value: "≥ 20 s", about: "about 60 s (forecast), 50.0 % of 2:00" });
    expect(saved_words(with_forecast)).toContain("at least 20 s more");
    expect(saved_words(with_forecast)).toContain("about 2:00: about 60 s more (forecast)");
  });

  it("has a column of its own in a comparison if any run has a forecast", () => {
    const titles = (list: (typeof totals)[]) => metrics(list.map((t) => run({ totals: t }))).map((m) => m.title);
    expect(titles([totals])).toContain("Time saved");
    expect(titles([totals, bound])).toContain("Time saved (lower bound)");
    expect(titles([totals, bound])).not.toContain("Time saved (forecast)");
    const both = [totals, bound, with_forecast].map((t) => run({ totals: t }));
    const about = metrics(both).find((m) => m.title === "Time saved (forecast)")!;
    expect(both.map(about.of)).toEqual([20, null, 60]);
  });
});
