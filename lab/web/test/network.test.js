// Plans for a network, which cut packets and send many messages in a round: each is a picture, in every size.
import assert from "node:assert/strict";
import { test } from "node:test";
import { done, Explorer, settled } from "./explorer.js";

const explorer = new Explorer();
const network = "model=network&network=10gbit/20us";

test("each is the ribbons of one processor, as many and as wide as volley plan says, and others faint", async () => {
  const opened = await explorer.open("#/schedule");
  const { page } = opened;
  for (const k of [8, 16, 32, 64, 81]) {
    await explorer.load(opened, `#/schedule?k=${k}&${network}`);
    const plan = await explorer.json("plan", "-k", `${k}`, "--model", "network", "--network", "10gbit/20us", "--format", "json");
    const focus = Math.floor(k / 2);
    const [sent, got] = [focus, null].map((src) =>
      plan.programs.flatMap((p, i) => p.rounds.flatMap((r, t) => (r.sends ?? []).filter((s) => (src === null ? s.dst === focus : i === src)).map((s) => `${t}: ${i} → ${s.dst}`))));
    const drawn = await page.locator("path.arrow").evaluateAll((list) => list.map((e) => ({ says: e.getAttribute("aria-label").match(/\d+: \d+ → \d+/)[0], colour: e.getAttribute("stroke"), wide: Number(e.getAttribute("stroke-width")) })));
    assert.deepEqual(drawn.filter((d) => d.colour === "var(--sent)").map((d) => d.says).sort(), sent.sort(), `K = ${k}: what it sends`);
    assert.deepEqual(drawn.filter((d) => d.colour === "var(--got)").map((d) => d.says).sort(), got.sort(), `K = ${k}: what it gets`);
    assert.equal(drawn.length, sent.length + got.length);
    assert.equal(new Set(drawn.map((d) => d.wide)).size, 1, "messages of one piece each are equally wide");
    assert.equal(await page.locator("path.texture").count(), plan.programs[0].rounds.length);
    assert.ok((await page.locator("text.label").count()) === 0 && (await page.locator("text.end").count()) <= drawn.length, "labels are only those of the processor in focus");
    await page.getByRole("status").getByText(new RegExp(`processor ${focus} sends ${k - 1} messages of .*, piece ${focus} of y.*; and gets ${k - 1} messages of .* of y${focus}\\.$`)).waitFor();
  }
  await done(opened);
});

test("play and guide go through every size, and the address has the processor in focus", async () => {
  const opened = await explorer.open("#/schedule");
  const { page } = opened;
  for (const k of [16, 32, 64, 256]) {
    await explorer.load(opened, `#/schedule?k=${k}&${network}&round=0`);
    await page.getByText("Nobody has heard of another's packet.").waitFor();
    await page.getByRole("button", { name: "Step forward" }).click();
    await page.getByRole("status").getByText(/^Round 0, hand out, /).waitFor();
    await page.getByText("after 1 round of 2").waitFor(); // where the round moves, it has passed
    await page.keyboard.press("End");
    await page.getByRole("status").getByText(/^Round 1, hand back, /).waitFor();
  }
  await explorer.load(opened, `#/schedule?k=64&${network}`);
  await page.getByLabel("Follow", { exact: true }).selectOption("5");
  await page.waitForFunction(() => location.hash.includes("follow=5"));
  await page.getByRole("status").getByText(/processor 5 sends/).waitFor();
  await done(opened);
});

test("a heat map has bytes on its scale, and time on its axis", async () => {
  const opened = await explorer.show(`#/schedule?k=256&${network}`);
  const { page } = opened;
  const [first, second] = await page.locator("figure").all();
  assert.match(await first.locator(".legend").textContent(), /nothing\s*1020 KiB/);
  assert.match(await second.locator(".legend").textContent(), /nothing\s*8 KiB/);
  const ends = (await first.locator("text.end").allTextContents()).filter((t) => /s$/.test(t));
  const cost = await page.locator(".cost").textContent();
  assert.ok(cost.includes("2.83 ms") && ends.includes("2.83 ms"), `${cost}: ${ends}`);
  await explorer.load(opened, `#/schedule?k=256&field=2^16&matrix=random:1&algorithm=bruck-allgather`);
  assert.match(await page.locator("figure .legend").first().textContent(), /up to .*MiB.*128 MiB/);
  await settled(page);
  await done(opened);
});
