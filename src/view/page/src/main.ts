// Builds the page: live from a server, or from the data of a report.
import "./style.css";
import type { Along } from "./axis";
import { names } from "./compare_logic";
import type { All, Report } from "./contract";
import { h } from "./dom";
import { date, plural } from "./format";
import { merge } from "./merge";
import { type Notice, notices } from "./notices";
import { RunPage } from "./run_page";
import { InlinedSteps, type Link, LiveSource, inlined } from "./source";
import { Theme } from "./theme";
import { Bar } from "./views/bar";
import { other_run } from "./view";
import { Compare } from "./views/compare";

const theme = new Theme();
const board = h("div", { class: "notices", role: "status", "aria-live": "polite" });
const content = h("main", { id: "content", tabindex: -1 });
const foot = h("footer", { class: "foot" });

const marks = { info: "i", good: "✓", warning: "!", error: "✕" };
let posted = "";

function post(list: Notice[]): void {
  const text = JSON.stringify(list);
  if (text === posted) return;
  posted = text;
  board.replaceChildren(
    ...list.map((n) =>
      h(
        "div",
        { class: `notice ${n.kind}` },
        h("span", { class: "mark", "aria-hidden": "true" }, marks[n.kind]),
        h("p", {}, h("strong", {}, n.title), " ", n.text),
      ),
    ),
  );
}

function build(bar: Bar): void {
  document.getElementById("app")!.replaceChildren(bar.element, board, content, foot);
}

function live(): void {
  let along: Along = "steps";
  let all: All | null = null;
  let link: Link = { kind: "opening" };
  let due = false;
  const render = () => {
    due = false;
    post(notices(all, link));
    document.documentElement.classList.toggle("stale", link.kind === "lost" && all?.run.outcome === "running");
    if (!all) return;
    if (!page.element.isConnected) content.append(page.element);
    bar.show(all);
    bar.lead_to(page.nav);
    page.show(all, along);
  };
  // Data is drawn at most once per frame, and not while the page is hidden.
  const soon = () => {
    if (!due) requestAnimationFrame(render);
    due = true;
  };
  const bar = new Bar(theme, along, (chosen) => ((along = chosen), soon()));
  const source = new LiveSource(location.href, {
    all: (received) => {
      if (all && all.run.id !== received.run.id) dispatchEvent(new Event(other_run));
      all = received;
      soon();
    },
    update: (received) => ((all = all && merge(all, received)), soon()),
    link: (state) => ((link = state), soon()),
  });
  const page = new RunPage(theme, source);
  foot.append("Drover · read-only · updates automatically");
  build(bar);
  source.start();
}

function report(data: Report): void {
  const { runs } = data;
  const several = runs.length > 1;
  let along: Along = several ? "time" : "steps"; // runs are compared by time
  let chosen = 0;
  const pages = new Map<number, RunPage>();
  const holder = h("div");
  const labels = names(runs);
  const picker = h(
    "select",
    { id: "chosen-run", onchange: () => choose(Number(picker.value), false) },
    ...labels.map((label, i) => h("option", { value: i }, label)),
  );
  const printed = h("span", { class: "printed" }, labels[0]!);
  const compare = several ? new Compare(theme, runs, (run) => choose(run, true)) : null;
  const render = () => {
    const run = runs[chosen]!;
    if (!pages.has(chosen)) pages.set(chosen, new RunPage(theme, new InlinedSteps(run)));
    const page = pages.get(chosen)!;
    holder.replaceChildren(page.element);
    if (several) bar.show_report(`${plural(runs.length, "run")} compared`, `report created ${date(data.made)}`);
    else bar.show(run);
    post(several ? [] : notices(run, { kind: "open" }));
    bar.lead_to(page.nav);
    compare?.show(along);
    page.show(run, along);
  };
  const choose = (run: number, jump: boolean) => {
    chosen = run;
    picker.value = String(run);
    printed.textContent = labels[run]!;
    render();
    if (jump) picker.focus();
  };
  const bar = new Bar(theme, along, (next) => ((along = next), render()));
  if (compare)
    content.append(
      compare.element,
      h("div", { class: "chooser" }, h("label", { for: "chosen-run" }, "Details of run"), picker, printed),
    );
  content.append(holder);
  foot.append(`Drover · report created ${date(data.made)} with `, h("code", {}, data.command));
  build(bar);
  render();
}

// Details are opened for print.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll<HTMLDetailsElement>(".card > details")) folded.open = true;
});

try {
  const data = inlined(document.getElementById("drover-data")?.textContent ?? "");
  if (data) report(data);
  else live();
} catch (trouble) {
  build(new Bar(theme, "steps", () => undefined));
  post([
    {
      kind: "error",
      title: "Cannot read the report's data.",
      text: trouble instanceof Error ? trouble.message : String(trouble),
    },
  ]);
}
