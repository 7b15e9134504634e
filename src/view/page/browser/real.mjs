// Tests the page with a real training: node browser/real.mjs PATH/TO/drover [folder for screenshots]
// Starts `drover train --dashboard 0`, shows it in a browser until it ends, then opens its report.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Tester, deadline_ms, start_browser } from "./support.mjs";

const drover = resolve(process.argv[2] ?? "");
const folder = mkdtempSync(join(tmpdir(), "drover-page-"));
const run_file = join(folder, "run.db");
const charts = [
  "Loss",
  "Accuracy",
  "Cutoff",
  "Run-times in order of arrival",
  "Run-times, workers by steps",
  "Time of a step",
  "Learning rate",
];

const steps = process.env.STEPS ?? "1500";
const train = spawn(
  drover,
  [
    "train",
    "--model",
    "mlp",
    "--data",
    "generated",
    "--workers",
    "4",
    "--shards",
    "2",
    "--steps",
    steps,
    "--policy",
    "ecdf",
    "--slow",
    "worker=1,factor=3",
    "--run-file",
    run_file,
    "--dashboard",
    "0",
  ],
  { cwd: folder },
);
const ended = new Promise((done) => train.on("close", done));
let said = "";
const address = new Promise((found, failed) => {
  const hear = (bytes) => {
    said += bytes;
    const match = /http:\/\/\S+/.exec(said);
    if (match) found(match[0].replace(/[.,;)]+$/, ""));
  };
  train.stdout.on("data", hear);
  train.stderr.on("data", hear);
  train.on("close", (code) => failed(new Error(`drover ended (${code}) without an address: ${said}`)));
  train.on("error", failed);
  setTimeout(() => failed(new Error(`no address came: ${said}`)), deadline_ms).unref();
});

const browser = await start_browser();
const t = new Tester(browser, process.argv[3]);
try {
  const where = await address;
  await t.test("a real run", { may_lose: true }, async (page) => {
    await page.goto(where);
    await t.text(page, "it runs", ".chip", "Running");
    for (const chart of charts) await t.drawn(page, chart);
    await t.accessible(page);
    await t.shot(page, "real-running");
    await page.focus("#step input[type=range]");
    await page.keyboard.press("Home");
    await t.text(page, "the slider works", "#step .words", "Step 0 ");
    await page.setDefaultTimeout(300_000);
    // The server may stop with the run; the page must show the end in both cases.
    await page.waitForFunction(() => document.querySelector(".chip").textContent.includes("Completed"), undefined, {
      timeout: 300_000,
    });
    await t.text(page, "the end is shown", ".notices", "The run is complete");
    t.expect("drover ended well", (await ended) === 0, said);
    await t.text(page, "the stop of the server is shown", ".notices", "Server stopped");
    await t.shot(page, "real-ended");
  });
  const report = join(folder, "report.html");
  const made = spawnSync(drover, ["report", run_file, "--out", report], { encoding: "utf8" });
  t.expect("a report is made", made.status === 0, made.stdout + made.stderr);
  await t.test("its report", {}, async (page) => {
    await page.goto(pathToFileURL(report).href);
    await t.text(page, "it has its state", ".chip", "Completed");
    for (const chart of charts) await t.drawn(page, chart);
    await page.focus("#step input[type=range]");
    await page.keyboard.press("Home");
    await t.text(page, "the slider works", "#step .words", "Step 0 ");
    await t.accessible(page);
    await t.shot(page, "real-report");
  });
} catch (trouble) {
  t.title = "a real run";
  t.expect("starts", false, String(trouble));
} finally {
  if (train.exitCode === null) train.kill("SIGINT");
  await ended;
  await browser.close();
  rmSync(folder, { recursive: true });
}
t.end();
