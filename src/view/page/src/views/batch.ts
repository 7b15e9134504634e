// The inputs of the optimizer: samples per update, their noise scale, the learning rate.
import type { Along } from "../axis";
import { Chart } from "../chart";
import type { All } from "../contract";
import { h } from "../dom";
import type { Theme } from "../theme";
import { type View, section, xs_of } from "../view";

export class BatchView implements View {
  readonly element: HTMLElement;
  private readonly batch: Chart;
  private readonly noise: Chart;
  private readonly rate: Chart;
  private readonly fresh: Chart;

  constructor(theme: Theme) {
    const height = 180;
    this.batch = new Chart(theme, {
      title: "Effective batch",
      unit: "count",
      upper: 0.8,
      height,
      lines: [{ label: "samples per step", colour: "blue" }],
      empty: "No samples yet.",
    });
    this.noise = new Chart(theme, {
      title: "Noise scale",
      unit: "count",
      log: true,
      height,
      lines: [
        { label: "noise scale", colour: "vermillion", width: 1.25 },
        { label: "batch", colour: "blue", dash: [4, 3], width: 1.25 },
      ],
      empty: "Unknown: needs at least two gradients per step, and a few steps.",
    });
    this.rate = new Chart(theme, {
      title: "Learning rate",
      unit: "number",
      from_zero: true,
      height,
      lines: [{ label: "learning rate", colour: "green", stairs: true, width: 2 }],
      empty: "No learning rate yet.",
    });
    this.fresh = new Chart(theme, {
      title: "Fresh blocks",
      unit: "percent",
      upper: 0.8,
      height,
      lines: [{ label: "share of fresh blocks", colour: "purple" }],
    });
    this.element = section(
      "Batch and learning rate",
      "A larger batch helps while it is well below the noise scale, and hardly when it is above.",
      h("div", { class: "grid three" }, this.batch.element, this.noise.element, this.rate.element, this.fresh.element),
    );
  }

  show(all: All, along: Along): void {
    const s = all.steps;
    const xs = xs_of(s, along);
    const above_zero = (values: (number | null)[]) => values.map((v) => (v !== null && v > 0 ? v : null));
    const noise = above_zero(s.noise_scale);
    this.batch.draw(along, xs, [s.samples]);
    this.noise.draw(along, xs, noise.some((v) => v !== null) ? [noise, above_zero(s.samples)] : [[], []]);
    this.rate.draw(along, xs, [s.learning_rate]);
    this.fresh.element.hidden = s.fresh.every((v) => v === null); // unknown without partial pulls
    this.fresh.draw(along, xs, [s.fresh]);
  }
}
