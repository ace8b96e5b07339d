// Every view at three widths, light and dark, as pictures to look at: node test/views.js DIR [NAME].
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Explorer } from "./explorer.js";
import { views } from "./views.list.js";

const [, , directory = "/tmp/views", only = ""] = process.argv;
mkdirSync(directory, { recursive: true });
const explorer = new Explorer();

for (const [name, hash] of views.filter(([name]) => name.includes(only))) {
  test(name, async () => {
    for (const width of (process.env.WIDTHS ?? "390,1024,1440").split(",").map(Number)) {
      for (const colorScheme of (process.env.SCHEMES ?? "light,dark").split(",")) {
        const { page, close } = await explorer.open(hash, { viewport: { width, height: 900 }, colorScheme });
        await page.locator("main :is(svg, img, table, form, .banner)").first().waitFor();
        await page.waitForTimeout(700); // the last of several answers
        await page.screenshot({ path: join(directory, `${name}-${width}-${colorScheme}.png`), fullPage: true });
        await close();
      }
    }
  });
}
