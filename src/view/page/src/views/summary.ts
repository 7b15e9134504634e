// The most important numbers.
import type { All } from "../contract";
import { h, say } from "../dom";
import { count, duration, number, percent } from "../format";
import { saved_figure } from "../saved_logic";
import type { View } from "../view";

interface Figure {
  label: string;
  value: string;
  about: string;
}

export function figures(all: All): Figure[] {
  const { totals: t, progress, run } = all;
  const pushed = t.used + t.late + t.censored + t.refused;
  const missing = [
    `${count(t.late)} late`,
    `${count(t.censored)} not arrived`,
    t.refused ? `${count(t.refused)} refused` : "",
  ]
    .filter(Boolean)
    .join(", ");
  return [
    {
      label: "Test accuracy",
      value: percent(t.test_accuracy, 2),
      about: t.test_loss === null ? "not evaluated yet" : `loss ${number(t.test_loss, 4, true)}`,
    },
    {
      label: "Training loss",
      value: number(t.loss, 4, true),
      about: t.accuracy === null ? "" : `accuracy ${percent(t.accuracy)}`,
    },
    {
      label: "Median step time",
      value: duration(t.step_median_s),
      about: t.step_p90_s === null ? "" : `90th percentile ${duration(t.step_p90_s)}`,
    },
    { label: "Gradients per step", value: number(t.contributors_mean, 3), about: `of ${count(run.workers)} workers` },
    { label: "Gradients used", value: pushed ? percent(t.used / pushed) : "–", about: missing },
    { label: "Time saved vs. synchronous", ...(progress.step ? saved_figure(t) : { value: "–", about: "" }) },
  ];
}

export class Summary implements View {
  readonly element = h("dl", { class: "figures" });
  private cells: { value: HTMLElement; about: HTMLElement }[] = [];

  show(all: All): void {
    const list = figures(all);
    if (this.cells.length === 0) {
      for (const figure of list) {
        const value = h("dd", { class: "value" });
        const about = h("dd", { class: "about" });
        this.cells.push({ value, about });
        this.element.append(h("div", {}, h("dt", {}, figure.label), value, about));
      }
    }
    list.forEach((figure, i) => {
      say(this.cells[i]!.value, figure.value);
      say(this.cells[i]!.about, figure.about);
    });
  }
}
