// The notices above the charts: no data yet, the end of the run, errors, a lost connection.
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
    return { kind: "info", title: "Connecting", text: "Waiting for the server." };
  if (link.kind !== "lost") return null;
  if (link.words) return { kind: "error", title: "Request refused", text: link.words };
  if (!all) {
    return {
      kind: "error",
      title: "No connection",
      text: "The server does not answer; retrying. Is drover still running?",
    };
  }
  if (ended(all)) {
    return {
      kind: "info",
      title: "Server stopped",
      text: `The run has ended; this is its final state. To open it again: drover dashboard ${all.run.file}`,
    };
  }
  return {
    kind: "error",
    title: "Connection lost",
    text: "The server does not answer; retrying. The page shows the last state received. The run may still be running.",
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
        title: `No new data for ${duration(progress.quiet_s)}`,
        text: "The run has not ended, but its run file does not change. Either the run was killed, or a step takes very long.",
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
  // The end of the run is more important than the end of its server.
  const list = all && ended(all) ? [state, connection, warning] : [connection, state, warning];
  return list.filter((notice): notice is Notice => notice !== null);
}
