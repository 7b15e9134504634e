// Heat map of run-times, workers by steps. The colour shows the time; a stroke marks gradients that were not in time.
import type { Along } from "../axis";
import type { All, Heat, Steps } from "../contract";
import { h, say } from "../dom";
import { duration } from "../format";
import {
  type Group,
  cividis,
  column_ticks,
  describe_cell,
  describe_heat,
  groups,
  heat_scale,
  row_tops,
  shade,
} from "../heat_logic";
import type { Theme } from "../theme";
import { type View, other_run, section } from "../view";

const foot = 22; // for the step labels
const widest_gap = 4; // between nodes

// Colours as pixels, in the byte order of canvases on little-endian machines.
const colours = Uint32Array.from({ length: 256 }, (_, i) => {
  const [r, g, b] = cividis(i / 255);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
});

export class HeatView implements View {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { tabindex: 0, role: "application", "aria-roledescription": "heat map" });
  private readonly mark = h("div", { class: "heat-cursor", hidden: true });
  private readonly frame = h("div", { class: "heat" }, this.canvas, this.mark);
  private readonly words = h("p", { class: "muted cursor", role: "status" });
  private readonly low = h("span");
  private readonly high = h("span");
  private readonly marks = h("input", { type: "checkbox", checked: true, onchange: () => this.paint() });
  private readonly blank = h("p", { class: "blank" }, "No run-times yet.");
  private heat: Heat | null = null;
  private steps: Steps | null = null;
  private along: Along = "steps";
  private tops: number[] = [0];
  private nodes: Group[] = [];
  private left = 90;
  private column_width = 1;
  private row_height = 1;
  private printing = false; // drawn smaller, because the style sheet scales it down
  private cell: { column: number; row: number } | null = null;

  constructor(
    private readonly theme: Theme,
    private readonly pick: (step: number) => void,
  ) {
    const legend = h(
      "div",
      { class: "heat-legend" },
      this.low,
      h("span", { class: "ramp", "aria-hidden": "true" }),
      this.high,
      h("span", { class: "key" }, h("span", { class: "late-mark", "aria-hidden": "true" }), "not in time"),
      h("label", { class: "check" }, this.marks, " mark"),
    );
    const card = h(
      "figure",
      { class: "chart" },
      h(
        "figcaption",
        {},
        h("h3", {}, "Run-times, workers by steps"),
        h(
          "p",
          {},
          "One row per worker or group of workers, grouped by node. Censored run-times are lower bounds. Select a cell to show its step.",
        ),
      ),
      legend,
      this.frame,
      this.blank,
      this.words,
    );
    this.element = section("Workers", "", card);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("mouseleave", () => this.move(null));
    this.canvas.addEventListener("click", (event) => (this.point(event), this.open()));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.cell ?? this.move({ column: this.last_column(), row: 0 }));
    theme.on_change(() => this.paint());
    new ResizeObserver(() => this.paint()).observe(this.frame);
    addEventListener("beforeprint", () => ((this.printing = true), this.paint()));
    addEventListener("afterprint", () => ((this.printing = false), this.paint()));
    addEventListener(other_run, () => this.move(null));
  }

  show(all: All, along: Along): void {
    const same = this.heat === all.heat && this.along === along;
    this.heat = all.heat;
    this.steps = all.steps;
    this.along = along;
    if (same) return;
    this.canvas.setAttribute("aria-label", describe_heat(all.heat));
    this.paint();
  }

  private last_column(): number {
    return (this.heat?.step.length ?? 1) - 1;
  }

  private paint(): void {
    const heat = this.heat;
    const scale = heat ? heat_scale(heat) : null;
    this.blank.hidden = scale !== null;
    this.frame.hidden = scale === null;
    if (!heat || !scale || this.frame.clientWidth === 0) return;
    say(this.low, duration(scale.low));
    say(this.high, duration(scale.high));
    const width = this.printing ? Math.min(this.frame.clientWidth, 760) : this.frame.clientWidth;
    this.nodes = groups(heat);
    const row_height = (this.row_height = Math.max(2, Math.min(26, Math.floor(420 / heat.rows.length))));
    const per_node = (heat.rows.length / this.nodes.length) * row_height;
    this.tops = row_tops(this.nodes, row_height, Math.max(1, Math.min(widest_gap, Math.round(per_node / 10))));
    this.left = width < 500 ? 56 : 96;
    this.column_width = (width - this.left) / heat.step.length;
    const height = this.tops[this.tops.length - 1]! + foot;
    const ratio = devicePixelRatio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const ctx = this.canvas.getContext("2d")!;
    ctx.scale(ratio, ratio);
    this.paint_cells(ctx, heat, scale, row_height);
    this.paint_labels(ctx, heat, row_height, width, height);
    this.place_cursor();
  }

  // Draws one pixel per cell, scales it up node by node, and then draws the strokes.
  private paint_cells(
    ctx: CanvasRenderingContext2D,
    heat: Heat,
    scale: { low: number; high: number },
    row_height: number,
  ): void {
    const columns = heat.step.length;
    const image = new ImageData(columns, heat.rows.length);
    const pixels = new Uint32Array(image.data.buffer);
    const strokes = [new Path2D(), new Path2D()]; // on dark cells, on light ones
    const size = Math.min(this.column_width, row_height);
    const reach = Math.max(0.7, Math.min(5, size * 0.32));
    for (let column = 0; column < columns; column++) {
      const times = heat.time_s[column]!;
      const late = heat.late[column]!;
      for (let row = 0; row < heat.rows.length; row++) {
        const value = times[row] ?? null;
        if (value === null) continue;
        const share = shade(value, scale);
        pixels[row * columns + column] = colours[Math.max(0, Math.min(255, Math.round(share * 255)))]!;
        if ((late[row] ?? 0) >= 0.5) {
          const x = this.left + (column + 0.5) * this.column_width;
          const y = this.tops[row]! + row_height / 2;
          const path = strokes[share > 0.55 ? 1 : 0]!;
          path.moveTo(x - reach, y + reach);
          path.lineTo(x + reach, y - reach);
        }
      }
    }
    const small = h("canvas", { width: columns, height: heat.rows.length });
    small.getContext("2d")!.putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    for (const group of this.nodes) {
      const height = group.rows * row_height;
      ctx.drawImage(
        small,
        0,
        group.first,
        columns,
        group.rows,
        this.left,
        this.tops[group.first]!,
        columns * this.column_width,
        height,
      );
    }
    if (!this.marks.checked) return;
    ctx.lineWidth = Math.max(0.8, Math.min(1.6, size / 5));
    ctx.strokeStyle = "#fff";
    ctx.stroke(strokes[0]!);
    ctx.strokeStyle = "#000";
    ctx.stroke(strokes[1]!);
  }

  private paint_labels(
    ctx: CanvasRenderingContext2D,
    heat: Heat,
    row_height: number,
    width: number,
    height: number,
  ): void {
    ctx.font = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
    ctx.fillStyle = this.theme.colour("muted");
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const fit = (text: string) => {
      let short = text;
      while (short.length > 2 && ctx.measureText(short).width > this.left - 10)
        short = `${short.slice(0, -2)}…`.replace("……", "…");
      return short;
    };
    const by_row = row_height >= 12 && this.nodes.length <= 1;
    let free = -Infinity;
    const put = (text: string, y: number) => {
      if (y < free) return;
      ctx.fillText(fit(text), this.left - 8, y);
      free = y + 13;
    };
    if (by_row || this.nodes.length <= 1) heat.rows.forEach((row, i) => put(row.label, this.tops[i]! + row_height / 2));
    else
      for (const group of this.nodes)
        put(group.node, this.tops[group.first]! + Math.max(row_height / 2, Math.min(6, (group.rows * row_height) / 2)));
    ctx.textAlign = "center";
    for (const { label, column } of column_ticks(
      heat,
      this.steps!,
      this.along,
      Math.max(2, Math.floor((width - this.left) / 90)),
    )) {
      const x = this.left + column * this.column_width;
      const half = ctx.measureText(label).width / 2;
      ctx.fillText(label, Math.max(this.left + half, Math.min(width - half, x)), height - foot / 2 + 2);
    }
  }

  // The frame around the cell is a separate element, so that moving it needs no repaint.
  private place_cursor(): void {
    this.mark.hidden = this.cell === null;
    if (!this.cell) return;
    const top = this.tops[this.cell.row]!;
    const height = Math.max(6, this.row_height);
    const width = Math.max(6, this.column_width);
    this.mark.style.left = `${this.left + (this.cell.column + 0.5) * this.column_width - width / 2}px`;
    this.mark.style.top = `${top + this.row_height / 2 - height / 2}px`;
    this.mark.style.width = `${width}px`;
    this.mark.style.height = `${height}px`;
  }

  private point(event: MouseEvent): void {
    if (!this.heat) return;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left) / this.column_width);
    const y = event.clientY - box.top;
    let row = -1;
    while (row + 1 < this.heat.rows.length && this.tops[row + 1]! <= y) row++;
    const inside = column >= 0 && column <= this.last_column() && row >= 0 && y < this.tops[this.tops.length - 1]!;
    this.move(inside ? { column, row } : null);
  }

  private move(cell: { column: number; row: number } | null): void {
    this.cell = cell;
    say(this.words, cell && this.heat ? describe_cell(this.heat, cell.column, cell.row) : "");
    this.place_cursor();
  }

  private open(): void {
    if (this.cell && this.heat) this.pick(this.heat.step[this.cell.column]!);
  }

  private key(event: KeyboardEvent): void {
    if (!this.heat || !this.cell) return;
    const stride = event.shiftKey ? 10 : 1;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-stride, 0],
      ArrowRight: [stride, 0],
      ArrowUp: [0, -stride],
      ArrowDown: [0, stride],
    };
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.open();
      return;
    }
    const by = moves[event.key];
    if (!by) return;
    event.preventDefault();
    const keep = (value: number, most: number) => Math.max(0, Math.min(most, value));
    this.move({
      column: keep(this.cell.column + by[0], this.last_column()),
      row: keep(this.cell.row + by[1], this.heat.rows.length - 1),
    });
  }
}
