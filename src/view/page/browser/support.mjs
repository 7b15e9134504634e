// Shared by browser tests: a browser, pages that collect errors, axe, and checks.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const deadline_ms = 15_000;

export function find_browser() {
  const places = [
    process.env.CHROMIUM,
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
  ].filter(Boolean);
  const found = places.find((place) => existsSync(place));
  if (!found)
    throw new Error(`No browser at ${places.join(", ")}. Install Debian's chromium, or name one with CHROMIUM=`);
  return found;
}

export function start_browser() {
  return chromium.launch({ executablePath: find_browser(), args: ["--no-sandbox", "--disable-gpu"] });
}

export class Tester {
  constructor(browser, shots) {
    this.browser = browser;
    this.shots = shots;
    this.complaints = [];
    this.checks = 0;
    if (shots) mkdirSync(shots, { recursive: true });
  }

  expect(what, holds, more = "") {
    this.checks++;
    if (!holds) {
      this.complaints.push(`${this.title}: ${what} ${more}`.trim());
      console.log(`  failed: ${what} ${more}`);
    }
  }

  // Runs a test on a new page. Errors in the console fail it, except failed requests if `may_lose` says that the server stops.
  async test(title, { width = 1400, height = 900, dark = false, may_lose = false, ...rest }, body) {
    this.title = title;
    console.log(title);
    const context = await this.browser.newContext({
      viewport: { width, height },
      colorScheme: dark ? "dark" : "light",
      reducedMotion: "reduce",
      ...rest,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(deadline_ms);
    const said = [];
    page.on(
      "console",
      (message) =>
        ["error", "warning"].includes(message.type()) &&
        !/willReadFrequently/.test(message.text()) &&
        said.push(message.text()),
    ); // `coloured` reads canvases back
    page.on("pageerror", (error) => said.push(String(error)));
    try {
      await body(page);
    } catch (trouble) {
      this.expect("runs to its end", false, String(trouble));
    }
    const lost =
      /Failed to load resource|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/;
    const complaints = said.filter((text) => !(may_lose && lost.test(text)));
    this.expect("the console is silent", complaints.length === 0, complaints.join(" | "));
    await context.close();
  }

  async text(page, what, selector, wanted) {
    try {
      await page.waitForFunction(([s, w]) => document.querySelector(s)?.textContent?.includes(w), [selector, wanted], {
        timeout: deadline_ms,
      });
      this.expect(what, true);
    } catch {
      this.expect(
        what,
        false,
        `"${wanted}" is not in ${selector}: "${(await page.textContent(selector).catch(() => null))?.slice(0, 200)}"`,
      );
    }
  }

  // WCAG A and AA, by axe.
  async accessible(page) {
    await page.evaluate(axe);
    const found = await page.evaluate(() =>
      window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }),
    );
    for (const violation of found.violations) {
      const where = violation.nodes.slice(0, 3).map(
        (node) =>
          `${node.target.join(" ")} (${node.any
            .concat(node.all, node.none)
            .map((c) => c.message)
            .join("; ")
            .slice(0, 160)})`,
      );
      this.expect(`axe: ${violation.id}`, false, where.join(" | "));
    }
    this.expect("axe has checked the page", found.passes.length > 0);
  }

  // A chart has lines or marks: pixels that are neither empty nor grey.
  async drawn(page, title) {
    const coloured = (wanted) => {
      const figure = [...document.querySelectorAll("figure")].find(
        (f) => f.querySelector("h3")?.textContent === wanted && f.getClientRects().length > 0,
      );
      const canvas = figure?.querySelector("canvas");
      if (!canvas || canvas.width === 0) return false;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let found = 0;
      for (let i = 0; i < data.length; i += 4) {
        if (
          data[i + 3] > 60 &&
          Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60
        )
          found++;
      }
      return found > 40;
    };
    const seen = await page.waitForFunction(coloured, title, { polling: 100 }).catch(() => null);
    this.expect(`${title} is drawn`, seen !== null);
  }

  async fits(page) {
    const { wide, window_width } = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth,
      window_width: innerWidth,
    }));
    this.expect("nothing is wider than the window", wide <= window_width, `${wide} > ${window_width}`);
  }

  async shot(page, name, full = true) {
    if (!this.shots) return;
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: join(this.shots, `${name}.png`), fullPage: full });
  }

  end() {
    console.log(`${this.checks} checks, ${this.complaints.length} complaints`);
    for (const complaint of this.complaints) console.log(`- ${complaint}`);
    process.exitCode = this.complaints.length ? 1 : 0;
  }
}
