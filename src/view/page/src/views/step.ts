// The details of a step: the forecast of its run-times, the run-times, and the cutoff.
import type uPlot from "uplot";
import { Chart } from "../chart";
import type { All, StepDetail } from "../contract";
import { fresh_id, h, say, set } from "../dom";
import { count, duration } from "../format";
import type { StepSource } from "../source";
import { Choices, describe_arrival, describe_step, order_statistics } from "../step_logic";
import type { Theme } from "../theme";
import { type View, other_run, section } from "../view";

export class StepView implements View {
  readonly element: HTMLElement;
  private readonly chart: Chart;
  private readonly slider: HTMLInputElement;
  private readonly entry: HTMLInputElement;
  private readonly follow: HTMLInputElement;
  private readonly words = h("p", { class: "words" });
  private readonly cursor_words = h("p", { class: "muted cursor" });
  private readonly reasons = h("ol", { class: "decisions" });
  private choices = new Choices([], 0);
  private detail: StepDetail | null = null;
  private wanted: number | null = null;
  private busy = false;
  private runs = 0; // number of runs shown before

  constructor(
    private readonly theme: Theme,
    private readonly source: StepSource,
  ) {
    const slider_id = fresh_id("slider");
    const live = source.choices() === null;
    this.slider = h("input", {
      type: "range",
      id: slider_id,
      min: 0,
      max: 0,
      value: 0,
      oninput: () => this.chosen(this.choices.step_at(Number(this.slider.value))),
    });
    this.entry = h("input", {
      type: "number",
      min: 0,
      value: 0,
      "aria-label": "Step, as a number",
      onchange: () => this.chosen(Number(this.entry.value)),
    });
    this.follow = h("input", {
      type: "checkbox",
      checked: live,
      onchange: () => this.follow.checked && this.want(this.choices.step_at(this.choices.length - 1)),
    });
    this.chart = new Chart(theme, {
      title: "Run-times in order of arrival",
      about: "From the first gradient of the step to the last. The step waited for those left of the cutoff.",
      unit: "duration",
      along: "rank",
      upper: 0.8,
      height: 280,
      lines: [
        { label: "forecast 10 %", colour: "purple", width: 0.5 },
        { label: "forecast 90 %", colour: "purple", width: 0.5, band_with: 0 },
        { label: "forecast mean", colour: "purple", width: 2, dash: [6, 3] },
        { label: "in time", colour: "blue", mark: "dot" },
        { label: "late", colour: "vermillion", mark: "cross" },
        { label: "not arrived: lower bound", colour: "grey", mark: "up" },
      ],
      empty: "No step to show yet.",
      paint: (u) => this.paint(u),
      on_cursor: (index) => this.at_cursor(index),
    });
    this.chart.element.insertBefore(this.cursor_words, this.chart.element.lastElementChild);
    const pickers = h(
      "div",
      { class: "picker" },
      h("label", { for: slider_id }, "Step"),
      this.slider,
      this.entry,
      live
        ? h("label", { class: "check" }, this.follow, " newest")
        : h("span", { class: "muted" }, `${source.choices()!.length} steps available`),
    );
    const beside = h("div", { class: "card" }, h("h3", {}, "Decisions"), this.words, this.reasons);
    this.element = section(
      "One step",
      "",
      h("div", { class: "grid wide-left" }, h("div", { class: "stack" }, pickers, this.chart.element), beside),
    );
    this.element.id = "step";
    addEventListener(other_run, () => {
      this.detail = this.wanted = null;
      this.runs++;
      if (live) this.follow.checked = true;
    });
  }

  show(all: All): void {
    this.choices = new Choices(this.source.choices(), all.progress.step);
    set(this.slider, { max: Math.max(0, this.choices.length - 1), disabled: this.choices.length === 0 });
    set(this.entry, { max: Math.max(0, all.progress.step - 1), disabled: this.choices.length === 0 });
    if (this.choices.length === 0) {
      this.chart.draw("rank", [], [[]]);
      say(this.words, "No step yet.");
    } else if (this.follow.checked || this.detail === null) {
      this.want(this.choices.step_at(this.choices.length - 1));
    }
  }

  // Shows a step that was selected in another view.
  pick(step: number): void {
    this.chosen(step);
    this.element.scrollIntoView({
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
      block: "start",
    });
    this.slider.focus({ preventScroll: true });
  }

  private chosen(step: number): void {
    if (this.choices.length === 0 || Number.isNaN(step)) return;
    this.follow.checked = false;
    this.want(this.choices.step_at(this.choices.position_of(step)));
  }

  // Makes one request at a time. Of steps selected meanwhile, only the last is requested.
  private want(step: number): void {
    this.slider.value = String(this.choices.position_of(step));
    set(this.slider, { "aria-valuetext": `step ${count(step)}` });
    if (document.activeElement !== this.entry || !this.follow.checked) this.entry.value = String(step);
    if (this.detail?.step === step && !this.busy) return;
    this.wanted = step;
    if (!this.busy) void this.fetch();
  }

  private async fetch(): Promise<void> {
    this.busy = true;
    while (this.wanted !== null) {
      const step: number = this.wanted;
      const run = this.runs;
      this.wanted = null;
      try {
        const detail = await this.source.get(step);
        if (run !== this.runs) continue; // it is of the previous run
        this.detail = detail;
        this.draw();
      } catch (trouble) {
        const reason =
          trouble instanceof TypeError
            ? "The server does not answer."
            : trouble instanceof Error
              ? trouble.message
              : String(trouble);
        say(this.words, `Cannot show step ${count(step)}. ${reason}`);
      }
    }
    this.busy = false;
  }

  private draw(): void {
    const detail = this.detail!;
    const s = order_statistics(detail);
    this.chart.draw("rank", s.rank, [s.low, s.high, s.mean, s.used, s.late, s.censored]);
    set(this.words, { role: this.follow.checked ? null : "status" }); // screen readers should not announce every new step
    say(this.words, describe_step(detail));
    const decisions = detail.decisions.length
      ? detail.decisions
      : detail.reason
        ? [{ at_s: 0, cutoff: detail.cutoff ?? 0, limit_s: null, reason: detail.reason }]
        : [];
    this.reasons.replaceChildren(
      ...decisions
        .slice(-8)
        .map((d) =>
          h(
            "li",
            {},
            h("span", { class: "muted" }, d.at_s > 0 ? `after ${duration(d.at_s)}: ` : "before the step: "),
            h("strong", {}, `wait for ${count(d.cutoff)}`),
            d.limit_s === null ? null : h("span", { class: "muted" }, ` within ${duration(d.limit_s)}`),
            h("p", {}, d.reason),
          ),
        ),
    );
  }

  private at_cursor(index: number | null): void {
    const arrival = index === null ? undefined : this.detail?.arrivals[index];
    say(this.cursor_words, arrival ? describe_arrival(arrival, index! + 1) : "");
  }

  // Draws the cutoff and the oracle's cutoff as vertical lines with labels.
  private paint(u: uPlot): void {
    if (!this.detail) return;
    const ratio = devicePixelRatio;
    const { ctx, bbox } = u;
    const upright = (rank: number | null, name: string, colour: string, dash: number[], row: number) => {
      if (rank === null) return;
      const x = Math.round(u.valToPos(rank + 0.5, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) return;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.lineWidth = 1.5 * ratio;
      ctx.setLineDash(dash.map((d) => d * ratio));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
      const right = x > bbox.left + bbox.width * 0.5;
      ctx.textAlign = right ? "right" : "left";
      ctx.textBaseline = "top";
      ctx.fillText(`${name} ${count(rank)}`, x + (right ? -5 : 5) * ratio, bbox.top + (2 + row * 15) * ratio);
      ctx.restore();
    };
    upright(this.detail.cutoff, "cutoff", this.theme.colour("text"), [], 0);
    upright(this.detail.oracle, "oracle", this.theme.colour("green"), [6, 4], 1);
  }
}
