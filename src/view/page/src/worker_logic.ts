// Sorting and searching the table of workers.
import type { Worker } from "./contract";

export type Column =
  "worker" | "node" | "state" | "inclusion" | "recurrence" | "median_s" | "late" | "censored" | "last";

export interface Order {
  column: Column;
  descending: boolean;
}

// Unknown values are last in both directions; equal values are in order of workers.
export function sorted(workers: Worker[], order: Order): Worker[] {
  const sign = order.descending ? -1 : 1;
  const value = (w: Worker) => w[order.column];
  return [...workers].sort((a, b) => {
    const x = value(a);
    const y = value(b);
    if (x === y) return a.worker - b.worker;
    if (x === null) return 1;
    if (y === null) return -1;
    if (typeof x === "string" || typeof y === "string")
      return sign * String(x).localeCompare(String(y), "en", { numeric: true }) || a.worker - b.worker;
    return sign * (x - y) || a.worker - b.worker;
  });
}

// "12" is the worker, "10-20" a range of them, "alive", "lost" and "finished" a state, anything else a part of the node's name.
export function matching(workers: Worker[], words: string): Worker[] {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return workers;
  if (wanted === "alive" || wanted === "lost" || wanted === "finished")
    return workers.filter((w) => w.state === wanted);
  const range = /^(\d+)(?:\s*[-–]\s*(\d+))?$/.exec(wanted);
  if (range) {
    const first = Number(range[1]);
    const last = range[2] === undefined ? first : Number(range[2]);
    return workers.filter((w) => w.worker >= first && w.worker <= last);
  }
  return workers.filter((w) => w.node.toLowerCase().includes(wanted));
}

// The order after a click on a column's head: the reverse, or for a new column its default direction.
export function pressed(order: Order, column: Column): Order {
  if (order.column === column) return { column, descending: !order.descending };
  return { column, descending: ["recurrence", "median_s", "late", "censored", "last"].includes(column) };
}
