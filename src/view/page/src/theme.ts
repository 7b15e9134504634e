// The light and dark theme. Colours are variables in style.css; canvases read them here.

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
      // Without storage (such as a report opened from a file) the system's theme is used.
    }
    this.apply(this.choice);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.changed());
    // Print is always light.
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
      // Without storage the choice lasts until the page is closed.
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
