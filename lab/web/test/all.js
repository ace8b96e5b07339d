// All tests in Chromium, and the story in Firefox, which passes through most of the page; several files at a time, of one
// binary: npm test. BROWSER=firefox takes all in Firefox, BROWSER=chromium none, and names of files take these, in both.
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { cpus } from "node:os";
import { build } from "./explorer.js";

const folder = new URL(".", import.meta.url).pathname;
const first = ["access", "monkey", "schedule"]; // what takes longest starts first
const rank = (file) => (first.findIndex((name) => file.startsWith(name)) + first.length + 1) % (first.length + 1);
const files = process.argv.length > 2 ? process.argv.slice(2) : readdirSync(folder).filter((f) => f.endsWith(".test.js")).sort((a, b) => rank(a) - rank(b));
const passes = process.argv.length > 2 ? files : ["story.test.js"];
const left = files.flatMap((file) =>
  process.env.BROWSER ? { file, browser: process.env.BROWSER } : [...(passes.includes(file) ? [{ file, browser: "firefox" }] : []), { file, browser: "chromium" }],
);
const failed = [];
const binary = await build();

/** Runs a file, and prints what it says when it has ended. */
function test(file, env) {
  return new Promise((resolve) => {
    const start = Date.now();
    const child = spawn(process.execPath, ["--test", "--test-reporter=spec", folder + file], { env: { ...process.env, VOLLEY: binary.volley, ...env } });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said += data));
    child.on("close", (code) => {
      console.log(`\n${file} ${env.BROWSER}: ${((Date.now() - start) / 1000).toFixed(0)} s\n${said}`);
      if (code !== 0) failed.push(`${file} ${env.BROWSER}`);
      resolve();
    });
  });
}

async function worker() {
  for (let next = left.shift(); next; next = left.shift()) {
    await test(next.file, { BROWSER: next.browser });
  }
}

await Promise.all(Array.from({ length: cpus().length + 1 }, worker)); // a page waits more than it computes
binary.end();
if (failed.length > 0) {
  console.error(`failed: ${failed.join(", ")}`);
  process.exitCode = 1;
}
