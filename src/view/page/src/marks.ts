// The marks of single values, and the swatches of lines and marks in legends. Shapes differ, so that nothing is shown by colour alone.
import type { Line } from "./chart";

export type Mark = "dot" | "cross" | "up";

export function paint_mark(ctx: CanvasRenderingContext2D, mark: Mark, x: number, y: number, size: number): void {
  const r = size * devicePixelRatio;
  ctx.lineWidth = Math.max(1, r / 2);
  ctx.beginPath();
  if (mark === "dot") {
    ctx.arc(x, y, r, 0, 2 * Math.PI);
    ctx.fill();
  } else if (mark === "cross") {
    ctx.moveTo(x - r, y - r);
    ctx.lineTo(x + r, y + r);
    ctx.moveTo(x - r, y + r);
    ctx.lineTo(x + r, y - r);
    ctx.stroke();
  } else {
    ctx.moveTo(x, y - 1.3 * r);
    ctx.lineTo(x + 1.1 * r, y + 0.8 * r);
    ctx.lineTo(x - 1.1 * r, y + 0.8 * r);
    ctx.closePath();
    ctx.stroke();
  }
}

export function swatch(line: Line): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("viewBox", "0 0 22 10");
  svg.setAttribute("aria-hidden", "true");
  const colour = `var(--${line.colour})`;
  const part = (name: string, attributes: Record<string, string | number>) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    svg.append(element);
  };
  if (line.fill) part("rect", { x: 6, y: 0, width: 10, height: 10, rx: 2, fill: colour });
  else if (line.mark === "dot") part("circle", { cx: 11, cy: 5, r: 3.5, fill: colour });
  else if (line.mark === "cross") part("path", { d: "M7.5 1.5l7 7m0-7l-7 7", stroke: colour, "stroke-width": 2 });
  else if (line.mark === "up")
    part("path", { d: "M11 1l4 7.5h-8z", fill: "none", stroke: colour, "stroke-width": 1.6 });
  else {
    if (line.band_with !== undefined) part("rect", { x: 0, y: 0, width: 22, height: 10, fill: colour, opacity: 0.2 });
    else {
      const dashes = (line.dash ?? []).map((d) => d * 0.8).join(" ");
      part("line", { x1: 0, x2: 22, y1: 5, y2: 5, stroke: colour, "stroke-width": 2, "stroke-dasharray": dashes });
    }
    if (line.points)
      part("circle", { cx: 11, cy: 5, r: 3, fill: "var(--surface)", stroke: colour, "stroke-width": 1.5 });
  }
  return svg;
}
