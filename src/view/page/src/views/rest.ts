// The load of shards, the events, and the settings needed to reproduce the run.
import { type All, type Run } from "../contract";
import { h, set } from "../dom";
import { clock, count, date, percent } from "../format";
import { type View, section } from "../view";

export class ShardsView implements View {
  readonly element: HTMLElement;
  private readonly list = h("ul", { class: "shards" });

  constructor() {
    this.element = h("div", { class: "card" }, h("h3", {}, "Load of shards"), this.list);
  }

  show(all: All): void {
    if (all.shards.length === 0) {
      this.list.replaceChildren(h("li", { class: "muted" }, "No shards yet."));
      return;
    }
    const unknown = all.progress.step > 0 && all.shards.every((shard) => shard.busy_share === null);
    this.list.replaceChildren(
      ...all.shards.map((shard) => {
        const share = shard.busy_share;
        const meter = h(
          "span",
          { class: "meter wide", "aria-hidden": "true" },
          h("span", { style: `width: ${Math.round(Math.min(1, share ?? 0) * 100)}%` }),
        );
        return h(
          "li",
          {},
          h("span", { class: "name" }, `shard ${count(shard.shard)}`),
          meter,
          h("span", { class: "value" }, share === null ? "–" : percent(share)),
        );
      }),
      unknown ? h("li", { class: "muted" }, "Busy times were not recorded.") : "",
    );
  }
}

export class EventsView implements View {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "events", tabindex: 0, "aria-label": "Events, newest first" });
  private shown: All["events"] | null = null;

  constructor() {
    this.element = h("div", { class: "card" }, h("h3", {}, "Events"), this.list);
  }

  show(all: All): void {
    if (this.shown === all.events) return;
    this.shown = all.events;
    const entries = all.events.map((event) =>
      h(
        "li",
        {},
        h("span", { class: "when" }, clock(event.at_s)),
        h("span", { class: `kind ${event.kind}` }, event.kind),
        h(
          "span",
          {},
          `${event.peer ? `${event.peer}: ` : ""}${event.text}`,
          h("small", {}, ` step ${count(event.step)}`),
        ),
      ),
    );
    this.list.replaceChildren(
      ...(entries.length ? entries : [h("li", { class: "muted" }, "No events.")]),
    );
  }
}

// The commands and files that reproduce the run.
export function repeat_commands(run: Run): { words: string; text: string }[] {
  const list = [{ words: "Command line", text: run.command }];
  const scenario = run.environment["scenario"];
  if (scenario)
    list.push({ words: "Scenario: save as scenario.toml, then run drover simulate scenario.toml", text: scenario });
  else if (run.job)
    list.push({ words: "Job: save as job.toml, then run drover train job.toml", text: run.job });
  return list.filter((entry) => entry.text !== "");
}

export class SettingsView implements View {
  readonly element: HTMLElement;
  private readonly repeat = h("div", { class: "card" });
  private readonly settings = h("div", { class: "card" });
  private shown: Run | null = null;

  constructor() {
    this.element = section("Reproduce", "", h("div", { class: "grid two" }, this.repeat, this.settings));
  }

  show(all: All): void {
    if (this.shown === all.run) return;
    this.shown = all.run;
    const run = all.run;
    const facts = { file: run.file, "run id": run.id, started: date(run.started), "digest of parameters": run.digest };
    this.repeat.replaceChildren(
      h("h3", {}, "Commands"),
      ...repeat_commands(run).map(({ words, text }) => snippet(words, text)),
    );
    const environment = Object.fromEntries(Object.entries(run.environment).filter(([key]) => key !== "scenario"));
    this.settings.replaceChildren(
      pairs("Run", facts, true),
      pairs("Settings", run.steps === null ? { ...run.settings, steps: "until the scripts end" } : run.settings, true),
      pairs("Environment", environment, false),
    );
  }
}

function snippet(words: string, text: string): HTMLElement {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy: ${words}` }, "Copy");
  button.addEventListener("click", () => {
    // Browsers have no clipboard without a secure context; then the text can be selected by hand.
    const done = navigator.clipboard?.writeText(text);
    if (!done) return;
    void done.then(() => {
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
  });
  if (!navigator.clipboard) set(button, { hidden: true });
  return h(
    "div",
    { class: "snippet" },
    h("div", { class: "tools" }, h("p", {}, words), button),
    h("pre", { tabindex: 0, role: "region", "aria-label": words }, text),
  );
}

function pairs(title: string, entries: Record<string, string>, open: boolean): HTMLElement {
  const list = Object.entries(entries).filter(([, value]) => value !== "");
  const table = h(
    "table",
    { class: "pairs" },
    h("tbody", {}, ...list.map(([key, value]) => h("tr", {}, h("th", { scope: "row" }, key), h("td", {}, value)))),
  );
  return h(
    "details",
    { open },
    h("summary", {}, title),
    list.length
      ? h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, table)
      : h("p", { class: "muted" }, "Not recorded."),
  );
}
