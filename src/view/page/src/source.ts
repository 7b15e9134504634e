// Where the data comes from: a server that tells of changes, or the report that the page is part of.
import type { All, Report, ReportedRun, StepDetail, Update } from "./contract";

export type Link = { kind: "opening" } | { kind: "open" } | { kind: "lost"; since: number; words: string };

export interface Listener {
  all(all: All): void;
  update(update: Update): void;
  link(link: Link): void;
}

export interface StepSource {
  choices(): number[] | null; // null: every step that was done
  get(step: number): Promise<StepDetail>;
}

const first_wait_ms = 1000;
const longest_wait_ms = 10_000;

// The page's own address with another path, and its token.
export function api(path: string, page: string): string {
  const url = new URL(path, page);
  const token = new URL(page).searchParams.get("token");
  if (token !== null) url.searchParams.set("token", token);
  return url.href;
}

// What a report has put into the page; null if it is served live.
export function inlined(text: string): Report | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const report = JSON.parse(trimmed) as Report;
  if (!Array.isArray(report.runs) || report.runs.length === 0) throw new Error("The report has no run in it.");
  return report;
}

async function words_of(answer: Response): Promise<string> {
  try {
    const said = (await answer.json()) as { error?: unknown };
    if (typeof said.error === "string" && said.error !== "") return said.error;
  } catch {
    // Not from the server, then: the status must do.
  }
  return `The server answered ${answer.status} ${answer.statusText}`.trim() + ".";
}

// Listens, and connects again by itself when the connection is lost.
export class LiveSource implements StepSource {
  private wait_ms = first_wait_ms;
  private lost_since: number | null = null;
  private readonly details = new Map<number, StepDetail>();

  constructor(
    private readonly page: string,
    private readonly listener: Listener,
  ) {}

  start(): void {
    this.listener.link({ kind: "opening" });
    this.connect();
  }

  choices(): null {
    return null;
  }

  async get(step: number): Promise<StepDetail> {
    const known = this.details.get(step);
    if (known) return known;
    const answer = await fetch(api(`api/step/${step}`, this.page), { cache: "no-store" });
    if (!answer.ok) throw new Error(await words_of(answer));
    const detail = (await answer.json()) as StepDetail;
    if (this.details.size >= 100) this.details.delete(this.details.keys().next().value!);
    this.details.set(step, detail);
    return detail;
  }

  private connect(): void {
    const events = new EventSource(api("api/events", this.page));
    events.onopen = () => {
      this.wait_ms = first_wait_ms;
      this.lost_since = null;
      this.listener.link({ kind: "open" });
    };
    events.addEventListener("all", (event) => {
      const all = JSON.parse((event as MessageEvent<string>).data) as All;
      if (all.format !== 1) {
        events.close();
        this.tell_lost("The server speaks another format than this page. Reload the page.");
        return;
      }
      this.details.clear(); // the server may serve another run now
      this.listener.all(all);
    });
    events.addEventListener("update", (event) => {
      this.listener.update(JSON.parse((event as MessageEvent<string>).data) as Update);
    });
    events.onerror = () => {
      const refused = events.readyState === EventSource.CLOSED;
      events.close();
      void this.again(refused);
    };
  }

  private async again(refused: boolean): Promise<void> {
    this.tell_lost(refused ? await this.why() : "");
    setTimeout(() => this.connect(), this.wait_ms);
    this.wait_ms = Math.min(longest_wait_ms, this.wait_ms * 1.5);
  }

  // An EventSource does not say why it was refused; a plain request does.
  private async why(): Promise<string> {
    const stop = new AbortController();
    try {
      const answer = await fetch(api("api/events", this.page), { cache: "no-store", signal: stop.signal });
      const words = answer.ok ? "" : await words_of(answer);
      stop.abort();
      return words;
    } catch {
      return "";
    }
  }

  private tell_lost(words: string): void {
    this.lost_since ??= Date.now();
    this.listener.link({ kind: "lost", since: this.lost_since, words });
  }
}

export class InlinedSteps implements StepSource {
  private readonly steps: number[];

  constructor(private readonly run: ReportedRun) {
    this.steps = Object.keys(run.steps_detail ?? {})
      .map(Number)
      .sort((a, b) => a - b);
  }

  choices(): number[] {
    return this.steps;
  }

  async get(step: number): Promise<StepDetail> {
    const detail = this.run.steps_detail?.[String(step)];
    if (!detail) throw new Error(`Step ${step} is not among those that the report keeps in detail.`);
    return detail;
  }
}
