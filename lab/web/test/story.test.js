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
  const words = ["WAVE", "TIDE", "REEF", "SAND"];
  const bytes = async (name) => (await screen(page, 2).locator("tr", { has: page.getByText(name, { exact: true }) }).locator("code").innerText()).replaceAll(" ", "");
  await status(page, 2, "One equation");
  const fifth = await screen(page, 2).locator(".fifth code").innerText();
  const lost = (await screen(page, 2).locator(".total").first().locator("td").nth(1).innerText()).trim(); // such as 167·x1
  assert.equal(await bytes(lost), "????????", "what is lost is not told before it is found");
  await tabTo(page, "Subtract what is known");
  await page.keyboard.press("Enter");
  await status(page, 2, "What is left is a multiple of x1.");
  let left = BigInt(0);
  for (const code of (await screen(page, 2).locator(".equation > table tr:not(.total) code").allInnerTexts())) left ^= BigInt(`0x${code.replaceAll(" ", "")}`);
  assert.equal(BigInt(`0x${await bytes(lost)}`), left);
  assert.equal(fifth.replaceAll(" ", ""), `y0=${await bytes("y0, from the fifth machine")}`);
  await page.keyboard.press("Enter");
  await status(page, 2, "The mixture has brought back TIDE");
  assert.equal(Buffer.from(await bytes(`÷ ${lost.split("·")[0]} = x1`), "hex").toString(), "TIDE");
  await screen(page, 2).focus();
  await tabTo(page, "a copy of x0");
  await page.keyboard.press("Enter");
  for (const k of [0, 1, 2, 3]) {
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await status(page, 2, k === 0 ? "The copy is WAVE: it brings back machine 0, and no other." : `A copy of WAVE is no help: four copies of it would be none. ${words[k]} is gone.`);
  }

  await next(3);
  await tabTo(page, "Next round");
  const central = await cost(1, "central");
  for (let round = 0; round < central.central_C1; round++) await page.keyboard.press("Enter");
  await status(page, 3, `After ${central.central_C1} of ${central.central_C1} rounds machine 0 has passed ${central.central_C2} packets`);
  const passed = (await screen(page, 3).locator("circle + text").allTextContents()).map(Number);
  assert.deepEqual([0, 8].map((k) => passed[k]), Array(2).fill(Math.max(...passed)), "all wait for machine 0, and for machine 8");

  await screen(page, 3).focus();
  await next(4);
  for (const ports of [1, 2]) {
    const direct = await cost(ports, "direct");
    await status(page, 4, `${direct.direct_C2} packets`);
    assert.deepEqual(await screen(page, 4).locator("dd").allTextContents(), [central.central_C2, direct.direct_C2].map(String));
    assert.deepEqual(await screen(page, 4).locator("dt").allTextContents(), ["all to one, and back, with 1 port", `everybody sends everything, with ${ports === 1 ? "1 port" : "2 ports"}`]);
    if (ports === 1) await tabTo(page, "A second port");
    if (ports === 1) await page.keyboard.press("Enter");
  }

  await next(5);
  await tabTo(page, "range");
  const dragged = [];
  await page.keyboard.press("ArrowLeft"); // it opens at 2
  for (let m = 1; m <= 16; m++) {
    if (m > 1) await page.keyboard.press("ArrowRight");
    const n = Math.ceil(16 / m);
    const name = `universal:${m},${n}`;
    const row = await cost(1, name);
    dragged.push(row[`${name}_C2`]);
    await status(page, 5, `${m} × ${n}: ${row[`${name}_C1`]} rounds, ${row[`${name}_C2`]} packets.`);
    assert.equal(await screen(page, 5).locator(".sum").innerText(), `${m - 1} + ${n - 1} = ${row[`${name}_C2`]}`);
    await page.getByRole("img", { name: new RegExp(`in lines of ${m}: x0 and y15 meet at machine \\d+$`) }).waitFor(); // at one
    const steps = await screen(page, 5).locator("polyline").evaluateAll((all) => all.map((line) => line.points.numberOfItems - 1));
    assert.deepEqual(steps, [m - 1, n - 1], "the way that is drawn");
    assert.equal((await screen(page, 5).locator(".status").innerText()).includes("No m has fewer"), m === 4);
  }
  assert.equal(dragged.indexOf(Math.min(...dragged)), 3);

  await screen(page, 5).focus();
  await next(6);
  await tabTo(page, "range");
  const { rows: [any] } = await explorer.json("cost", "-k", "16", "--algorithm", "universal", "--format", "json"); // matrix
  for (let heard = 3; heard <= 6; heard++) {
    if (heard > 3) await page.keyboard.press("ArrowRight");
    await status(page, 6, `${heard} packets heard: `);
    const said = await screen(page, 6).locator(".status").innerText();
    const drawn = await screen(page, 6).locator("i.sender, i.itself").count();
    assert.ok(said.includes(`: ${drawn} numbers, 16 wanted.`), said);
    assert.equal(said.includes("Enough"), heard >= any.bound_C2, said);
    if (heard >= any.bound_C2) assert.ok(said.endsWith(`${any.bound_C2} is the bound for whole packets. In ${any.bound_C1} rounds it is ${any.bound_fewest}, which the grid has.`), said);
  }
  assert.equal(any.bound_fewest, Math.min(...dragged));

  await screen(page, 6).focus();
  await next(7);
  await page.getByRole("img", { name: "after each: 1, 2, 4, 8, 16" }).waitFor(); // the sums that have x0
  await tabTo(page, "K = 256");
  await page.keyboard.press("Enter");
  const costs = (await explorer.json("cost", "-k", "256", "-p", "1", "--matrix", "dft", "--field", "257", "--order", "any", "--algorithm", "direct,universal,dft", "--format", "json")).rows[0];
  await status(page, 7, "K = 256");
  assert.deepEqual(await screen(page, 7).locator("dd").allTextContents(), ["direct", "universal", "dft"].map((a) => String(costs[`${a}_C2`])));
  for (const { K, bound_C2 } of (await explorer.json("cost", "-k", "16,64,256", "--algorithm", "universal", "--format", "json")).rows) {
    await screen(page, 7).getByRole("button", { name: `K = ${K}`, exact: true }).press("Enter");
    await status(page, 7, `K = ${K}: `);
    assert.ok(Number(await screen(page, 7).locator("dd").nth(2).textContent()) < bound_C2, `${K}: less than the bound for all numbers`);
  }

  await screen(page, 7).focus();
  await next(8);
  for (const [k, text] of [
    [0, "1 dead. Mixtures: 6 left, 4 needed, all comes back. Copies: all comes back."],
    [2, "2 dead. Mixtures: 4 left, 4 needed, all comes back. Copies: all comes back."],
    [3, "3 dead. Mixtures: 2 left, 4 needed, the words are gone. Copies: WAVE and SAND gone."],
    [2, "2 dead. Mixtures: 4 left, 4 needed, all comes back. Copies: WAVE gone."],
  ]) {
    await tabTo(page, `machine ${k}`);
    await page.keyboard.press("Enter");
    await status(page, 8, text);
  }
  assert.match(await screen(page, 8).locator(".says").innerText(), /any 4 of the 8 packets bring all back: any of the 6 pairs of machines may die\. With copies 2 of the 6 may\./);
  const shifted = await page.evaluate(() => globalThis.shifted);
  assert.ok(shifted <= 0.05, `the layout has shifted by ${shifted}`);

  await tabTo(page, "These four in Protect");
  await page.keyboard.press("Enter");
  await page.locator(".verdict[data-survived=true]").waitFor();
  await page.goBack();
  await screen(page, 8).getByRole("button", { name: "Your own K" }).press("Enter");
  await page.locator("path.arrow").first().waitFor();
  await page.waitForFunction(() => document.activeElement.id === "flag-processors");
  await done(opened);
});

test("axe finds nothing in the story, light and dark", async () => {
  const opened = await explorer.show("#/story/1?lost=1&back=1&step=5&window=4&heard=5&gone=0,2,3");
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
