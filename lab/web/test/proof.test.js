import assert from "node:assert/strict";
import { test } from "node:test";
import { done, Explorer } from "./explorer.js";

const explorer = new Explorer();

/** The cells of a matrix on the page: what each holds, and how it is marked. */
function cells(page, id) {
  return page.locator(`#${id} td[data-row]`).evaluateAll((list) =>
    list.map((td) => ({ row: +td.dataset.row, column: +td.dataset.column, state: td.dataset.state, value: td.dataset.value })));
}

for (const [name, hash, args] of [
  ["universal, K = 8", "#/proof?k=8&field=257&matrix=random:1", ["-k", "8", "--field", "257", "--matrix", "random:1"]],
  ["a DFT, K = 9, p = 2", "#/proof?k=9&p=2&field=19&matrix=dft&order=reversed", ["-k", "9", "--field", "19", "--matrix", "dft", "--order", "reversed"]],
  ["sinks", "#/proof?k=10&sinks=4&algorithm=sinks", ["-k", "10", "--sinks", "4"]],
  ["K = 64", "#/proof?k=64", ["-k", "64"]],
]) {
  test(`the transfer matrix fills in round by round until it is A: ${name}`, async () => {
    const { entries } = await explorer.json("matrix", ...args, "--format", "json");
    const opened = await explorer.show(`${hash}&round=0`);
    const { page } = opened;
    // Not by role and text: those would look at all 8,192 cells, again and again.
    const forward = page.locator('.playback button[aria-label="Step forward"]');
    const said = page.locator(".playback output");
    let right = -1;
    for (let rounds = 0; ; rounds++) {
      const says = page.locator(".says");
      const now = Number(await says.getAttribute("data-right"));
      assert.ok(now >= right, `${now} entries are right after ${rounds} rounds, ${right} before`);
      right = now;
      if (await forward.isDisabled()) break;
      await forward.click();
      await said.filter({ hasText: `after ${rounds + 1} round` }).waitFor();
    }
    assert.equal(right, entries.length * entries[0].length);
    assert.match(await page.locator(".says").textContent(), /equal/);
    const filled = await cells(page, "transfer");
    assert.equal(filled.length, right);
    for (const c of filled) {
      assert.equal(c.value, entries[c.row][c.column], `entry (${c.row}, ${c.column})`);
      assert.equal(c.state, "final", `entry (${c.row}, ${c.column})`);
    }
    await done(opened);
  });
}

test("the memory of a processor is what volley plan says of it", async () => {
  const { programs: [, , , program] } = await explorer.json("plan", "--model", "paper", "-k", "8", "--field", "7", "--matrix", "random:1", "--algorithm", "universal:2,4", "--format", "json");
  const opened = await explorer.show("#/proof?k=8&field=7&matrix=random:1&algorithm=universal:2,4&proc=3");
  const { page } = opened;
  const received = program.rounds.flatMap((r) => r.recvs ?? []).reduce((n, r) => n + r.count, 0);
  const computed = [...program.rounds, program].flatMap((r) => r.compute ?? []).length;
  assert.ok(received > 2 && computed > 2);
  assert.equal(await page.locator('tr[data-kind="input"]').count(), 1);
  assert.equal(await page.locator('tr[data-kind="received"]').count(), received);
  assert.equal(await page.locator('tr[data-kind="computed"]').count(), computed);
  await page.getByRole("button", { name: "First" }).click();
  await page.getByText("before round 0").waitFor();
  assert.equal(await page.locator('tr[data-kind="received"]').count(), 0);
  await done(opened);
});

test("the figures of the paper are shown under their numbers, as files, and open in the schedule view", async () => {
  const opened = await explorer.open("#/figures");
  const { page } = opened;
  for (const [number, text, correction] of [
    [1, "A universal algorithm for K = 4", "It must be xₖ₋₁ itself"], [2, "Prepare for K = 65, p = 2", ""],
    [3, "Shoot for K = 65, p = 2", "For K = 65 they are 58, 2, 11"], [4, "The two trees of a DFT", "Both are β³"],
  ]) {
    await page.getByRole("button", { name: `Figure ${number}`, exact: true }).click();
    await page.getByRole("heading", { name: text }).waitFor();
    const picture = page.getByRole("img", { name: `Figure ${number}: ` });
    await picture.evaluate((e) => e.decode());
    if (correction !== "") await page.getByText(correction).waitFor();
    for (const [format, start] of [["SVG", "<?xml"], ["PDF", "%PDF"], ["TikZ", "% Figure"]]) {
      const file = await page.getByRole("link", { name: format, exact: true }).getAttribute("href");
      const answer = await page.evaluate(async (f) => (await fetch(f)).text(), file);
      assert.ok(answer.startsWith(start), `${file}: ${answer.slice(0, 40)}`);
    }
    await page.getByText("Open in the schedule view").click();
    await page.locator("path.arrow, svg").first().waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: text }).waitFor();
  }
  await done(opened);
});
