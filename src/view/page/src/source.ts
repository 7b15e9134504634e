// The source of the data: a server that sends updates, or the report that contains the page.
import type { All, Report, ReportedRun, StepDetail, Update } from "./contract";

export type Link = { kind: "opening" } | { kind: "open" } | { kind: "lost"; since: number; words: string };

export interface Listener {
  all(all: All): void;
  update(update: Update): void;
  link(link: Link): void;
}

export interface StepSource {
  choices(): number[] | null; // the available steps; null: all steps done
  get(step: number): Promise<StepDetail>;
}

const first_wait_ms = 1000;
const longest_wait_ms = 10_000;

// The page's URL with another path, and with its token.
export function api(path: string, page: string): string {
  const url = new URL(path, page);
  const token = new URL(page).searchParams.get("token");
  if (token !== null) url.searchParams.set("token", token);
  return url.href;
}

// The data of a report; null in a live page.
export function inlined(text: string): Report | null {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  const report = JSON.parse(trimmed) as Report;
  if (!Array.isArray(report.runs) || report.runs.length === 0) throw new Error("The report contains no run.");
  return report;
}

async function words_of(answer: Response): Promise<string> {
  try {
    const said = (await answer.json()) as { error?: unknown };
    if (typeof said.error === "string" && said.error !== "") return said.error;
  } catch {
    // Without a JSON body only the status is known.
  }
  return `The server answered ${answer.status} ${answer.statusText}`.trim() + ".";
}

// Receives events, and reconnects when the connection is lost.
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
        this.report_lost("The server has another version than this page. Reload the page.");
        return;
      }
      this.details.clear(); // the server may have switched to another run
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
    this.report_lost(refused ? await this.why() : "");
    setTimeout(() => this.connect(), this.wait_ms);
    this.wait_ms = Math.min(longest_wait_ms, this.wait_ms * 1.5);
  }

  // Requests the reason of a refusal, which an EventSource does not provide.
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

  private report_lost(words: string): void {
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
    if (!detail) throw new Error(`The report does not contain the details of step ${step}.`);
    return detail;
  }
}
