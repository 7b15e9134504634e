// A line chart (uPlot), with a legend that shows values, a summary for screen readers, and a table.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type Along, increments, tick } from "./axis";
import { type Unit, at_or_before, round_ones, format_value, x_range, y_range, y_ticks } from "./chart_scales";
import type { Maybe } from "./contract";
import { fresh_id, h, say } from "./dom";
import { type Mark, paint_mark, swatch } from "./marks";
import type { Colour, Theme } from "./theme";
import { other_run } from "./view";

export interface Line {
  label: string;
  colour: Colour;
  dash?: number[];
  width?: number;
  points?: boolean; // few values, each with a mark
  stairs?: boolean; // a step function
  fill?: boolean; // filled down to zero
  mark?: Mark; // single marks instead of a line
  band_with?: number; // fills the band to the line of this index
}

export interface ChartOptions {
  title: string;
  about?: string; // one line under the title
  unit: Unit;
  lines: Line[];
  along?: Along; // fixed x axis; by default the page's switch selects it
  from_zero?: boolean;
  upper?: number; // the axis begins at most at this share of the highest value, so that small changes look small
  log?: boolean;
  top?: () => number; // upper limit of the y axis
  height?: number;
  empty?: string; // text without data
  paint?: (u: uPlot) => void;
  on_cursor?: (index: number | null) => void;
}

const stairs = uPlot.paths.stepped!({ align: 1 });
const straight = uPlot.paths.linear!();
const font = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const most_rows = 60;

export class Chart {
  readonly element: HTMLElement;
  private readonly plot: HTMLElement;
  private readonly holder: HTMLElement;
  private readonly blank: HTMLElement;
  private readonly values: HTMLElement[] = [];
  private readonly table: HTMLElement;
  private readonly details: HTMLDetailsElement;
  private u: uPlot | null = null;
  private along: Along;
  private data: uPlot.AlignedData = [[]];
  private shown: (Maybe | undefined)[][] = [];
  private zoomed = false;

  constructor(
    private readonly theme: Theme,
    private readonly options: ChartOptions,
  ) {
    this.along = options.along ?? "steps";
    const title = fresh_id("chart");
    const legend = h("ul", { class: "legend" });
    for (const line of options.lines) {
      const value = h("span", { class: "value" });
      this.values.push(value);
      legend.append(h("li", {}, swatch(line), h("span", {}, line.label), value));
    }
    this.holder = h("div", { class: "holder" });
    this.blank = h("p", { class: "blank" }, options.empty ?? "No data yet.");
    this.plot = h(
      "div",
      { class: "plot", role: "group", "aria-labelledby": title, onkeydown: (e: KeyboardEvent) => this.key(e) },
      this.holder,
      this.blank,
    );
    this.plot.style.height = `${options.height ?? 220}px`;
    this.table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${options.title}: numbers` });
    this.details = h(
      "details",
      { class: "numbers", ontoggle: () => this.fill_table() },
      h("summary", {}, "Numbers", h("span", { class: "unseen" }, ` of ${options.title}`)),
      this.table,
    );
    this.element = h(
      "figure",
      { class: "chart" },
      h("figcaption", {}, h("h3", { id: title }, options.title), options.about ? h("p", {}, options.about) : null),
      legend,
      this.plot,
      this.details,
    );
    theme.on_change(() => this.u?.redraw(false, true));
    new ResizeObserver(() => this.resize()).observe(this.plot);
    // The style sheet scales charts down for print. They are drawn smaller, so that labels stay readable.
    addEventListener("beforeprint", () =>
      this.u?.setSize({
        width: Math.min(this.plot.clientWidth, this.plot.clientWidth > 700 ? 760 : 460),
        height: this.plot.clientHeight,
      }),
    );
    addEventListener("afterprint", () => this.resize());
    addEventListener(other_run, () => (this.zoomed = false));
  }

  // Draws each line of ys over xs. Legend and table show `shown` instead of ys if it is given (for stacks).
  draw(along: Along, xs: number[], ys: (Maybe | undefined)[][], shown = ys): void {
    const fixed_along = this.options.along ?? along;
    if (fixed_along !== this.along) this.zoomed = false;
    this.along = fixed_along;
    this.data = [xs, ...ys] as uPlot.AlignedData;
    this.shown = shown;
    const some = ys.some((line) => line.some((value) => value !== null && value !== undefined));
    this.blank.hidden = some;
    this.holder.hidden = !some;
    this.plot.tabIndex = some ? 0 : -1;
    if (some && !this.u) this.make();
    else if (this.zoomed) {
      this.u?.setData(this.data, false);
      this.u?.redraw();
    } else this.u?.setData(this.data);
    this.show_values(this.u?.cursor.idx ?? null);
    this.plot.setAttribute("aria-label", `${this.options.title}. ${some ? this.summary() : this.blank.textContent}`);
    this.plot.removeAttribute("aria-labelledby");
    if (this.details.open) this.fill_table();
  }

  private make(): void {
    const { theme, options } = this;
    const axis = {
      stroke: () => theme.colour("muted"),
      font,
      grid: { stroke: () => theme.colour("line"), width: 1 },
      ticks: { show: false },
      gap: 6,
    };
    const lines = options.lines;
    this.u = new uPlot(
      {
        width: Math.max(120, this.plot.clientWidth),
        height: this.plot.clientHeight || 220,
        legend: { show: false },
        padding: [8, 20, 0, 0],
        cursor: {
          y: false,
          points: { size: 7 },
          drag: { x: true, y: false },
          ...(options.along ? {} : { sync: { key: "run" } }),
        },
        scales: {
          x: { time: false, range: (_u: uPlot, low: number, high: number) => x_range(low, high, options.along) },
          y: {
            distr: options.log ? 3 : 1,
            ...(options.log
              ? {}
              : {
                  range: (_u: uPlot, low: number, high: number) =>
                    y_range(low, Math.min(high, options.top?.() ?? Infinity), options),
                }),
          },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            space: 64,
            size: 26,
            incrs: () => increments(this.along),
            values: (_u, splits) => splits.map((v) => tick(this.along, v, splits[splits.length - 1] ?? 0)),
          },
          {
            ...axis,
            ...(options.log ? { grid: { ...axis.grid, filter: round_ones } } : {}),
            size: 58,
            space: 34,
            values: (_u: uPlot, splits: number[]) => y_ticks(splits, options.unit),
          },
        ],
        series: [
          {},
          ...lines.map((line): uPlot.Series => ({
            stroke: () => theme.colour(line.colour),
            ...(line.fill ? { fill: () => theme.colour(line.colour) } : {}),
            width: line.fill ? 0 : (line.width ?? 1.75),
            ...(line.dash ? { dash: line.dash } : {}),
            spanGaps: line.points === true,
            paths: line.mark ? () => null : line.stairs ? stairs : straight,
            points: {
              show: (u: uPlot) => line.points === true || (!line.mark && u.data[0].length === 1),
              size: 5,
              fill: () => theme.colour("surface"),
              width: 1.5,
            },
          })),
        ],
        bands: lines.flatMap((line, i) =>
          line.band_with === undefined
            ? []
            : [
                {
                  series: [i + 1, line.band_with + 1] as [number, number],
                  fill: () => `${theme.colour(line.colour)}33`,
                },
              ],
        ),
        hooks: {
          setCursor: [
            (u) => {
              this.show_values(u.cursor.idx ?? null);
              options.on_cursor?.(u.cursor.idx ?? null);
            },
          ],
          setSelect: [(u) => void (this.zoomed ||= u.select.width > 0)],
          ready: [(u) => u.over.addEventListener("dblclick", () => (this.zoomed = false))],
          draw: [(u) => this.paint_marks(u), ...(options.paint ? [options.paint] : [])],
        },
      },
      this.data,
      this.holder,
    );
  }

  private paint_marks(u: uPlot): void {
    this.options.lines.forEach((line, i) => {
      if (!line.mark) return;
      const xs = u.data[0];
      const ys = u.data[i + 1]!;
      u.ctx.save();
      u.ctx.setLineDash([]);
      u.ctx.strokeStyle = u.ctx.fillStyle = this.theme.colour(line.colour);
      for (let k = 0; k < xs.length; k++) {
        const y = ys[k];
        if (y === null || y === undefined) continue;
        paint_mark(
          u.ctx,
          line.mark,
          u.valToPos(xs[k]!, "x", true),
          u.valToPos(y, "y", true),
          xs.length > 400 ? 1.5 : 3,
        );
      }
      u.ctx.restore();
    });
  }

  private resize(): void {
    const width = this.plot.clientWidth;
    if (this.u && width > 0 && width !== this.u.width) this.u.setSize({ width, height: this.plot.clientHeight });
  }

  // Shows the values at index `at`, or the last values. A line without a value there shows its last one before.
  private show_values(at: number | null): void {
    this.shown.forEach((line, i) => {
      const value = this.values[i];
      // Values of marks are shown only at the cursor.
      const mark = this.options.lines[i]?.mark !== undefined;
      if (value)
        say(value, mark && at === null ? "" : format_value[this.options.unit](at_or_before(line, at ?? line.length - 1)));
    });
  }

  private key(event: KeyboardEvent): void {
    const u = this.u;
    const last = this.data[0].length - 1;
    if (!u || last < 0) return;
    const now = u.cursor.idx ?? last;
    const stride = event.shiftKey ? Math.ceil(last / 20) : 1;
    let to: number;
    if (event.key === "ArrowLeft") to = Math.max(0, now - stride);
    else if (event.key === "ArrowRight") to = Math.min(last, now + stride);
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = last;
    else if (event.key === "Escape") {
      this.zoomed = false;
      u.setData(this.data);
      return;
    } else return;
    event.preventDefault();
    u.setCursor({ left: u.valToPos(this.data[0][to] as number, "x"), top: u.over.clientHeight / 2 });
  }

  private summary(): string {
    const parts = this.options.lines.map((line, i) => {
      const values = (this.shown[i] ?? []).filter((v): v is number => v !== null && v !== undefined);
      if (values.length === 0) return `${line.label}: no data`;
      const say_one = format_value[this.options.unit];
      const low = values.reduce((a, b) => Math.min(a, b));
      const high = values.reduce((a, b) => Math.max(a, b));
      return `${line.label}: first ${say_one(values[0])}, last ${say_one(values[values.length - 1])}, between ${say_one(low)} and ${say_one(high)}`;
    });
    return `${parts.join("; ")}. Arrow keys move the cursor; the table below has the numbers.`;
  }

  private fill_table(): void {
    if (!this.details.open) return;
    const xs = this.data[0] as number[];
    const stride = Math.max(1, Math.ceil(xs.length / most_rows));
    const most = xs[xs.length - 1] ?? 0;
    const head = { steps: "step", time: "time", rank: "rank" }[this.along];
    const body = h("tbody");
    for (let i = 0; i < xs.length; i += stride) {
      body.append(
        h(
          "tr",
          {},
          h("th", { scope: "row" }, tick(this.along, xs[i]!, most)),
          ...this.shown.map((line) => h("td", {}, format_value[this.options.unit](at_or_before(line, i)))),
        ),
      );
    }
    const titles = this.options.lines.map((line) => h("th", { scope: "col" }, line.label));
    this.table.replaceChildren(
      h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, head), ...titles)), body),
    );
  }
}
