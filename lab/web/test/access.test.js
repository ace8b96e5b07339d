// Every view can be used by all, as far as axe can tell.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { done, Explorer, settled } from "./explorer.js";

const explorer = new Explorer();
const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

// Cells are looked at one by one: 24 nodes and 25 processors have the small ones of many, and few of them.
const hashes = [
  "", "#/protect?nodes=16&tolerate=2&lost=1,5", "#/protect?nodes=24&lost=1", "#/protect?nodes=500&tolerate=9&lost=1", "#/schedule?k=8&follow=2", "#/schedule?k=64&p=2", "#/schedule?k=1024&field=2%5E16&matrix=random:1", "#/schedule?k=x", "#/proof?k=8&round=1",
  "#/proof?k=25", "#/cost?k=16", "#/run?k=8&sample=1KiB&pace=5ms", "#/figures?figure=shoot", "#/figures?figure=dft",
];

test("axe finds nothing, light and dark", async (t) => {
  const opened = await explorer.open("");
  const { page } = opened;
  for (const hash of hashes) {
    await t.test(hash || "the first view", async () => {
      await page.goto("about:blank");
      await page.goto(`${explorer.server.address}${hash}`);
      await page.locator("main :is(svg, img, table, form.fields, .banner)").first().waitFor();
      await settled(page);
      if (hash.startsWith("#/run")) {
        await page.getByRole("button", { name: "Run on sample data" }).click();
        await page.locator('.state[data-state="whole"]').waitFor();
      }
      await page.evaluate(axe);
      for (const theme of ["light", "dark"]) {
        await page.getByLabel("Theme").selectOption(theme);
        const found = await page.evaluate(async () => {
          const { violations } = await globalThis.axe.run();
          return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join("; ")}`);
        });
        assert.deepEqual(found, [], theme);
      }
    });
  }
  await done(opened);
});
