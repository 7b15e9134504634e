// The table of workers. It is paged, so that thousands of workers are no problem.
import type { All, Worker } from "../contract";
import { h, say, set } from "../dom";
import { count, duration, percent, plural } from "../format";
import type { View } from "../view";
import { type Column, type Order, matching, pressed, sorted } from "../worker_logic";

const page_rows = 25;

const columns: { column: Column; title: string; about: string }[] = [
  { column: "worker", title: "Worker", about: "id of the worker" },
  { column: "node", title: "Node", about: "host" },
  { column: "state", title: "State", about: "alive, lost or finished" },
  { column: "inclusion", title: "Included", about: "share of its steps in which its gradient was used" },
  {
    column: "recurrence",
    title: "Repeat-straggler rate",
    about: "share of the steps after a missed one that it missed too",
  },
  { column: "median_s", title: "Median time", about: "median run-time; ≥ marks a lower bound" },
  { column: "late", title: "Late", about: "gradients that arrived after their step had closed" },
  { column: "censored", title: "Not arrived", about: "steps whose gradient never arrived" },
  { column: "last", title: "Waited for", about: "steps in which it was the last worker in time" },
];

export class WorkersView implements View {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly heads = new Map<Column, HTMLElement>();
  private readonly search: HTMLInputElement;
  private readonly words = h("p", { class: "muted", role: "status" });
  private readonly back: HTMLButtonElement;
  private readonly on: HTMLButtonElement;
  private workers: Worker[] = [];
  private order: Order = { column: "inclusion", descending: false };
  private page = 0;

  constructor() {
    const head = h("tr");
    for (const { column, title, about } of columns) {
      const cell = h(
        "th",
        { scope: "col", title: about },
        h("button", { type: "button", class: "plain", onclick: () => this.sort(column) }, title),
      );
      this.heads.set(column, cell);
      head.append(cell);
    }
    this.search = h("input", {
      type: "search",
      placeholder: "12, 10-20, a node, lost",
      "aria-label": "Find workers: a number, a range, part of a node's name, or a state",
      oninput: () => ((this.page = 0), this.fill()),
    });
    this.back = h("button", { type: "button", onclick: () => this.turn(-1) }, "Back");
    this.on = h("button", { type: "button", onclick: () => this.turn(1) }, "Next");
    this.element = h(
      "div",
      { class: "card workers" },
      h("div", { class: "tools" }, h("h3", {}, "All workers"), this.search, this.words, this.back, this.on),
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of workers" },
        h("table", {}, h("caption", { class: "unseen" }, "Workers"), h("thead", {}, head), this.body),
      ),
    );
  }

  show(all: All): void {
    if (this.workers === all.workers) return;
    this.workers = all.workers;
    this.fill();
  }

  private sort(column: Column): void {
    this.order = pressed(this.order, column);
    this.page = 0;
    this.fill();
  }

  private turn(by: number): void {
    this.page += by;
    this.fill();
  }

  private fill(): void {
    const found = sorted(matching(this.workers, this.search.value), this.order);
    const pages = Math.max(1, Math.ceil(found.length / page_rows));
    this.page = Math.max(0, Math.min(pages - 1, this.page));
    const first = this.page * page_rows;
    const rows = found.slice(first, first + page_rows);
    for (const [column, head] of this.heads) {
      const here = this.order.column === column;
      set(head, { "aria-sort": here ? (this.order.descending ? "descending" : "ascending") : null });
    }
    this.body.replaceChildren(...rows.map(row_of));
    set(this.back, { disabled: this.page === 0 });
    set(this.on, { disabled: this.page >= pages - 1 });
    this.back.hidden = this.on.hidden = pages === 1;
    const which =
      found.length === this.workers.length
        ? plural(found.length, "worker")
        : `${count(found.length)} of ${plural(this.workers.length, "worker")}`;
    say(
      this.words,
      found.length > page_rows
        ? `${count(first + 1)} to ${count(first + rows.length)} of ${which.replace(/ of .*/, " found")}`
        : which,
    );
  }
}

function row_of(w: Worker): HTMLElement {
  const meter = h(
    "span",
    { class: "meter", "aria-hidden": "true" },
    h("span", { style: `width: ${Math.round((w.inclusion ?? 0) * 100)}%` }),
  );
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, String(w.worker)),
    h("td", { class: "text" }, w.node || "–"),
    h("td", { class: "text" }, h("span", { class: `state ${w.state}` }, w.state === "lost" ? "✕ lost" : w.state)),
    h("td", {}, meter, percent(w.inclusion)),
    h("td", {}, percent(w.recurrence)),
    h("td", {}, w.median_s !== null ? `${w.median_exact ? "" : "≥ "}${duration(w.median_s, true)}` : "–"),
    h("td", {}, count(w.late)),
    h("td", {}, count(w.censored)),
    h("td", {}, count(w.last)),
  );
}
