// The parts of a step's time, and the time saved vs. synchronous.
import type { Along } from "../axis";
import { Chart } from "../chart";
import type { All } from "../contract";
import { h, say } from "../dom";
import { duration, percent } from "../format";
import { saved_words } from "../saved_logic";
import type { Colour, Theme } from "../theme";
import { type Part, cumulative, cut_at, meanings, parts, spent, stacked } from "../time_logic";
import { type View, section, xs_of } from "../view";

const colours: Record<Part, Colour> = {
  computing: "blue",
  moving: "sky",
  waiting: "orange",
  aggregating: "green",
  deciding: "purple",
};

export class TimeView implements View {
  readonly element: HTMLElement;
  private readonly split: Chart;
  private readonly saved: Chart;
  private readonly peaks = h("p");
  private top = Infinity;
  private readonly saved_words = h("p", { class: "words" });
  private readonly whole = h("div", { class: "shares", "aria-hidden": "true" });
  private readonly rows = new Map<Part, { share: HTMLElement; seconds: HTMLElement; block: HTMLElement }>();

  constructor(theme: Theme) {
    const order = [...parts].reverse();
    this.split = new Chart(theme, {
      title: "Time of a step",
      about: "Means, stacked.",
      unit: "duration",
      from_zero: true,
      top: () => this.top,
      height: 260,
      lines: order.map((part) => ({ label: part, colour: colours[part], fill: true })),
      empty: "No step yet.",
    });
    this.split.element.querySelector("figcaption")!.append(this.peaks);
    this.saved = new Chart(theme, {
      title: "Time saved vs. synchronous",
      unit: "duration",
      from_zero: true,
      height: 180,
      about: "Cumulative. A lower bound where gradients never arrived, with an estimate if there are forecasts.",
      lines: [
        { label: "at least", colour: "green", width: 2 },
        { label: "about (forecast)", colour: "purple", width: 1.75, dash: [6, 3] },
      ],
      empty: "No data yet.",
    });
    const body = h("tbody");
    for (const part of parts) {
      const block = h("span", { style: `background: var(--${colours[part]})` });
      const row = { share: h("td"), seconds: h("td"), block };
      this.rows.set(part, row);
      this.whole.append(block);
      const key = h("span", { class: "square", style: `background: var(--${colours[part]})`, "aria-hidden": "true" });
      body.append(
        h("tr", {}, h("th", { scope: "row" }, key, part, h("small", {}, meanings[part])), row.seconds, row.share),
      );
    }
    const table = h(
      "table",
      { class: "spent" },
      h("caption", { class: "unseen" }, "Time of the run by part"),
      h(
        "thead",
        { class: "unseen" },
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "part"),
          h("th", { scope: "col" }, "time"),
          h("th", { scope: "col" }, "share"),
        ),
      ),
      body,
    );
    const beside = h("div", { class: "card" }, h("h3", {}, "Over the whole run"), this.whole, table);
    this.element = section(
      "Time",
      "",
      h(
        "div",
        { class: "grid wide-left" },
        this.split.element,
        beside,
        h("div", { class: "stack" }, this.saved.element),
        h("div", { class: "card" }, h("h3", {}, "Total time saved"), this.saved_words),
      ),
    );
  }

  show(all: All, along: Along): void {
    const xs = xs_of(all.steps, along);
    const { lines, values } = stacked(all.steps);
    this.top = cut_at(lines[0]!);
    const peak = lines[0]!.reduce<number>((most, v) => Math.max(most, v ?? 0), 0);
    say(this.peaks, this.top < peak ? `Peaks up to ${duration(peak)} are clipped.` : "");
    this.split.draw(along, xs, lines, values);
    const has_forecast = all.totals.saved_about_s !== null;
    this.saved.draw(along, xs, [cumulative(all.steps.saved_s), has_forecast ? cumulative(all.steps.saved_about_s) : []]);
    const list = spent(all);
    const sum = list.reduce((total, { seconds }) => total + seconds, 0);
    for (const { part, seconds } of list) {
      const row = this.rows.get(part)!;
      say(row.seconds, sum ? duration(seconds) : "–");
      say(row.share, sum ? percent(seconds / sum) : "–");
      row.block.style.width = `${sum ? (100 * seconds) / sum : 0}%`;
    }
    say(this.saved_words, all.progress.step ? saved_words(all.totals) : "No step yet.");
  }
}
