// Makes the pictures of docs/dashboard.md: node browser/pictures.mjs PATH/TO/drover FOLDER
// They are of three trainings with a temporarily slow worker and three policies. The last one is shown while it runs.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { start_browser } from "./support.mjs";

const drover = resolve(process.argv[2] ?? "");
const pictures = resolve(process.argv[3] ?? "pictures");
mkdirSync(pictures, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "drover-pictures-"));
// Workers are delayed by sleeping, so that eight workers differ as much on two cores as on sixteen.
const slow = ["share=1,delay=60ms", "share=0.15,delay=25ms", "worker=2,delay=120ms,steps=150-299"];
const name_of = (policy) => policy.replace(/\W/g, "-");
const words = (policy) => [
  ..."train --model mlp --data fashion-mnist --workers 8 --shards 2 --batch 16 --steps 450 --evaluate-every 50".split(" "),
  ...["--policy", policy, "--probe", "0.2", "--run-file", `${name_of(policy)}.db`],
  ...slow.flatMap((rule) => ["--slow", rule]),
];
for (const policy of ["sync", "static:k=7"]) spawnSync(drover, [...words(policy), "--quiet"], { cwd: folder });

const train = spawn(drover, [...words("ecdf"), "--dashboard", "0"], { cwd: folder });
const ended = new Promise((done) => train.on("close", done));
const address = await new Promise((found) => {
  let said = "";
  train.stderr.on("data", (bytes) => {
    said += bytes;
    const match = /http:\/\/\S+/.exec(said);
    if (match) found(match[0]);
  });
});
const browser = await start_browser();
const open = async (where, options) => {
  const context = await browser.newContext({
    viewport: { width: 1200, height: 860 },
    reducedMotion: "reduce",
    ...options,
  });
  const page = await context.newPage();
  await page.goto(where);
  return page;
};
const shot = (target, name) => target.screenshot({ path: join(pictures, `page-${name}.png`) });
// The bar is hidden, because it would cover the content below it.
const part = async (page, selector, name) => {
  const element = page.locator(selector).first();
  await page.addStyleTag({ content: ".bar { position: static !important }" });
  await element.scrollIntoViewIfNeeded();
  await page.waitForTimeout(500);
  await shot(element, name);
};
const step_is = (page, least) =>
  page.waitForFunction(
    (wanted) => Number(/step ([\d,]+) of/.exec(document.body.textContent)?.[1].replace(",", "")) >= wanted,
    least,
    { timeout: 300_000 },
  );

const tall = { viewport: { width: 1200, height: 1180 } }; // content beyond the window is clipped
const live = await open(address, tall);
const phone = await open(address, { viewport: { width: 390, height: 844 } });
const dark = await open(address, { colorScheme: "dark" });
await step_is(live, 330);
await shot(live, "overview");
await shot(phone, "phone");
await shot(dark, "dark");
await ended;

spawnSync(drover, ["report", "ecdf.db", "--out", "one.html"], { cwd: folder });
spawnSync(drover, ["report", "sync.db", "static-k-7.db", "ecdf.db", "--out", "three.html"], { cwd: folder });
const one = await open(pathToFileURL(join(folder, "one.html")).href, tall);
await part(one, 'section[data-title="Waiting"]', "cutoff");
const kept = await one.locator("#step input[type=range]").evaluate((slider) => Number(slider.max) + 1);
await one.locator("#step input[type=range]").evaluate((slider, at) => {
  slider.value = String(at);
  slider.dispatchEvent(new Event("input"));
}, Math.round(0.5 * kept)); // while the worker is slow
await part(one, "#step", "forecast");
await part(one, 'section[data-title="Workers"] figure', "heat");
await part(one, ".workers", "workers");
await part(one, 'section[data-title="Time"]', "time");
await part(one, 'section[data-title="Shards and events"]', "shards");
const three = await open(pathToFileURL(join(folder, "three.html")).href, tall);
await part(three, 'section[data-title="Comparison"]', "compare");
await browser.close();
rmSync(folder, { recursive: true });
