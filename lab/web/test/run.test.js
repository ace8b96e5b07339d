import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { done, Explorer, holdRun, repository, run } from "./explorer.js";

let directory, report;
const explorer = new Explorer(async ({ directory: there, volley }) => {
  directory = there;
  report = join(directory, "report.json");
  writeFileSync(report, await run(volley, ["encode", "--model", "paper", "-o", join(directory, "coded"), "--json", join(repository, "examples/packets")]));
});

test("the view begins with an example; a report takes its place", async () => {
  const opened = await explorer.show("#/run?k=4");
  const { page } = opened;
  await page.locator('.state[data-state="whole"]').waitFor();
  await page.locator("main").getByText("4, p = 1").waitFor();
  await page.locator("input[type=file]").setInputFiles(report);
  await page.locator('section[data-from="file"] .result[data-verified=true]').waitFor();
  await page.locator("main").getByText(/^16, p = 1/).waitFor();
  await page.locator("main").getByText("Shown: report.json.").waitFor();
  await done(opened);
});

test("a report is loaded where it is dropped, on any view", async () => {
  const opened = await explorer.show("#/schedule?k=4");
  const { page } = opened;
  const text = JSON.stringify(await explorer.json("encode", "-o", join(directory, "dropped"), "--json", join(repository, "examples/packets")));
  const transfer = await page.evaluateHandle((data) => {
    const t = new DataTransfer();
    t.items.add(new File([data], "report.json", { type: "application/json" }));
    return t;
  }, text);
  await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
  await page.locator(".result[data-verified=true]").waitFor();
  await done(opened);
});

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
