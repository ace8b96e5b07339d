// What the tests share: the binary that serves the page, and a browser.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before } from "node:test";
import { chromium, firefox } from "playwright-core";

/** Of what is waited for, in ms: it ends only what hangs. No test is decided by how busy the machine is. */
export const limit = 120_000;

export const repository = new URL("../../..", import.meta.url).pathname;

/** Runs a command to its end and returns what it prints. */
export function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: repository, stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let err = "";
    child.stdout.on("data", (data) => (out += data));
    child.stderr.on("data", (data) => (err += data));
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(out) : reject(new Error(`${command} ${args.join(" ")}: exit ${code}: ${err}`))));
  });
}

/** Builds volley-lab in a directory of its own, which end() removes. VOLLEY is one that is built. */
export async function build() {
  const directory = mkdtempSync(join(tmpdir(), "volley-explore-"));
  const volley = process.env.VOLLEY ?? join(directory, "volley-lab");
  if (!process.env.VOLLEY) await run("go", ["build", "-o", volley, "./lab/cmd/volley-lab"]);
  return { directory, volley, end: () => rmSync(directory, { recursive: true, force: true }) };
}

/** Starts volley-lab explore on a free port. The address has its token. */
export async function serve(volley) {
  const child = spawn(volley, ["explore", "--addr", "127.0.0.1:0", "--open=false"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const address = await new Promise((resolve, reject) => {
    lines.once("line", resolve);
    child.once("exit", (code) => reject(new Error(`volley-lab explore: exit ${code}`)));
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return { address, end: () => (child.kill("SIGINT"), ended) };
}

/** BROWSER=firefox runs the tests in Firefox. Playwright does not tell it to prefer dark, or less motion. */
export const inFirefox = process.env.BROWSER === "firefox";

/** Starts the browser that is installed. */
export function browse() {
  if (inFirefox) {
    return firefox.launch({
      channel: "moz-firefox", executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr", timeout: limit,
    });
  }
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    timeout: limit,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
}

/** Opens a page of a given size; what it complains about is in problems. The script runs in it before its own. */
export async function open(browser, url, { script, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  if (inFirefox && options.colorScheme === "dark") await context.addInitScript(() => location.protocol === "http:" && localStorage.setItem("volley-theme", "dark"));
  if (script) await context.addInitScript(script);
  context.setDefaultTimeout(limit);
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(error.stack ?? String(error)));
  page.on("requestfailed", (request) => {
    if (!/^(net::ERR_ABORTED|NS_BINDING_ABORTED)$/.test(request.failure()?.errorText)) problems.push(`${request.url()}: ${request.failure()?.errorText}`);
  });
  await page.goto(url);
  return { page, problems, close: () => context.close() };
}

/** The page, served and opened for the tests of a file. */
export class Explorer {
  /** Prepare is called when all is there, with the binary. */
  constructor(prepare = async () => {}) {
    before(async () => {
      this.binary = await build();
      this.server = await serve(this.binary.volley);
      this.browser = await browse();
      await prepare(this.binary);
    });
    after(async () => {
      await this.browser?.close();
      await this.server?.end();
      this.binary?.end();
    });
  }

  /** What a verb prints with --format json, --json or alike. */
  async json(...args) {
    return JSON.parse(await run(this.binary.volley, args));
  }

  open(hash, options) {
    return open(this.browser, `${this.server.address}${hash}`, options);
  }

  /** Opens an address of the page and waits until its plan is there. */
  async show(hash, options) {
    const opened = await this.open(hash, options);
    await settled(opened.page);
    return opened;
  }

  /** The same on a page that is open: it is loaded anew, which takes less than another one. */
  async load({ page }, hash) {
    await page.goto("about:blank");
    await page.goto(`${this.server.address}${hash}`);
    await settled(page);
  }
}

/** Waits until no question to the engine is open: the view shows all that it asked for. */
export function settled(page, view = "") {
  return page.locator(`#page[aria-labelledby^="tab-${view}"][aria-busy=false]`).waitFor({ state: "attached" });
}

/** Ends a test of a page: nothing was complained about. */
export async function done({ problems, close }) {
  assert.deepEqual(problems, []);
  await close();
}
