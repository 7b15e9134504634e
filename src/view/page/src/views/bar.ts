// The bar on top: the run, its state and progress, and the page's switches.
import type { Along } from "../axis";
import type { All } from "../contract";
import { h, say, set } from "../dom";
import { count, date } from "../format";
import { state_words } from "../notices";
import { how_far, is_going } from "../progress_logic";
import type { Theme } from "../theme";

export function run_name(run: { model: string; data: string; file: string }): string {
  return [run.model, run.data].filter(Boolean).join(" on ") || run.file;
}

export class Bar {
  readonly element: HTMLElement;
  private readonly name = h("h1", {}, "Drover");
  private readonly about = h("p", { class: "about" });
  private readonly chip = h("span", { class: "chip" });
  private readonly where = h("span", { class: "where" });
  private readonly left = h("span", { class: "left" });
  private readonly fill = h("div", { class: "fill" });
  private readonly track = h(
    "div",
    {
      class: "track",
      role: "progressbar",
      "aria-label": "Progress of the run",
      "aria-valuemin": 0,
      "aria-valuemax": 100,
    },
    this.fill,
  );
  private readonly parts = h("div", { class: "parts" });
  private readonly progress = h(
    "div",
    { class: "progress" },
    h("div", { class: "numbers" }, this.where, this.left),
    this.track,
  );

  constructor(theme: Theme, along: Along, choose: (along: Along) => void) {
    const option = (value: Along, label: string) =>
      h(
        "label",
        {},
        h("input", { type: "radio", name: "along", value, checked: value === along, onchange: () => choose(value) }),
        h("span", {}, label),
      );
    const look = h("button", { type: "button", class: "plain" });
    const show_theme = () => {
      const words = { auto: ["◐", "Auto"], light: ["☀", "Light"], dark: ["☾", "Dark"] }[theme.chosen] as [
        string,
        string,
      ];
      look.replaceChildren(h("span", { "aria-hidden": "true" }, words[0]), ` ${words[1]}`);
      set(look, { "aria-label": `Colour theme: ${words[1]}; press to change` });
    };
    look.addEventListener("click", () => (theme.next(), show_theme()));
    show_theme();
    this.element = h(
      "header",
      { class: "bar" },
      h(
        "div",
        { class: "inner" },
        h("div", {}, h("div", { class: "named" }, this.name, this.chip), this.about),
        this.progress,
        h(
          "div",
          { class: "switches" },
          h(
            "fieldset",
            { class: "switch" },
            h("legend", { class: "unseen" }, "X axis of charts"),
            option("steps", "Steps"),
            option("time", "Time"),
          ),
          look,
        ),
      ),
      this.parts,
    );
    this.progress.hidden = this.chip.hidden = true;
  }

  show(all: All): void {
    const { run, progress } = all;
    const state = state_words[progress.state] ?? { mark: "", word: progress.state };
    const far = how_far(progress);
    say(this.name, run_name(run));
    say(
      this.about,
      [
        run.cell && `cell ${count(run.cell.number)} of ${count(run.cell.of)}: ${run.cell.title}`,
        run.policy && `policy ${run.policy}`,
        `${count(run.workers)} workers`,
        `${count(run.shards)} shards`,
        `started ${date(run.started)}`,
      ]
        .filter(Boolean)
        .join("  ·  "),
    );
    this.chip.className = `chip ${progress.state}`;
    this.chip.replaceChildren(h("span", { "aria-hidden": "true" }, state.mark), ` ${state.word}`);
    this.chip.hidden = this.progress.hidden = false;
    say(this.where, far.where);
    say(this.left, far.left);
    this.track.hidden = far.share === null;
    if (far.share !== null) {
      this.fill.style.width = `${far.share * 100}%`;
      this.fill.className = `fill ${progress.state}`;
      set(this.track, {
        "aria-valuenow": Math.round(far.share * 100),
        "aria-valuetext": `${far.where}, ${far.left}`,
      });
    }
    document.title = `${is_going(progress) ? `${far.title} · ` : `${state.mark} `}${run_name(run)} – Drover`;
  }

  // Shows links to the parts of the page.
  lead_to(nav: HTMLElement): void {
    if (nav.parentElement !== this.parts) this.parts.replaceChildren(nav);
  }

  // For a report of several runs, which has no single state.
  show_report(title: string, about: string): void {
    say(this.name, title);
    say(this.about, about);
    this.chip.hidden = this.progress.hidden = true;
    document.title = `${title} – Drover`;
  }
}
