// All views of one run, in the order of the page.
import type { Along } from "./axis";
import type { All } from "./contract";
import { fresh_id, h } from "./dom";
import type { StepSource } from "./source";
import type { Theme } from "./theme";
import { type View, section } from "./view";
import { BatchView } from "./views/batch";
import { HeatView } from "./views/heat";
import { Learning } from "./views/learning";
import { EventsView, SettingsView, ShardsView } from "./views/rest";
import { StepView } from "./views/step";
import { Summary } from "./views/summary";
import { TimeView } from "./views/time";
import { Waiting } from "./views/waiting";
import { WorkersView } from "./views/workers";

export class RunPage implements View {
  readonly element: HTMLElement;
  readonly nav = h("nav", { class: "jump", "aria-label": "Parts of the page" });
  private readonly needs_steps: HTMLElement[];
  private readonly views: View[];
  private due = new Set<View>();
  private draw: (view: View) => void = () => undefined;
  private waiting = false;

  constructor(theme: Theme, source: StepSource) {
    const summary = new Summary();
    const learning = new Learning(theme);
    const step = new StepView(theme, source);
    const pick = (chosen: number) => step.pick(chosen);
    const waiting = new Waiting(theme, pick);
    const heat = new HeatView(theme, pick);
    const workers = new WorkersView();
    const time = new TimeView(theme);
    const batch = new BatchView(theme);
    const shards = new ShardsView();
    const events = new EventsView();
    const settings = new SettingsView();
    heat.element.append(workers.element);
    const processes = section("Shards and events", "", h("div", { class: "grid two" }, shards.element, events.element));
    this.views = [summary, learning, waiting, step, heat, workers, time, batch, shards, events, settings];
    this.needs_steps = [summary, learning, waiting, step, heat, time, batch].map((view) => view.element);
    for (const part of [
      learning.element,
      waiting.element,
      step.element,
      heat.element,
      time.element,
      batch.element,
      processes,
      settings.element,
    ]) {
      part.id ||= fresh_id("part");
      this.nav.append(h("a", { href: `#${part.id}` }, part.dataset["title"] ?? ""));
    }
    addEventListener("beforeprint", () => this.show_all());
    this.element = h("div", { class: "run" }, ...this.needs_steps, processes, settings.element);
  }

  // Before the first step the charts are hidden; a notice explains why.
  show(all: All, along: Along): void {
    const nothing_yet = all.steps.step.length === 0;
    for (const element of [...this.needs_steps, this.nav]) element.hidden = nothing_yet;
    this.draw = (view) => view.show(all, along);
    this.due = new Set(this.views);
    for (const view of this.views) if (in_sight(view.element)) this.show_one(view);
    this.later();
  }

  // Views outside the window are drawn one by one while the browser is idle, so that scrolling and keys stay responsive.
  private later(): void {
    if (this.waiting || this.due.size === 0) return;
    this.waiting = true;
    when_idle(() => {
      this.waiting = false;
      const next = this.due.values().next().value;
      if (next) this.show_one(next);
      this.later();
    });
  }

  private show_all(): void {
    for (const view of this.due) this.show_one(view);
  }

  private show_one(view: View): void {
    this.due.delete(view);
    this.draw(view);
  }
}

function in_sight(element: HTMLElement): boolean {
  const box = element.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}

function when_idle(action: () => void): void {
  if ("requestIdleCallback" in window) requestIdleCallback(action, { timeout: 300 });
  else setTimeout(action, 0);
}
