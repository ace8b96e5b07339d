// Every view can be used by all, as far as axe can tell.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { done, Explorer, settled } from "./explorer.js";

const explorer = new Explorer();
const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

// Cells are looked at one by one: 24 nodes and 25 processors have the small ones of many, and few of them.
const hashes = [
  "", "#/protect?nodes=16&tolerate=2&lost=1,5", "#/protect?nodes=24&lost=1", "#/protect?nodes=8&tolerate=9", "#/protect?nodes=500&tolerate=9&lost=1", "#/schedule?k=8&follow=2", "#/schedule?k=8&message=2.0.0&bytes=1", "#/schedule?k=64&p=2", "#/schedule?k=1024&field=2%5E16&matrix=random:1", "#/schedule?k=x", "#/proof?k=8&round=1",
  "#/proof?k=25", "#/cost?k=16", "#/cost?k=16&only=direct,universal&chart=seconds&ks=8..16", "#/cost?ks=x", "#/figures?figure=shoot", "#/figures?figure=dft",
];

test("axe finds nothing, light and dark", async (t) => {
  const opened = await explorer.open("");
  const { page } = opened;
  for (const hash of hashes) {
    await t.test(hash || "the first view", async () => {
      await page.goto("about:blank");
      await page.goto(`${explorer.server.address}${hash}`);
      await page.locator("main :is(svg, img, table, form.fields, .error, .banner)").first().waitFor();
      await settled(page);
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

test("texts of drawings have a contrast of 4.5 and more, also of rounds to come, light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const opened = await explorer.open("", { colorScheme });
    const { page } = opened;
    for (const hash of ["#/schedule?k=8&round=1", "#/schedule?k=8&p=2&follow=2&round=1", "#/schedule?k=16&model=network&round=1", "#/schedule?k=4&algorithm=exchange:4&round=1", "#/schedule?k=64&model=network", "#/schedule?k=256&model=network", "#/cost?k=16"]) {
      await explorer.load(opened, hash);
      await page.locator("main svg text").first().waitFor({ state: "attached" });
      const poor = await page.evaluate(() => {
        const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
        const rgb = (colour, alpha = 1, on = [255, 255, 255]) => {
          context.clearRect(0, 0, 1, 1);
          context.fillStyle = colour;
          context.fillRect(0, 0, 1, 1);
          const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
          return [r, g, b].map((c, i) => (c * a * alpha) / 255 + on[i] * (1 - (a * alpha) / 255));
        };
        const light = (c) => c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
        const papers = ["--paper", "--band"].map((name) => rgb(variable(name)));
        return [...document.querySelectorAll("main svg text")].flatMap((e) => {
          const style = getComputedStyle(e);
          if (style.visibility === "hidden" || e.matches(".number.chosen")) return []; // on a disk of its own
          let alpha = Number(style.fillOpacity);
          for (let at = e; at instanceof SVGElement; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity);
          const contrast = Math.min(...papers.map((paper) => {
            const [a, b] = [light(rgb(style.fill, alpha, paper)), light(paper)].sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05);
          }));
          return contrast < 4.5 || parseFloat(style.fontSize) < 11 ? [`${e.getAttribute("class")} ${e.textContent}: ${contrast.toFixed(2)}, ${style.fontSize}`] : [];
        });
      });
      assert.deepEqual([...new Set(poor)].slice(0, 5), [], `${colorScheme} ${hash}`);
    }
    await done(opened);
  }
});
