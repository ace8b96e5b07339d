import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { done, Explorer, holdRun, inFirefox, repository, run } from "./explorer.js";

let directory, report, trace;
const explorer = new Explorer(async ({ directory: there, volley }) => {
  directory = there;
  [report, trace] = [join(directory, "report.json"), join(directory, "trace.json")];
  writeFileSync(report, await run(volley, ["encode", "--model", "paper", "-o", join(directory, "coded"), "--json", "--trace", trace, join(repository, "examples/packets")]));
});

test("the view begins with an example; what a chosen processor did is listed", async () => {
  const opened = await explorer.show("#/run?k=4");
  const { page } = opened;
  await page.locator('.state[data-state="whole"]').waitFor();
  const processors = page.locator("tr[data-processor]");
  assert.equal(await processors.count(), 4);
  await page.getByRole("button", { name: "P2" }).click();
  assert.match(await page.locator('tr[data-kind="send"][data-round="0"]').first().textContent(), /send, round 0\s*P2 → P\d/);
  await done(opened);
});

test("the trace of a run is a file that loads", { skip: inFirefox && "it does not tell of downloads" }, async () => {
  const opened = await explorer.show("#/run?k=4");
  const { page } = opened;
  await page.locator('.state[data-state="whole"]').waitFor();
  const rounds = await page.locator("tr[data-round][data-measured]").count();
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save trace" }).click()]);
  const file = join(directory, "saved.json");
  await saved.saveAs(file);
  await page.locator("input[type=file]").setInputFiles(file);
  await page.locator('section[data-from="files"]').waitFor();
  assert.equal(await page.locator("tr[data-processor]").count(), 4);
  assert.equal(await page.locator("tr[data-round][data-measured]").count(), rounds);
  await done(opened);
});

test("a report and a trace are loaded", async () => {
  const opened = await explorer.show("#/run");
  const { page } = opened;
  await page.locator("input[type=file]").setInputFiles(report);
  await page.locator(".result[data-verified=true]").waitFor();
  await page.locator("main").getByText(/universal/).first().waitFor();
  await page.locator("input[type=file]").setInputFiles([report, trace]);
  await page.locator("tr[data-processor]").first().waitFor();
  assert.equal(await page.locator('tr[data-processor]:not([data-rank="0"])').count(), 0);
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

test("a broken file is named, with the place and reason; what was good stays", async () => {
  const opened = await explorer.show("#/run");
  const { page } = opened;
  const input = page.locator("input[type=file]");
  await input.setInputFiles(report);
  await page.locator(".result").waitFor();
  for (const [name, text, reason] of [
    ["cut.json", '{\n "k": 4,\n "c1":', /cut\.json: line 3/],
    ["picture.png", "\u0089PNG", /picture\.png: line 1/],
    ["negative.json", '{\n"k": -4\n}', /negative\.json: k: -4: want 1/],
    ["other.json", '{"traceEvents": [\n{"ph":"X","name":"nosuch"}]}', /other\.json: line 2/],
    ["empty.json", "", /empty\.json/],
  ]) {
    await input.setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(text) });
    await page.locator("#files-error").filter({ hasText: name }).waitFor();
    assert.match(await page.locator("#files-error").textContent(), reason);
    assert.equal(await page.locator(".result").count(), 1);
  }
  await done(opened);
});

test("a run on sample data is watched, and verified", async () => {
  const opened = await explorer.show("#/run?k=8&p=2&sample=4KiB&pace=5ms");
  const { page } = opened;
  await page.locator('.state[data-state="whole"]').waitFor(); // the example that the view begins with
  const letRunGo = await holdRun(page);
  await page.getByRole("button", { name: "Run on sample data" }).click();
  await page.locator('[data-live="true"]').waitFor();
  await letRunGo();
  await page.locator('.state[data-state="whole"]').waitFor();
  assert.match(await page.locator(".state").textContent(), /Verified/);
  const plan = await explorer.json("plan", "--model", "paper", "-k", "8", "-p", "2", "--size", "4KiB", "--format", "json");
  assert.equal(await page.locator("tr[data-processor]").count(), 8);
  assert.equal(await page.locator("tr[data-round][data-measured]").count(), plan.programs[0].rounds.length);
  const sends = plan.programs.flatMap((p) => p.rounds.flatMap((r) => r.sends ?? [])).length;
  const shown = await page.locator("tr[data-sends]").evaluateAll((rows) => rows.reduce((n, row) => n + Number(row.dataset.sends), 0));
  assert.equal(shown, sends);
  await done(opened);
});

test("a run is cancelled; fields of it that are wrong say so", async () => {
  const opened = await explorer.show("#/run?k=16&sample=64KiB&pace=2s");
  const { page } = opened;
  await page.locator('.state[data-state="whole"]').waitFor(); // the example that the view begins with
  await holdRun(page);
  await page.getByRole("button", { name: "Run on sample data" }).click();
  await page.locator('[data-live="true"]').waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator('.state[data-state="cancelled"]').waitFor();
  await page.getByRole("button", { name: "Run on sample data" }).waitFor();
  for (const [field, text] of [["sample", "much"], ["sample", "1GiB"], ["pace", "slow"], ["pace", "1h"]]) {
    await page.locator(`#run-sample`).fill(field === "sample" ? text : "64KiB");
    await page.locator(`#run-pace`).fill(field === "pace" ? text : "0");
    await page.getByRole("button", { name: "Run on sample data" }).click();
    await page.locator(`#run-${field}-error`).waitFor();
  }
  await done(opened);
});
