// A view: an element that shows a part of a run's state.
import type { Along } from "./axis";
import type { All, Steps } from "./contract";
import { fresh_id, h } from "./dom";

export interface View {
  element: HTMLElement;
  show(all: All, along: Along): void;
}

// Dispatched on the window before another run is shown, to reset selections.
export const other_run = "otherrun";

export function xs_of(steps: { step: number[]; at_s: number[] }, along: Along): number[] {
  return along === "time" ? steps.at_s : steps.step;
}

// The number of steps in each bucket; the last one may be incomplete.
export function bucket_sizes(steps: Steps, done: number): number[] {
  return steps.step.map((first, i) => Math.max(1, (steps.step[i + 1] ?? Math.max(done, first + 1)) - first));
}

export function section(title: string, about: string, ...children: HTMLElement[]): HTMLElement {
  const id = fresh_id("section");
  return h(
    "section",
    { "aria-labelledby": id, "data-title": title },
    h("header", { class: "lead" }, h("h2", { id }, title), about ? h("p", {}, about) : null),
    ...children,
  );
}
