// Loss and accuracy, in training and on the test set.
import uPlot from "uplot";
import type { Along } from "../axis";
import { Chart } from "../chart";
import type { All, Maybe } from "../contract";
import { h } from "../dom";
import type { Theme } from "../theme";
import { type View, section, xs_of } from "../view";

// Training values at steps and test values at evaluations, over a common x axis.
export function joined(all: All, along: Along, what: "loss" | "accuracy"): (Maybe | undefined)[][] {
  const training = [xs_of(all.steps, along), all.steps[what]] as uPlot.AlignedData;
  const test = [xs_of(all.evaluations, along), all.evaluations[what]] as uPlot.AlignedData;
  if (test[0].length === 0) return [training[0] as number[], training[1] as Maybe[], []];
  if (training[0].length === 0) return [test[0] as number[], [], test[1] as Maybe[]];
  return uPlot.join([training, test]) as (Maybe | undefined)[][];
}

export class Learning implements View {
  readonly element: HTMLElement;
  private readonly loss: Chart;
  private readonly accuracy: Chart;

  constructor(theme: Theme) {
    const lines = [
      { label: "training", colour: "blue" as const, width: 1.25 },
      { label: "test", colour: "vermillion" as const, points: true, width: 2 },
    ];
    this.loss = new Chart(theme, { title: "Loss", unit: "number", lines, empty: "No loss yet." });
    this.accuracy = new Chart(theme, { title: "Accuracy", unit: "percent", lines, empty: "No accuracy yet." });
    this.element = section("Learning", "", h("div", { class: "grid two" }, this.loss.element, this.accuracy.element));
  }

  show(all: All, along: Along): void {
    for (const what of ["loss", "accuracy"] as const) {
      const [xs, training, test] = joined(all, along, what);
      this[what].draw(along, xs as number[], [training!, test!]);
    }
  }
}
