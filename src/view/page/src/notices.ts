// What has to be said above the charts: no data yet, an end, trouble, a server that has gone.
import type { All } from "./contract";
import { duration, plural } from "./format";
import { steps_done } from "./progress_logic";
import type { Link } from "./source";

export interface Notice {
  kind: "info" | "good" | "warning" | "error";
  title: string;
  text: string;
}

export const state_words: Record<string, { mark: string; word: string }> = {
  waiting: { mark: "○", word: "Waiting" },
  running: { mark: "●", word: "Running" },
  silent: { mark: "?", word: "Silent" },
  completed: { mark: "✓", word: "Completed" },
  interrupted: { mark: "■", word: "Interrupted" },
  failed: { mark: "✕", word: "Failed" },
};

function ended(all: All): boolean {
  return ["completed", "interrupted", "failed"].includes(all.progress.state);
}

function about_link(all: All | null, link: Link): Notice | null {
  if (link.kind === "opening" && !all)
    return { kind: "info", title: "Connecting", text: "Asking the server for the run." };
  if (link.kind !== "lost") return null;
  if (link.words) return { kind: "error", title: "The server refuses", text: link.words };
  if (!all) {
    return {
      kind: "error",
      title: "No connection",
      text: "The server does not answer. Is drover still running? Trying again.",
    };
  }
  if (ended(all)) {
    return {
      kind: "info",
      title: "The server has gone",
      text: `The run has ended, and this is all of it. To look at it again later: drover dashboard ${all.run.file}`,
    };
  }
  return {
    kind: "error",
    title: "Connection lost",
    text: "The server does not answer. What you see is the last that was heard; the run may well go on. Trying again.",
  };
}

function about_run(all: All): Notice | null {
  const { run, progress } = all;
  const done = `${steps_done(progress)} in ${duration(progress.elapsed_s)}`;
  switch (progress.state) {
    case "waiting":
      return {
        kind: "info",
        title: "No step yet",
        text: `Waiting for the first step: ${plural(run.workers, "worker")} and ${plural(run.shards, "shard")} start, load the data and connect.`,
      };
    case "silent":
      return {
        kind: "warning",
        title: `Nothing written for ${duration(progress.quiet_s)}`,
        text: "The run file says that the run goes on, but nothing is added to it. It was killed, or a step is taking very long.",
      };
    case "completed":
      return { kind: "good", title: "The run is complete", text: `${done}.` };
    case "interrupted":
      return {
        kind: "warning",
        title: "The run was interrupted",
        text: `${run.reason ? `${run.reason}. ` : ""}${done}.`.replace("..", "."),
      };
    case "failed":
      return {
        kind: "error",
        title: "The run failed",
        text: `${run.reason || "No reason was recorded"}. ${done}.`.replace("..", "."),
      };
    default:
      return null;
  }
}

export function notices(all: All | null, link: Link): Notice[] {
  const connection = about_link(all, link);
  const state = all && about_run(all);
  const warning: Notice | null = all?.run.warning ? { kind: "warning", title: "Note", text: all.run.warning } : null;
  // How a run ended matters more than that its server has gone.
  const list = all && ended(all) ? [state, connection, warning] : [connection, state, warning];
  return list.filter((notice): notice is Notice => notice !== null);
}
