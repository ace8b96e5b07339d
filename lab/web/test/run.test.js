import assert from "node:assert/strict";
import { test } from "node:test";
import { done, Explorer, holdRun } from "./explorer.js";

const explorer = new Explorer();

test("a run on sample data is verified, and its rounds are those of the plan", async () => {
  const opened = await explorer.show("#/run?k=8&p=2&sample=4KiB&pace=5ms");
  const { page } = opened;
  await page.locator('.state[data-state="whole"]').waitFor(); // the example that the view begins with
  const letRunGo = await holdRun(page);
  await page.getByRole("button", { name: "Run on sample data" }).click();
  await page.locator('.state[data-state="goes on"]').waitFor();
  await letRunGo();
  await page.locator('.state[data-state="whole"]').waitFor();
  assert.match(await page.locator(".state").textContent(), /Verified/);
  const plan = await explorer.json("plan", "--model", "paper", "-k", "8", "-p", "2", "--size", "4KiB", "--format", "json");
  assert.equal(await page.locator("g[data-round]").count(), plan.programs[0].rounds.length);
  await done(opened);
});

test("a run is cancelled; fields of it that are wrong say so", async () => {
  const opened = await explorer.show("#/run?k=16&sample=64KiB&pace=2s");
  const { page } = opened;
  await page.locator('.state[data-state="whole"]').waitFor(); // the example that the view begins with
  await holdRun(page);
  await page.getByRole("button", { name: "Run on sample data" }).click();
  await page.locator('.state[data-state="goes on"]').waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator('.state[data-state="cancelled"]').waitFor();
  await page.getByRole("button", { name: "Run on sample data" }).waitFor();
  for (const [field, text] of [["sample", "much"], ["pace", "1h"]]) {
    await page.locator(`#run-sample`).fill(field === "sample" ? text : "64KiB");
    await page.locator(`#run-pace`).fill(field === "pace" ? text : "0");
    await page.getByRole("button", { name: "Run on sample data" }).click();
    await page.locator(`#run-${field}-error`).waitFor();
  }
  await done(opened);
});
