// How quick the page is: the first paint, and frames while a schedule of 64 processors
// plays. node test/measure.js prints both; they decide no test.
import { Explorer } from "./explorer.js";
import { test } from "node:test";

const explorer = new Explorer();

test("first paint, and frames per second", async (t) => {
  const paints = [];
  for (let i = 0; i < 5; i++) {
    const { page, close } = await explorer.show("#/schedule?k=16");
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    await close();
  }
  t.diagnostic(`first contentful paint: ${paints.map((ms) => ms.toFixed(0)).join(", ")} ms`);
  for (const hash of ["#/schedule?k=64&round=0", "#/schedule?k=64&p=2&round=0", "#/schedule?k=64&round=0&follow=3", "#/proof?k=64&round=0"]) {
    const { page, close } = await explorer.show(hash, { reducedMotion: "no-preference" });
    await page.evaluate(() => {
      globalThis.frames_ = [];
      const tick = (now) => {
        globalThis.frames_.push(now);
        requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    });
    await page.getByRole("button", { name: "Play" }).click();
    await page.waitForTimeout(2000);
    const lengths = await page.evaluate(() => globalThis.frames_.slice(1).map((now, i) => now - globalThis.frames_[i]));
    const seconds = lengths.reduce((a, b) => a + b, 0) / 1000;
    t.diagnostic(`${hash}: ${(lengths.length / seconds).toFixed(1)} frames per second, the longest takes ${Math.max(...lengths).toFixed(0)} ms`);
    await close();
  }
});
