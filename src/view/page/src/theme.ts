// Light and dark. Colours live in style.css as variables; canvases ask for them here.

export type Colour =
  "text" | "muted" | "line" | "surface" | "blue" | "vermillion" | "green" | "orange" | "sky" | "purple" | "grey";
export type Choice = "auto" | "light" | "dark";

const choices: Choice[] = ["auto", "light", "dark"];
const kept_as = "drover-theme";

export class Theme {
  private choice: Choice = "auto";
  private readonly cache = new Map<Colour, string>();
  private readonly listeners: (() => void)[] = [];

  constructor() {
    try {
      const kept = localStorage.getItem(kept_as) as Choice | null;
      if (kept && choices.includes(kept)) this.choice = kept;
    } catch {
      // No storage (a report opened from a file, perhaps): the system's choice will do.
    }
    this.apply(this.choice);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.changed());
    // Paper is white, whatever the screen is.
    addEventListener("beforeprint", () => this.apply("light"));
    addEventListener("afterprint", () => this.apply(this.choice));
  }

  get chosen(): Choice {
    return this.choice;
  }

  next(): void {
    this.choice = choices[(choices.indexOf(this.choice) + 1) % choices.length]!;
    try {
      localStorage.setItem(kept_as, this.choice);
    } catch {
      // Then it holds until the page is left.
    }
    this.apply(this.choice);
  }

  colour(name: Colour): string {
    let value = this.cache.get(name);
    if (value === undefined) {
      value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
      this.cache.set(name, value);
    }
    return value;
  }

  on_change(listener: () => void): void {
    this.listeners.push(listener);
  }

  private apply(choice: Choice): void {
    if (choice === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.setAttribute("data-theme", choice);
    this.changed();
  }

  private changed(): void {
    this.cache.clear();
    for (const listener of this.listeners) listener();
  }
}
