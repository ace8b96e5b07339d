// The story: by keyboard alone, with the engine's numbers, for all, and with nothing that jumps.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { done, Explorer } from "./explorer.js";

const explorer = new Explorer();
const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const screen = (page, n) => page.locator("section").nth(n - 1);
const status = (page, n, text) => screen(page, n).locator(".status", { hasText: text }).waitFor();
const cost = async (ports, only) => (await explorer.json("cost", "-k", "16", "-p", String(ports), "--matrix", "cauchy", "--algorithm", only, "--format", "json")).rows[0];

/** Presses Tab until the button of this name has the focus. */
async function tabTo(page, name) {
  for (let n = 0; n < 40; n++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((name) => document.activeElement.textContent.trim().startsWith(name) || document.activeElement.type === name, name)) return;
  }
  assert.fail(`Tab does not reach ${name}`);
}

test("the story is told by the keyboard alone, with the numbers of the engine, and nothing jumps", async () => {
  const opened = await explorer.show("", { script: () => {
    globalThis.shifted = 0;
    if (PerformanceObserver.supportedEntryTypes.includes("layout-shift")) {
      new PerformanceObserver((list) => list.getEntries().forEach((e) => (globalThis.shifted += e.value))).observe({ type: "layout-shift", buffered: true });
    }
  } });
  const { page } = opened;
  const next = async (n) => {
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((n) => location.hash.startsWith(`#/story/${n}`) && document.activeElement === document.querySelectorAll("section")[n - 1], n);
  };
  await screen(page, 1).getByText("TIDE").waitFor();
  await page.evaluate(() => (globalThis.shifted = 0)); // from here on the page is there
  await page.locator("section").first().focus();
  await tabTo(page, "machine 1");
  await page.keyboard.press("Enter");
  await status(page, 1, "TIDE is gone");

  await next(2);
  await tabTo(page, "Bring machine 1 back");
  await page.keyboard.press("Enter");
  await screen(page, 2).locator(".total", { hasText: "TIDE" }).waitFor();
  await tabTo(page, "5·y0");
  await page.keyboard.press("Enter");
  await screen(page, 2).getByText("5 = 1 + 4").waitFor();

  await next(3);
  await tabTo(page, "Next round");
  const central = await cost(1, "central");
  for (let round = 0; round < central.central_C1; round++) await page.keyboard.press("Enter");
  await status(page, 3, `After ${central.central_C1} of ${central.central_C1} rounds machine 0 has passed ${central.central_C2} packets`);

  await screen(page, 3).focus();
  await next(4);
  for (const ports of [1, 2]) {
    const direct = await cost(ports, "direct");
    const { rows: [any] } = await explorer.json("cost", "-k", "16", "-p", String(ports), "--algorithm", "direct", "--format", "json"); // matrix
    await status(page, 4, `${direct.direct_C2} packets`);
    assert.deepEqual(await screen(page, 4).locator("dd").allTextContents(), [String(direct.direct_C2), String(any.bound_C2)]);
    if (ports === 1) await tabTo(page, "A second port");
    if (ports === 1) await page.keyboard.press("Enter");
  }

  await next(5);
  await tabTo(page, "range");
  for (let m = 1; m <= 4; m++) {
    if (m > 1) await page.keyboard.press("ArrowRight");
    const name = `universal:${m},${Math.ceil(16 / m)}`;
    const row = await cost(1, name);
    await status(page, 5, `${m} × ${Math.ceil(16 / m)}: ${row[`${name}_C1`]} rounds, ${row[`${name}_C2`]} packets.`);
    await page.getByRole("img", { name: new RegExp(`in lines of ${m}: x0 and y10 meet at machine \\d+$`) }).waitFor(); // at one
  }
  await status(page, 5, "The square is least: 2(√K − 1).");

  await screen(page, 5).focus();
  await next(6);
  await tabTo(page, "K = 256");
  await page.keyboard.press("Enter");
  const costs = (await explorer.json("cost", "-k", "256", "-p", "1", "--matrix", "dft", "--field", "257", "--order", "any", "--algorithm", "direct,universal,dft", "--format", "json")).rows[0];
  await status(page, 6, "K = 256");
  assert.deepEqual(await screen(page, 6).locator("dd").allTextContents(), ["direct", "universal", "dft"].map((a) => String(costs[`${a}_C2`])));

  await next(7);
  for (const [k, text] of [[0, "All comes back"], [2, "2 dead: 4 left, 4 needed. All comes back"], [3, "3 dead: 2 left, 4 needed. The words are gone"]]) {
    await tabTo(page, `machine ${k}`);
    await page.keyboard.press("Enter");
    await status(page, 7, text);
  }
  const shifted = await page.evaluate(() => globalThis.shifted);
  assert.ok(shifted <= 0.05, `the layout has shifted by ${shifted}`);

  await tabTo(page, "These four in Protect");
  await page.keyboard.press("Enter");
  await page.locator(".verdict[data-survived=false]").waitFor();
  await page.goBack();
  await screen(page, 7).getByRole("button", { name: "Your own K" }).press("Enter");
  await page.locator("path.arrow").first().waitFor();
  await page.waitForFunction(() => document.activeElement.id === "flag-processors");
  await done(opened);
});

test("axe finds nothing in the story, light and dark", async () => {
  const opened = await explorer.show("#/story/1?lost=1&back=1&step=5&window=4&gone=0,2,3");
  const { page } = opened;
  await page.locator("section svg").nth(2).waitFor();
  await page.evaluate(axe);
  for (const theme of ["light", "dark"]) {
    await page.getByLabel("Theme").selectOption(theme);
    const found = await page.evaluate(async () => (await globalThis.axe.run()).violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join("; ")}`));
    assert.deepEqual(found, [], theme);
  }
  await done(opened);
});
