// The comparison at the beginning of a report of several runs: tables, and charts with one line per run.
import uPlot from "uplot";
import type { Along } from "../axis";
import { Chart, type Line } from "../chart";
import type { Unit } from "../chart_scales";
import { kinds, metrics, names, statistics, winners } from "../compare_logic";
import type { All, Maybe } from "../contract";
import { h } from "../dom";
import { plural } from "../format";
import { state_words } from "../notices";
import type { Colour, Theme } from "../theme";
import { section, xs_of } from "../view";

const colours: Colour[] = ["blue", "vermillion", "green", "orange", "purple", "sky"];
const dashes: number[][] = [[], [7, 4], [2, 3]];
const most_lines = 18;

type Course = (all: All, along: Along) => { xs: number[]; ys: Maybe[] };

// Values on the test set, or in training for runs without evaluations.
function course_of(what: "loss" | "accuracy"): Course {
  return (all, along) =>
    all.evaluations.step.length
      ? { xs: xs_of(all.evaluations, along), ys: all.evaluations[what] }
      : { xs: xs_of(all.steps, along), ys: all.steps[what] };
}

export class Compare {
  readonly element: HTMLElement;
  private readonly charts: { chart: Chart; course: Course }[];
  private readonly drawn: All[];

  constructor(
    theme: Theme,
    private readonly runs: All[],
    choose: (run: number) => void,
  ) {
    const labels = names(runs);
    const groups = kinds(runs);
    this.drawn = runs.slice(0, most_lines);
    const style = (i: number): { colour: Colour; dash: number[] } => {
      const group = groups.findIndex((entry) => entry.members.includes(i));
      const nth = groups.length === 1 ? i : group;
      return {
        colour: colours[nth % colours.length]!,
        dash: dashes[(nth + Math.floor(nth / colours.length)) % dashes.length]!,
      };
    };
    const lines = (extra: Partial<Line>): Line[] =>
      this.drawn.map((_, i) => ({ label: labels[i]!, ...style(i), ...extra }));
    const make = (title: string, about: string, unit: Unit, course: Course, extra: Partial<Line>, upper?: number) => ({
      chart: new Chart(theme, {
        title,
        about,
        unit,
        upper,
        height: 280,
        lines: lines(extra),
        empty: "No run has this data.",
      }),
      course,
    });
    this.charts = [
      make(
        "Accuracy",
        "On the test set, or in training for runs without evaluations.",
        "percent",
        course_of("accuracy"),
        { points: true },
      ),
      make("Loss", "On the test set, or in training for runs without evaluations.", "number", course_of("loss"), {
        points: true,
      }),
      make(
        "Cutoff",
        "Gradients that a step waits for.",
        "count",
        (all, along) => ({ xs: xs_of(all.steps, along), ys: all.steps.cutoff }),
        { width: 1.25, ...(groups.length > colours.length ? {} : { dash: [] }) },
        0.8,
      ),
    ];
    const repeated = groups.some((entry) => entry.members.length > 1) && groups.length < runs.length;
    this.element = section(
      "Comparison",
      `${plural(runs.length, "run")}${repeated ? ` of ${plural(groups.length, "configuration")}` : ""}. A star marks the best value of a column.`,
      ...(repeated ? [this.kinds_table()] : []),
      this.runs_table(labels, choose),
      h("div", { class: "grid three" }, ...this.charts.map(({ chart }) => chart.element)),
      ...(runs.length > most_lines
        ? [h("p", { class: "muted" }, `The charts show the first ${most_lines} runs.`)]
        : []),
    );
  }

  show(along: Along): void {
    for (const { chart, course } of this.charts) {
      const courses = this.drawn.map((all) => course(all, along));
      const some = courses.filter(({ xs }) => xs.length > 0);
      if (some.length === 0) {
        chart.draw(
          along,
          [],
          courses.map(() => []),
        );
        continue;
      }
      const [xs, ...ys] = uPlot.join(some.map(({ xs, ys }) => [xs, ys] as uPlot.AlignedData)) as [
        number[],
        ...(Maybe | undefined)[][],
      ];
      let next = 0;
      chart.draw(
        along,
        xs,
        courses.map((one) => (one.xs.length ? ys[next++]! : [])),
      );
    }
  }

  private runs_table(labels: string[], choose: (run: number) => void): HTMLElement {
    const list = metrics(this.runs);
    const values = list.map((metric) => this.runs.map(metric.of));
    const stars = list.map((metric, k) => winners(values[k]!, metric.better));
    const rows = this.runs.map((all, i) =>
      h(
        "tr",
        {},
        h(
          "th",
          { scope: "row", class: "text" },
          h(
            "button",
            { type: "button", class: "plain", title: "Show this run below", onclick: () => choose(i) },
            labels[i]!,
          ),
        ),
        h("td", { class: "text" }, state_words[all.progress.state]?.word ?? all.progress.state),
        ...list.map((metric, k) =>
          h(
            "td",
            { class: stars[k]!.has(i) ? "winner" : "" },
            stars[k]!.has(i) ? h("span", { "aria-label": "best", role: "img" }, "★ ") : "",
            metric.format(values[k]![i]!),
          ),
        ),
      ),
    );
    return h(
      "div",
      { class: "card" },
      h("h3", {}, "All runs"),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "All runs" },
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              h("th", { scope: "col", class: "text" }, "Run"),
              h("th", { scope: "col", class: "text" }, "State"),
              ...list.map((m) => h("th", { scope: "col" }, m.title)),
            ),
          ),
          h("tbody", {}, ...rows),
        ),
      ),
    );
  }

  private kinds_table(): HTMLElement {
    const list = metrics(this.runs).filter((metric) => metric.better !== null);
    const groups = kinds(this.runs);
    const rows = groups.map(({ kind, members }) => {
      const cells = list.flatMap((metric) => {
        const s = statistics(
          members.map((i) => metric.of(this.runs[i]!)),
          metric.better,
        );
        const star = s.known > 0 && s.known < members.length ? "*" : "";
        return [metric.format(s.mean) + star, metric.format(s.best), metric.format(s.worst)].map((text, k) =>
          h("td", { class: k === 0 ? "first" : "" }, text),
        );
      });
      return h("tr", {}, h("th", { scope: "row", class: "text" }, kind), h("td", {}, String(members.length)), ...cells);
    });
    const upper = h(
      "tr",
      {},
      h("th", { scope: "col", class: "text", rowspan: 2 }, "Configuration"),
      h("th", { scope: "col", rowspan: 2 }, "Runs"),
      ...list.map((m) => h("th", { scope: "colgroup", colspan: 3, class: "over" }, m.title)),
    );
    const lower = h(
      "tr",
      {},
      ...list.flatMap(() => [
        h("th", { scope: "col", class: "first" }, "mean"),
        h("th", { scope: "col" }, "best"),
        h("th", { scope: "col" }, "worst"),
      ]),
    );
    return h(
      "div",
      { class: "card" },
      h("h3", {}, "Mean, best and worst of repeated runs"),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Mean, best and worst of repeated runs" },
        h("table", { class: "kinds" }, h("thead", {}, upper, lower), h("tbody", {}, ...rows)),
      ),
      h(
        "p",
        { class: "muted" },
        "Runs of one configuration differ only in their seed. A star marks a mean over the runs that have a value.",
      ),
    );
  }
}
