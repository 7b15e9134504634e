// Tests the built page in a browser with generated runs: node browser/check.mjs [folder for screenshots]
import { readFileSync, writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { made_up_report } from "./made_up.mjs";
import { MockServer, page_file } from "./mock_server.mjs";
import { Tester, start_browser } from "./support.mjs";

const browser = await start_browser();
const t = new Tester(browser, process.argv[2]);
const charts = [
  "Loss",
  "Accuracy",
  "Cutoff",
  "Run-times in order of arrival",
  "Run-times, workers by steps",
  "Time of a step",
  "Time saved vs. synchronous",
  "Effective batch",
  "Noise scale",
  "Learning rate",
];

async function serving(options, done, body, token = null) {
  const server = new MockServer(options, done, token);
  await server.listen();
  try {
    await body(server);
  } finally {
    await server.close().catch(() => undefined);
  }
}

await serving({ lost: true }, 900, (server) =>
  t.test("a run that continues and ends, and whose server stops", { may_lose: true }, async (page) => {
    await page.goto(server.address);
    await t.text(page, "the state is shown", ".chip", "Running");
    await t.text(page, "the progress is shown", ".progress", "step 900 of 1,500");
    await t.text(page, "the newest step is shown", "#step .words", "Step 899");
    for (const chart of charts) await t.drawn(page, chart);
    await t.accessible(page);
    await t.shot(page, "live-light");

    server.grow(950);
    await t.text(page, "it grows", ".progress", "step 950 of 1,500");
    await t.text(page, "the newest step is followed", "#step .words", "Step 949");
    await page.focus("#step input[type=range]");
    await page.keyboard.press("ArrowLeft");
    await t.text(page, "the slider goes back by a key", "#step .words", "Step 948");
    await page.fill("#step input[type=number]", "12");
    await page.keyboard.press("Enter");
    await t.text(page, "a step is chosen by its number", "#step .words", "Step 12 ");
    server.grow(960);
    await t.text(page, "the run continues", ".progress", "step 960");
    await t.text(page, "the chosen step stays", "#step .words", "Step 12 ");

    await page.focus(".heat canvas");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowLeft");
    await t.text(page, "the heat map describes the cell", ".heat ~ .cursor", "worker 1 on node-0");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !document.querySelector("#step .words").textContent.includes("Step 12 "));
    t.expect("the heat map opens a step", true);

    await page.click(".workers th:nth-child(6) button");
    t.expect("a column sorts", (await page.getAttribute(".workers th:nth-child(6)", "aria-sort")) === "descending");
    await page.fill(".workers input", "lost");
    await t.text(page, "the lost worker is found", ".workers tbody", "✕ lost");
    await page.fill(".workers input", "");

    await page.check(".switch input[value=time]", { force: true });
    await page.waitForFunction(() => document.querySelector(".switch input[value=time]").checked);
    await page.click("figure details.numbers summary");
    await t.text(page, "charts have a table", "figure details.numbers table", "time");
    await t.shot(page, "live-time");

    server.grow(1500, { state: "completed" });
    await t.text(page, "the end is shown", ".notices", "The run is complete");
    await t.text(page, "and in the bar", ".chip", "Completed");
    await t.accessible(page);
    await server.close();
    await t.text(page, "the stop of the server is no error", ".notices", "Server stopped");
    await t.shot(page, "ended-server-gone", false);
  }),
);

const cell = (number) => ({ title: `calm / sync / seed ${number}`, number, of: 12 });
await serving({ cell: cell(3) }, 900, (server) =>
  t.test("an experiment that continues with its next cell", {}, async (page) => {
    await page.goto(server.address);
    await t.text(page, "the cell is shown", ".about", "cell 3 of 12: calm / sync / seed 3");
    await page.fill("#step input[type=number]", "12");
    await page.keyboard.press("Enter");
    await t.text(page, "a step of it is shown", "#step .words", "Step 12 ");
    await page.evaluate(() => (window.not_reloaded = true));
    server.switch_run({ cell: cell(4), seed: 4 }, 0);
    await t.text(page, "the next cell is shown", ".about", "cell 4 of 12: calm / sync / seed 4");
    await t.text(page, "which has no step yet", ".notices", "No step yet");
    server.grow(13);
    await t.text(page, "its newest step is shown", "#step .words", "Step 12 ");
    server.grow(40);
    await t.text(page, "and followed", "#step .words", "Step 39 ");
    for (const chart of charts) await t.drawn(page, chart);
    t.expect("without a reload", await page.evaluate(() => window.not_reloaded));
    await t.accessible(page);
  }),
);

await serving({ lost: true }, 900, (server) =>
  t.test("dark", { dark: true }, async (page) => {
    await page.goto(server.address);
    await t.text(page, "a step is shown", "#step .words", "Step 899");
    await t.accessible(page);
    await t.shot(page, "live-dark");
  }),
);

await serving({ lost: true }, 900, (server) =>
  t.test("on a phone", { width: 390, height: 844, deviceScaleFactor: 2 }, async (page) => {
    await page.goto(server.address);
    await t.text(page, "a step is shown", "#step .words", "Step 899");
    await t.fits(page);
    await t.accessible(page);
    await t.shot(page, "phone");
  }),
);

await serving({}, 700, (server) =>
  t.test("a server that goes away in the middle, and comes back", { may_lose: true }, async (page) => {
    await page.goto(server.address);
    await t.text(page, "it runs", ".chip", "Running");
    const port = server.port;
    await server.close();
    await t.text(page, "the lost connection is shown", ".notices", "Connection lost");
    await t.accessible(page);
    await t.shot(page, "server-gone", false);
    const again = new MockServer({}, 800);
    await again.listen(port);
    await t.text(page, "it is heard again", ".progress", "step 800");
    await page.waitForFunction(() => document.querySelector(".notices").textContent === "");
    await again.close();
  }),
);

await serving({}, 0, (server) =>
  t.test("a run without a step", {}, async (page) => {
    await page.goto(server.address);
    await t.text(page, "it says so", ".notices", "No step yet");
    await t.accessible(page);
    await t.shot(page, "empty");
    server.grow(1);
    await t.text(page, "the first step comes", "#step .words", "Step 0 ");
    await t.drawn(page, "Run-times in order of arrival");
    await t.shot(page, "first-step");
  }),
);

await serving(
  {
    state: "failed",
    reason: "shard 1 was lost: its connection ended",
    warning: "The run file was not closed properly; what was recorded last may be missing.",
  },
  430,
  (server) =>
    t.test("a run that failed", {}, async (page) => {
      await page.goto(server.address);
      await t.text(page, "it says why", ".notices", "shard 1 was lost");
      await t.text(page, "it passes a warning on", ".notices", "not closed properly");
      await t.accessible(page);
      await t.shot(page, "failed", false);
    }),
);

await serving({ state: "silent" }, 430, (server) =>
  t.test("a silent run", {}, async (page) => {
    await page.goto(server.address);
    await t.text(page, "it says so", ".notices", "No new data for 12:34");
  }),
);

await serving({ endless: true }, 430, (server) =>
  t.test("a run of unknown length", {}, async (page) => {
    await page.goto(server.address);
    await t.text(page, "it counts its steps", ".progress .where", "430 steps");
    await t.text(page, "it shows no time left", ".progress .left", "elapsed");
    t.expect("it has no bar", await page.locator(".track").isHidden());
    await t.accessible(page);
  }),
);

await serving(
  {},
  10,
  (server) =>
    t.test("a token is required, and used for all requests", { may_lose: true }, async (page) => {
      await page.goto(server.address);
      await t.text(page, "without it the server's message is shown", ".notices", "missing or wrong token");
      await t.shot(page, "refused", false);
      await page.goto(`${server.address}?token=s%26cret`);
      await t.text(page, "with it the run is", "#step .words", "Step 9 ");
    }),
  "s&cret",
);

await serving({ steps: 10_000, workers: 2175, nodes: 16, shards: 8, lost: true }, 6000, (server) =>
  t.test("10,000 steps and 2,175 workers", {}, async (page) => {
    await page.addInitScript(() => {
      window.long = [];
      new PerformanceObserver((list) =>
        window.long.push(...list.getEntries().map((e) => Math.round(e.duration))),
      ).observe({ type: "longtask", buffered: true });
    });
    await page.goto(server.address);
    await t.text(page, "it is shown", "#step .words", "Step 5,999");
    await page.evaluate(() => (window.long.length = 0));
    for (let done = 6050; done <= 6400; done += 50) {
      server.grow(done);
      await t.text(page, "it grows", ".progress", `step ${done.toLocaleString("en-US")} of`);
    }
    console.log(`  tasks over 50 ms in 8 updates: ${JSON.stringify(await page.evaluate(() => window.long))}`);
    server.grow(10_000, { state: "completed" });
    await t.text(page, "it ends", ".notices", "The run is complete");
    await t.accessible(page);
    await t.shot(page, "large");
  }),
);

const folder = mkdtempSync(join(tmpdir(), "drover-page-"));
function written(name, report) {
  const placeholder = '<script type="application/json" id="drover-data"></script>';
  const data = JSON.stringify(report).replaceAll("</", "<\\/");
  const file = join(folder, name);
  writeFileSync(
    file,
    readFileSync(page_file, "utf8").replace(placeholder, () => placeholder.replace("><", `>${data}<`)),
  );
  return pathToFileURL(file).href;
}

const two = written(
  "two.html",
  made_up_report([
    { policy: "sync", file: "runs/sync.db" },
    { policy: "bayes", file: "runs/bayes.db", lost: true },
  ]),
);
await t.test("a report of two runs", {}, async (page) => {
  const asked = [];
  page.on(
    "request",
    (request) => request.url().startsWith("file:") || request.url().startsWith("data:") || asked.push(request.url()),
  );
  await page.goto(two);
  await t.text(page, "they are compared", "main", "Comparison");
  for (const chart of charts) await t.drawn(page, chart);
  await page.selectOption("#chosen-run", "1");
  await t.text(page, "the other run is shown", ".run .decisions", "most gradients a second");
  await page.locator(".run #step input[type=range]").focus();
  await page.keyboard.press("Home");
  await t.text(page, "the slider has the steps of the report", ".run #step .words", "Step 0 ");
  t.expect("HTML in a setting stays text", (await page.locator("main b").count()) === 0);
  t.expect("it makes no network request", asked.length === 0, asked.join());
  await t.accessible(page);
  await t.shot(page, "report-two");
});
await t.test(
  "a report on a phone, dark",
  { width: 390, height: 844, dark: true, deviceScaleFactor: 2 },
  async (page) => {
    await page.goto(two);
    await t.text(page, "it is there", "main", "Comparison");
    await t.fits(page);
    await t.accessible(page);
    await t.shot(page, "report-phone");
  },
);
await t.test("a report on paper", { dark: true }, async (page) => {
  await page.goto(two);
  await t.text(page, "it is there", "main", "Comparison");
  if (t.shots) await page.pdf({ path: join(t.shots, "report.pdf"), format: "A4" });
});

const cells = ["sync", "bayes", "ecdf"].flatMap((policy) =>
  [1, 2, 3].map((seed) => ({
    policy,
    seed,
    steps: 300,
    file: `experiments/cells/${policy}-${seed}.db`,
    done: policy === "sync" && seed === 3 ? 20 : 300,
  })),
);
const many = written("many.html", made_up_report(cells));
await t.test("a report of an experiment", {}, async (page) => {
  await page.goto(many);
  await t.text(page, "there are means", "main", "Mean, best and worst");
  await t.accessible(page);
  await t.shot(page, "report-experiment", false);
});
const one = written("one.html", made_up_report([{ policy: "bayes" }]));
await t.test("a report of one run", {}, async (page) => {
  await page.goto(one);
  await t.text(page, "it has its state", ".chip", "Completed");
  await t.accessible(page);
});
const broken = join(folder, "broken.html");
writeFileSync(
  broken,
  readFileSync(page_file, "utf8").replace('id="drover-data"></script>', 'id="drover-data">{"runs": [</script>'),
);
await t.test("a report cut short", {}, async (page) => {
  await page.goto(pathToFileURL(broken).href);
  await t.text(page, "says that it cannot be read", ".notices", "Cannot read");
});

rmSync(folder, { recursive: true });
await browser.close();
t.end();
