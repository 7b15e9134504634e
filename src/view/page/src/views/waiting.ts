// The cutoff of each step, and the reasons for it.
import type { Along } from "../axis";
import { Chart } from "../chart";
import type { All, Decision } from "../contract";
import { h } from "../dom";
import { count, duration } from "../format";
import type { Theme } from "../theme";
import { type View, section, xs_of } from "../view";

export class Waiting implements View {
  readonly element: HTMLElement;
  private readonly cutoff: Chart;
  private readonly list = h("ol", {
    class: "decisions long",
    tabindex: 0,
    "aria-label": "Last decisions, newest first",
  });
  private newest: Decision | null = null;

  constructor(
    theme: Theme,
    private readonly pick: (step: number) => void,
  ) {
    this.cutoff = new Chart(theme, {
      title: "Cutoff",
      about:
        "Gradients that a step waits for. The oracle is the best cutoff in retrospect; it is known if all run-times are.",
      unit: "count",
      upper: 0.8,
      height: 260,
      lines: [
        { label: "alive", colour: "grey", dash: [2, 3], width: 1.25 },
        { label: "used", colour: "orange", width: 1.25 },
        { label: "oracle", colour: "green", mark: "dot" },
        { label: "cutoff", colour: "blue", stairs: true, width: 2 },
      ],
      empty: "No decision yet.",
    });
    const reasons = h("div", { class: "card" }, h("h3", {}, "Last decisions"), this.list);
    this.element = section("Waiting", "", h("div", { class: "grid wide-left" }, this.cutoff.element, reasons));
  }

  show(all: All, along: Along): void {
    const s = all.steps;
    this.cutoff.draw(along, xs_of(s, along), [s.alive, s.contributors, s.oracle, s.cutoff]);
    const newest = all.decisions[0] ?? null;
    if (newest && this.newest && newest.step === this.newest.step && newest.at_s === this.newest.at_s) return;
    this.newest = newest;
    this.list.replaceChildren(
      ...all.decisions.map((d) =>
        h(
          "li",
          {},
          h(
            "button",
            { type: "button", class: "plain step", title: "Show this step", onclick: () => this.pick(d.step) },
            `step ${count(d.step)}`,
          ),
          h("strong", {}, ` ${count(d.cutoff)} of ${count(d.alive)}`),
          d.limit_s === null ? null : h("span", { class: "muted" }, ` within ${duration(d.limit_s)}`),
          h("p", {}, d.reason),
        ),
      ),
    );
    if (!newest) this.list.replaceChildren(h("li", { class: "muted" }, "No decision yet."));
  }
}
