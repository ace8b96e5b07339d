// Files of one's own that are no report.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { done, Explorer, repository, run } from "./explorer.js";

let directory;
const explorer = new Explorer(async (binary) => (directory = binary.directory));

function drop(page, name, text) {
  return page.locator("input[type=file]").setInputFiles({ name, mimeType: "application/json", buffer: Buffer.from(text) });
}

test("a plan of one's own is drawn, and proven, until a field is changed", async () => {
  const text = await run(explorer.binary.volley, ["plan", "--model", "paper", "-k", "6", "--matrix", "random:1", "--format", "json"]);
  const opened = await explorer.show("#/run?k=4");
  const { page } = opened;
  await drop(page, "mine.json", text);
  await page.getByText("from mine.json").waitFor();
  const messages = JSON.parse(text).programs.flatMap((p) => p.rounds.flatMap((r) => r.sends ?? [])).length;
  assert.equal(await page.locator("path.arrow").count(), messages);
  // The fields are those of the plan, and its bounds are there.
  for (const [name, value] of [["processors", "6"], ["ports", "1"], ["field", "2^8"]]) assert.equal(await page.locator(`input[name=${name}]`).inputValue(), value);
  assert.equal(await page.locator("select[name=matrix]").inputValue(), "that of mine.json");
  assert.match(await page.locator(".cost").textContent(), /C1 3 rounds\s*bound 3.*C2 .*bound 3/s);
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
  await page.getByRole("tab", { name: "Run" }).click();
  await drop(page, "triangular.json", await run(explorer.binary.volley, ["plan", "--model", "paper", "-k", "3", "--field", "7", "--matrix", `file:${triangular}`, "--format", "json"]));
  await page.locator(".summary").getByText("until each has its mixture of 1 to 3 packets.").waitFor();
  assert.equal(await page.locator("input[name=field]").inputValue(), "7");
  await page.getByRole("tab", { name: "Run" }).click();
  await drop(page, "cut.json", text.slice(0, 300));
  await page.locator(".banner").getByText(/^cut\.json: /).waitFor();
  await done(opened);
});

test("the manifest of a group shows the group, that of volley encode its matrix", async () => {
  const nodes = Array.from({ length: 4 }, (_, i) => join(directory, `node.${i}`));
  for (const node of nodes) {
    mkdirSync(node);
    cpSync(join(repository, "examples/packets"), node, { recursive: true });
  }
  await run(explorer.binary.volley, ["protect", "--tolerate", "1", ...nodes]);
  const manifest = readFileSync(join(nodes[0], ".volley/generation.1/manifest.json"), "utf8");
  const opened = await explorer.show("#/run?k=4");
  const { page } = opened;
  await drop(page, "manifest.json", manifest);
  await page.getByText(`group ${JSON.parse(manifest.split("\n")[0]).group}, generation 1`).waitFor();
  assert.equal(await page.locator("thead th").count(), 4);
  await page.getByRole("tab", { name: "Run" }).click();
  await drop(page, "manifest.json", manifest.replace('"nodes":4', '"nodes":1'));
  await page.getByText("manifest.json: nodes: 1: want 2 to 1024").waitFor();
  const coded = join(directory, "coded");
  const points = join(directory, "points.txt");
  writeFileSync(points, Array.from({ length: 16 }, (_, i) => 255 - 3 * i).join("\n"));
  await run(explorer.binary.volley, ["encode", "--matrix", "vandermonde", "--points", points, "-o", coded, join(repository, "examples/packets")]);
  await drop(page, "manifest.json", readFileSync(join(coded, "manifest.json"), "utf8"));
  await page.locator(".heading").getByText("K = 16").waitFor();
  await page.getByRole("tab", { name: "Proof" }).click();
  assert.deepEqual(await page.locator('#given td[data-row="1"]').allTextContents(), Array.from({ length: 16 }, (_, i) => String(255 - 3 * i)));
  await page.keyboard.press("End");
  await page.getByText("all 256 entries equal over").waitFor();
  await done(opened);
});
