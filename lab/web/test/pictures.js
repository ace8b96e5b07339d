// The pictures of the documents: docs/explore-*.png. node test/pictures.js makes them.
import { join } from "node:path";
import { test } from "node:test";
import { done, Explorer, repository } from "./explorer.js";

const explorer = new Explorer();

for (const [name, hash, height] of [
  ["schedule", "#/schedule?k=16&round=3&follow=5&tree=gather&message=2.13.0", 1050],
  ["pieces", "#/schedule?k=8&model=network&axis=time", 900],
  ["protect", "#/protect?nodes=8&tolerate=2&lost=1,4", 860],
  ["proof", "#/proof?k=9&p=2&field=19&matrix=dft&round=1&proc=3", 870],
  ["cost", "#/cost?k=64", 780],
  ["figures", "#/figures?figure=dft", 1010],
]) {
  test(name, async () => {
    const opened = await explorer.open(hash, { viewport: { width: 1280, height } });
    const { page } = opened;
    await page.locator("main :is(svg, table, form)").first().waitFor();
    await page.waitForTimeout(1500); // the last of several answers
    await page.screenshot({ path: join(repository, "docs", `explore-${name}.png`) });
    await done(opened);
  });
}
