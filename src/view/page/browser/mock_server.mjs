// A server of generated runs with drover's API. node browser/mock_server.mjs [port] serves a run that grows.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defaults, made_up, made_up_step, update_of } from "./made_up.mjs";

export const page_file = fileURLToPath(new URL("../built/page.html", import.meta.url));

export class MockServer {
  constructor(options = {}, done = 0, token = null) {
    this.options = defaults(options);
    this.token = token;
    this.listeners = new Set();
    this.sockets = new Set();
    this.all = made_up(this.options, done);
    this.server = createServer((request, answer) => this.answer(request, answer));
    this.server.on("connection", (socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
  }

  listen(port = 0) {
    return new Promise((resolve) =>
      this.server.listen(port, "127.0.0.1", () => resolve((this.port = this.server.address().port))),
    );
  }

  get address() {
    return `http://127.0.0.1:${this.port}/`;
  }

  answer(request, answer) {
    const url = new URL(request.url, this.address);
    const json = (status, body) =>
      answer.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    const step = /^\/api\/step\/(\d+)$/.exec(url.pathname);
    if (url.pathname === "/") {
      answer
        .writeHead(200, {
          "Content-Type": "text/html; charset=utf-8",
          "Content-Security-Policy": "default-src 'self' 'unsafe-inline' data:",
          "Cache-Control": "no-store",
        })
        .end(readFileSync(page_file));
    } else if (this.token !== null && url.searchParams.get("token") !== this.token) {
      json(401, { error: "missing or wrong token: open the URL that drover printed, which ends in ?token=..." });
    } else if (url.pathname === "/api/events") {
      answer.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      this.listeners.add(answer);
      answer.on("close", () => this.listeners.delete(answer));
      this.send(answer, "all", this.all);
    } else if (step) {
      if (Number(step[1]) >= this.all.progress.step) json(404, { error: `the run has no step ${step[1]} (yet)` });
      else json(200, made_up_step(this.options, Number(step[1])));
    } else json(404, { error: "not found; the dashboard is at /" });
  }

  send(answer, event, data) {
    answer.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  // Advances the run to `done` steps, and optionally to another state.
  grow(done, changes = {}) {
    Object.assign(this.options, changes);
    const after = made_up(this.options, done);
    const update = update_of(this.all, after);
    this.all = after;
    for (const listener of this.listeners) this.send(listener, "update", update);
  }

  // Switches to another run, and sends its complete state on all connections.
  switch_run(options, done) {
    this.options = defaults(options);
    this.all = made_up(this.options, done);
    for (const listener of this.listeners) this.send(listener, "all", this.all);
  }

  close() {
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => this.server.close(resolve));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = new MockServer({ steps: 10_000, workers: 2175, nodes: 16, shards: 8, lost: true }, 200);
  await server.listen(Number(process.argv[2] ?? 0));
  console.log(server.address);
  setInterval(() => {
    const done = Math.min(10_000, server.all.progress.step + 37);
    server.grow(done, done === 10_000 ? { state: "completed" } : {});
  }, 1000);
}
