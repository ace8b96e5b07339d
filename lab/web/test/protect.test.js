import assert from "node:assert/strict";
import { test } from "node:test";
import { done, Explorer } from "./explorer.js";

const explorer = new Explorer();

test("nodes are lost and come back, and more than R do not", async () => {
  const opened = await explorer.open("#/protect?nodes=6&tolerate=2");
  const { page } = opened;
  const verdict = page.locator(".verdict");
  await verdict.getByText("21 different losses are survived").waitFor(); // 6 of one node, 15 of two
  for (const n of [1, 4]) await page.getByRole("button", { name: `Lose node ${n}` }).click();
  await verdict.getByText("Each stripe has 4 chunks left, and 4 are needed: everything comes back.").waitFor();
  assert.equal(await page.locator('td[data-state="lost"]').count(), 12);
  await page.getByRole("button", { name: "Lose node 5" }).click();
  await verdict.getByText("the data of the lost nodes is gone").waitFor();
  assert.equal(await page.getByRole("button", { name: "Recover" }).isDisabled(), true);
  await page.getByRole("button", { name: "Node 5 is lost" }).click();
  await page.getByRole("button", { name: "Recover" }).click();
  await verdict.getByText("All 6 nodes are there").waitFor();
  assert.equal(await page.locator('td[data-state="lost"]').count(), 0);
  await done(opened);
});

test("parity is where volley protect puts it: R chunks at each node, in every stripe at R nodes", async () => {
  const opened = await explorer.open("#/protect?nodes=7&tolerate=3");
  const { page } = opened;
  await page.locator("tbody tr").first().waitFor();
  const rows = await page.locator("tbody tr").evaluateAll((list) => list.map((tr) => [...tr.querySelectorAll("td")].map((td) => td.classList.contains("parity"))));
  assert.equal(rows.length, 7);
  for (const [t, row] of rows.entries()) assert.deepEqual(row, row.map((_, n) => (n - t + 7) % 7 < 3), `stripe ${t}`);
  await done(opened);
});

test("protecting and bringing back take the time of the chosen network", async () => {
  const opened = await explorer.open("#/protect?nodes=8&tolerate=2");
  const { page } = opened;
  const took = async (what) => {
    const text = await page.locator("dl div").filter({ hasText: what }).locator("dd").textContent();
    return parseFloat(text) * (text.includes(" ms") ? 1e-3 : text.includes(" min") ? 60 : 1);
  };
  await page.getByText("protect, all nodes at once").waitFor();
  await page.getByText("on a network of 10 Gbit/s, 20 µs").waitFor();
  const fast = await took("protect, all nodes");
  assert.ok(fast > 30 && fast < 200, `${fast} s for 64 GiB at each node`); // 51 s for 64 GiB over the link
  assert.equal(await page.getByText("bring back").count(), 0);
  await page.getByRole("button", { name: "Lose node 1" }).click();
  await page.getByText("bring back 1 lost node").waitFor();
  await page.locator("select[name=net]").selectOption("200gbit/2us");
  await page.getByText("on a network of 200 Gbit/s, 2 µs").waitFor();
  await page.waitForFunction((fast) => parseFloat([...document.querySelectorAll("dl div")].find((d) => d.textContent.includes("protect, all")).querySelector("dd").textContent) < fast / 10, fast);
  await done(opened);
});

test("a group of many nodes is drawn without a cell for each", async () => {
  const opened = await explorer.open("#/protect?nodes=1000&tolerate=100");
  const { page } = opened;
  const verdict = page.locator(".verdict");
  await verdict.getByText("more than 10^139 different losses are survived").waitFor();
  const drawing = page.getByRole("img", { name: "1000 nodes and 1000 stripes" });
  const { width, height } = await drawing.boundingBox();
  await drawing.click({ position: { x: (width * 250.5) / 1000, y: height / 2 } });
  await verdict.getByText("1 node of 1000 is lost").waitFor();
  assert.match(await page.locator("input[name=lost]").inputValue(), /^25[01]$/); // to a pixel
  await page.locator("input[name=lost]").fill("3, 999");
  await page.keyboard.press("Enter");
  await verdict.getByText("2 nodes of 1000 are lost").waitFor();
  await page.getByRole("button", { name: "Recover" }).click();
  await verdict.getByText("All 1000 nodes are there").waitFor();
  await done(opened);
});
