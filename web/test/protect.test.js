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

test("numbers that make no group say so", async () => {
  const opened = await explorer.open("#/protect");
  const { page } = opened;
  for (const [name, text] of [["nodes", "1"], ["nodes", "x"], ["nodes", "500"], ["tolerate", "0"], ["tolerate", "5"]]) {
    const input = page.locator(`input[name=${name}]`);
    const before = await input.inputValue();
    await input.fill(text);
    await page.locator(`#protect-${name}-error`).waitFor();
    await input.fill(before);
    await page.locator(`#protect-${name}-error`).waitFor({ state: "detached" });
  }
  await done(opened);
});
