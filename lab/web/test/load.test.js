// Files of one's own.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { done, Explorer, run } from "./explorer.js";

let directory;
const explorer = new Explorer(async (binary) => (directory = binary.directory));

function drop(page, name, text) {
  return page.locator("input[type=file]").setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(text) });
}

test("a plan of one's own is drawn, and proven, until a field is changed", async () => {
  const text = await run(explorer.binary.volley, ["plan", "--model", "paper", "-k", "6", "--matrix", "random:1", "--format", "json"]);
  const opened = await explorer.show("#/schedule?k=4");
  const { page } = opened;
  await drop(page, "mine.json", text);
  await page.getByText("from mine.json").waitFor();
  const messages = JSON.parse(text).programs.flatMap((p) => p.rounds.flatMap((r) => r.sends ?? [])).length;
  assert.equal(await page.locator("path.arrow").count(), messages);
  // The fields are those of the plan, and its bounds are there.
  for (const [name, value] of [["processors", "6"], ["ports", "1"], ["field", "2^8"]]) assert.equal(await page.locator(`input[name=${name}]`).inputValue(), value);
  assert.equal(await page.locator("select[name=matrix]").inputValue(), "that of mine.json");
  assert.match(await page.locator(".cost").textContent(), /C1 3 rounds.*C2 .*for every matrix in 3 rounds/s);
  await page.getByRole("tab", { name: "Proof" }).click();
  await page.keyboard.press("End");
  await page.getByText("This is the matrix that the plan computes.").waitFor();
  assert.equal(await page.getByText("entries equal").count(), 0); // with itself, which proves nothing
  for (const [matrix, says] of [["random:1", "all 36 entries equal over"], ["cauchy", "The transfer matrix differs from A in"], ["nosuch", "nosuch"]]) {
    await page.getByLabel("Compare with").fill("");
    await page.keyboard.type(matrix);
    await page.keyboard.press("Tab");
    await page.locator("main").getByText(says).first().waitFor();
  }
  await page.getByRole("tab", { name: "Schedule" }).click();
  await page.locator("input[name=processors]").fill("5");
  await page.locator(".heading").getByText("K = 5").waitFor();
  // A triangular matrix mixes no packets of those after.
  const triangular = join(directory, "triangular.txt");
  writeFileSync(triangular, "1,1,1\n0,1,1\n0,0,1\n");
  await drop(page, "triangular.json", await run(explorer.binary.volley, ["plan", "--model", "paper", "-k", "3", "--field", "7", "--matrix", `file:${triangular}`, "--format", "json"]));
  await page.locator(".summary").getByText("until each has its mixture of 1 to 3 packets.").waitFor();
  assert.equal(await page.locator("input[name=field]").inputValue(), "7");
  await drop(page, "cut.json", text.slice(0, 300));
  await page.locator(".banner").getByText(/^cut\.json: /).waitFor();
  await done(opened);
});
