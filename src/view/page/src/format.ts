// Formats numbers and durations for people.
import type { Maybe } from "./contract";

export const nothing = "–";

function known(value: Maybe | undefined): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

// 1,234,567
export function count(value: Maybe | undefined): string {
  return known(value) ? Math.round(value).toLocaleString("en-US") : nothing;
}

// Three significant digits, without exponents between 0.0001 and a million. `keep` keeps trailing zeros, for columns.
export function number(value: Maybe | undefined, digits = 3, keep = false): string {
  if (!known(value)) return nothing;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e") as [string, string];
    return `${mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa}e${Number(exponent)}`;
  }
  const after = Math.min(6, Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
  return value.toLocaleString("en-US", { minimumFractionDigits: keep ? after : 0, maximumFractionDigits: after });
}

// With a fixed number of decimals, so that columns are aligned.
export function fixed(value: Maybe | undefined, after: number): string {
  return known(value)
    ? value.toLocaleString("en-US", { minimumFractionDigits: after, maximumFractionDigits: after })
    : nothing;
}

export function percent(share: Maybe | undefined, after = 1): string {
  return known(share) ? `${fixed(share * 100, after)} %` : nothing;
}

// A measured time: 870 µs, 12.3 ms, 4.56 s, 12:03, 3:04:05.
export function duration(seconds: Maybe | undefined, keep = false): string {
  if (!known(seconds)) return nothing;
  const sign = seconds < 0 ? "−" : "";
  const s = Math.abs(seconds);
  if (s === 0) return "0 s";
  if (s < 0.9995e-3) return `${sign}${number(s * 1e6, 3, keep)} µs`;
  if (s < 0.9995) return `${sign}${number(s * 1e3, 3, keep)} ms`;
  if (s < 99.95) return `${sign}${number(s, 3, keep)} s`;
  return sign + clock(s);
}

// Hours, minutes, seconds: 0:27, 12:03, 3:04:05, 2 d 3:04:05.
export function clock(seconds: Maybe | undefined): string {
  if (!known(seconds)) return nothing;
  const all = Math.round(Math.abs(seconds));
  const days = Math.floor(all / 86400);
  const hours = Math.floor((all % 86400) / 3600);
  const minutes = Math.floor((all % 3600) / 60);
  const two = (n: number) => String(n).padStart(2, "0");
  const tail = days || hours ? `${hours}:${two(minutes)}:${two(all % 60)}` : `${minutes}:${two(all % 60)}`;
  return (seconds < 0 ? "−" : "") + (days ? `${days} d ${tail}` : tail);
}

// A date and time of day in UTC: 16 Nov 2026, 04:00 UTC. An invalid date is returned unchanged.
export function date(iso: string): string {
  const when = new Date(iso);
  if (Number.isNaN(when.getTime())) return iso;
  const day = when.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
  return `${day}, ${when.toISOString().slice(11, 16)} UTC`;
}

// The unit for an axis up to `most` seconds, and its size in seconds.
export function time_unit(most: number): { name: string; size: number } {
  if (most < 1e-3) return { name: "µs", size: 1e-6 };
  if (most < 1) return { name: "ms", size: 1e-3 };
  if (most < 600) return { name: "s", size: 1 };
  if (most < 4 * 3600) return { name: "min", size: 60 };
  return { name: "h", size: 3600 };
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
