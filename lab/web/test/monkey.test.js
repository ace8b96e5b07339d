// Random actions, from a seed: the page complains about nothing. MONKEY_SEED and
// MONKEY_ACTIONS choose others than CI's.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Explorer, limit, settled } from "./explorer.js";

const explorer = new Explorer();
const seed = Number(process.env.MONKEY_SEED ?? 1);
const actions = Number(process.env.MONKEY_ACTIONS ?? 2000);

/** Numbers from 0 to below n, the same ones for the same seed: mulberry32. */
function random(state) {
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

const texts = {
  processors: ["2", "3", "4", "8", "9", "16", "27", "64", "100", "500", "0", "x", ""],
  ports: ["1", "2", "3", "7", "0", ""],
  field: ["7", "17", "257", "2^8", "2^16", "6", ""],
  size: ["1KiB", "1MiB", "64MiB", "large", ""],
  ks: ["2..20", "4,8,16", "1..", ""],
  nodes: ["2", "5", "64", "65", "1024", "0", "x", ""],
  tolerate: ["1", "2", "20", "0", ""],
  lost: ["1,5", "0", "9999", "x", ""],
  data: ["1GiB", "x", ""],
};
const hashes = [
  "#/schedule?k=8", "#/schedule?k=2&round=0", "#/schedule?k=8&follow=7&tree=gather&round=1", "#/schedule?k=8&algorithm=exchange:8&axis=time&model=network",
  "#/protect?nodes=300&tolerate=20&lost=1,299", "#/protect?nodes=6&tolerate=2", "#/proof?k=3&proc=2", "#/proof?k=16&round=2", "#/cost?k=16", "#/figures?figure=dft", "#/figures?figure=universal&round=1",
  "#/schedule?k=27&p=2&follow=26&message=1.26.1", "#/schedule?k=500&field=2%5E16&matrix=random:1", "#/schedule?k=8&sinks=3&follow=7",
];
const keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", " ", "Enter", "Escape", "Tab", "Tab", "/", "?"];
const operable = 'button:not(:disabled), select, input, summary, [role="button"], [role="tab"], [role="gridcell"], td.entry, a[href]';

/** Ends with what is waited for, or after the limit with an error. */
async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`hangs: ${what()}`)), limit)));
  await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

test(`${actions} random actions, seed ${seed}`, async () => {
  const { page, problems, close } = await explorer.show("", { reducedMotion: "no-preference", viewport: { width: 1100, height: 800 } });
  // A warning says where it comes from.
  await page.evaluate(() => {
    const { warn } = console;
    console.warn = (...all) => warn(...all, new Error("warned").stack);
    globalThis.print = () => {}; // Firefox would show a preview, and take no more clicks
  });
  const pick = random(seed);
  const one = (list) => list[pick(list.length)];
  const log = [];
  const does = {
    async operate() {
      const n = pick(1 << 30);
      const found = await page.evaluate(([operable, n]) => {
        const all = [...document.querySelectorAll(operable)].filter((e) => e.checkVisibility() && e.type !== "file");
        const e = all[n % all.length];
        if (!e) return null;
        e.scrollIntoView({ block: "nearest" });
        const { x, y, width, height } = e.getBoundingClientRect();
        const options = e instanceof HTMLSelectElement ? [...e.options].map((o) => o.value) : null;
        return { x: x + width / 2, y: y + height / 2, id: e.id, name: e.name, tag: e.tagName, type: e.type, options, says: (e.getAttribute("aria-label") ?? e.textContent).trim().slice(0, 40) };
      }, [operable, n]);
      const { width, height } = page.viewportSize();
      if (!found || found.x < 0 || found.y < 0 || found.x >= width || found.y >= height) return;
      log.push(`${found.tag} ${found.name || found.id || found.says}`);
      if (found.options && found.id) {
        await page.evaluate(([id, value]) => {
          const select = document.getElementById(id);
          if (!select) return; // it has gone meanwhile
          select.value = value;
          for (const type of ["input", "change"]) select.dispatchEvent(new Event(type, { bubbles: true }));
        }, [found.id, one(found.options)]);
      } else if (found.type === "text" || found.type === "search") {
        const text = one(texts[found.name] ?? ["1", "2", "nonsense", ""]);
        log.push(`  types ${text}`);
        await page.mouse.click(found.x, found.y, { clickCount: 3 });
        await page.keyboard.press("Backspace");
        await page.keyboard.insertText(text);
      } else if (!found.options) await page.mouse.click(found.x, found.y);
    },
    async key() {
      const key = one(keys);
      log.push(`key ${key}`);
      await page.keyboard.press(key);
    },
    async point() {
      const { width, height } = page.viewportSize();
      const [x, y] = [pick(width), pick(height)];
      log.push(`point ${x},${y}`);
      await page.mouse.move(x, y);
      if (pick(3) === 0) await page.mouse.click(x, y);
    },
    async go() {
      const hash = one(hashes);
      log.push(`to ${hash}`);
      await page.evaluate((h) => (location.hash = h), hash);
    },
    async back() {
      log.push("back");
      await page.evaluate(() => navigation.currentEntry.index > 0 && history.back()); // not out of the page
    },
    async resize() {
      const width = one([390, 700, 1024, 1440]);
      log.push(`${width} px`);
      await page.setViewportSize({ width, height: 800 });
    },
    async wait() {
      const ms = one([10, 30, 100]);
      log.push(`wait ${ms} ms`);
      await page.waitForTimeout(ms);
    },
    // What plays belongs to a plan, which another one follows.
    async stepAndReplace() {
      log.push("steps, and takes other processors");
      await page.keyboard.press("Home");
      await page.keyboard.press("ArrowRight");
      const { hash } = new URL(page.url());
      await page.evaluate((h) => (location.hash = h), `${hash.split("?")[0]}?k=${one([2, 3, 5, 8, 16])}`);
    },
  };
  const weighted = [...Array(12).fill("operate"), ...Array(5).fill("key"), ...Array(3).fill("point"), "go", "go", "back", "wait", "wait", "resize", "stepAndReplace"];
  for (let i = 0; i < actions && problems.length === 0; i++) {
    await within(does[one(weighted)](), () => log.slice(-25).join("; "));
    assert.ok(new URL(page.url()).pathname === "/", "the page was left");
  }
  await settled(page);
  assert.deepEqual(problems, [], `seed ${seed}, after ${log.length} actions: ${log.slice(-25).join("; ")}`);
  assert.ok(await page.locator("header.top h1").isVisible());
  await close();
});
