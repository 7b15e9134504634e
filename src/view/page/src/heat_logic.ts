// Colours, scale and positions of the heat map, without drawing.
import { type Along, increments, interpolate, tick } from "./axis";
import type { Heat, Maybe, Steps } from "./contract";
import { count, duration, percent, plural } from "./format";

// Cividis in nine stops, from dark blue to yellow. It suits all kinds of colour vision, and its lightness ascends.
const stops = [
  [0, 34, 78],
  [18, 53, 112],
  [59, 73, 108],
  [87, 93, 109],
  [112, 113, 115],
  [138, 134, 120],
  [165, 156, 116],
  [195, 179, 105],
  [254, 232, 56],
] as const;

export function cividis(share: number): [number, number, number] {
  const place = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(place));
  const part = place - low;
  const mix = (i: 0 | 1 | 2) => Math.round(stops[low]![i] + part * (stops[low + 1]![i] - stops[low]![i]));
  return [mix(0), mix(1), mix(2)];
}

// The ends of the scale: the 1st and 99th percentile of the times. The scale is logarithmic, because times span decades.
export function heat_scale(heat: Heat): { low: number; high: number } | null {
  const values: number[] = [];
  const cells = heat.step.length * heat.rows.length;
  const stride = Math.max(1, Math.floor(cells / 20_000)) | 1;
  let at = 0;
  for (const column of heat.time_s) {
    for (const value of column) {
      if (at++ % stride === 0 && value !== null && value > 0) values.push(value);
    }
  }
  if (values.length === 0) return null;
  values.sort((a, b) => a - b);
  const low = values[Math.floor(0.01 * (values.length - 1))]!;
  const high = values[Math.ceil(0.99 * (values.length - 1))]!;
  return high > low * 1.02 ? { low, high } : { low: low / 1.1, high: high * 1.1 };
}

export function shade(value: number, scale: { low: number; high: number }): number {
  return Math.log(Math.max(value, 1e-12) / scale.low) / Math.log(scale.high / scale.low);
}

export interface Group {
  node: string;
  first: number; // row
  rows: number;
}

// Groups of adjacent rows of the same node.
export function groups(heat: Heat): Group[] {
  const list: Group[] = [];
  heat.rows.forEach((row, i) => {
    const last = list[list.length - 1];
    if (last && last.node === row.node) last.rows++;
    else list.push({ node: row.node, first: i, rows: 1 });
  });
  return list;
}

// The top of each row, with a gap between nodes; the last entry is the bottom of the map.
export function row_tops(list: Group[], row_height: number, gap: number): number[] {
  const tops: number[] = [];
  let y = 0;
  list.forEach((group, i) => {
    if (i > 0) y += gap;
    for (let k = 0; k < group.rows; k++, y += row_height) tops.push(y);
  });
  return [...tops, y];
}

// At most `most` labels with round values, each with its position in columns.
export function column_ticks(
  heat: Heat,
  steps: Steps,
  along: Along,
  most: number,
): { label: string; column: number }[] {
  if (heat.step.length === 0) return [];
  const end = heat.step[heat.step.length - 1]! + heat.per;
  const last = along === "time" ? interpolate(steps.step, steps.at_s, end) : end;
  const stride = increments(along).find((size) => last / size <= most) ?? last;
  const list: { label: string; column: number }[] = [];
  for (let value = 0; value <= last * 0.999; value += stride || 1) {
    const step = along === "time" ? interpolate(steps.at_s, steps.step, value) : value;
    list.push({ label: tick(along, value, last), column: (step - heat.step[0]!) / heat.per });
  }
  return list;
}

export function describe_cell(heat: Heat, column: number, row: number): string {
  const workers = heat.rows[row];
  const first = heat.step[column];
  if (!workers || first === undefined) return "";
  const last = (heat.step[column + 1] ?? first + heat.per) - 1;
  const when = last > first ? `steps ${count(first)} to ${count(last)}` : `step ${count(first)}`;
  const time: Maybe = heat.time_s[column]?.[row] ?? null;
  const late = heat.late[column]?.[row] ?? 0;
  const node = workers.node ? ` on ${workers.node}` : "";
  const times = time === null ? "unknown" : duration(time);
  const rate = late <= 0 ? "in time" : late >= 1 ? "not in time" : `not in time in ${percent(late, 0)}`;
  return `${workers.label}${node}, ${when}: ${times}, ${time === null ? "" : rate}`.replace(/, $/, "");
}

export function describe_heat(heat: Heat): string {
  const scale = heat_scale(heat);
  if (!scale) return "Heat map of run-times: no data yet.";
  const mean = heat.rows.map((_, row) => {
    const shares = heat.late.map((column) => column[row] ?? 0);
    return shares.reduce((a, b) => a + b, 0) / Math.max(1, shares.length);
  });
  const worst = mean.indexOf(Math.max(...mean));
  const workers = heat.rows[worst];
  const most =
    workers && mean[worst]! > 0
      ? ` Least often in time: ${workers.label}${workers.node ? ` on ${workers.node}` : ""}, late in ${percent(mean[worst]!, 0)}.`
      : " No worker was late.";
  return `Heat map of run-times, ${plural(heat.rows.length, "row")} of workers over ${plural(heat.step.length, "column")} of steps, mostly from ${duration(scale.low)} to ${duration(scale.high)}.${most} Arrow keys move between cells; Enter shows the step.`;
}
