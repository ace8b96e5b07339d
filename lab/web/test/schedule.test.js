import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { done, Explorer, inFirefox, settled } from "./explorer.js";

const explorer = new Explorer();

/** Unfolds the fields of experts. */
const unfold = (page) => page.getByText("Matrix, field, algorithm, size", { exact: true }).click();

test("the view opens before the first round, and steps a schedule to its end, while memories fill", async () => {
  const opened = await explorer.show("#/cost");
  const { page } = opened;
  await page.getByRole("tab", { name: "Schedule" }).click();
  await settled(page, "schedule");
  const heard = () => page.locator(".drawing > g > .stripe").count();
  assert.equal(await heard(), 8, "each its own packet");
  assert.match(await page.title(), /Volley/);
  const said = page.locator(".playback output");
  assert.equal(await said.textContent(), "before round 0");
  assert.equal(await page.locator(".round.past").count(), 0);
  const forward = page.getByRole("button", { name: "Step forward" });
  for (let rounds = 1; rounds <= 3; rounds++) {
    await forward.click();
    await page.getByText(`after ${rounds} round${rounds > 1 ? "s" : ""} of 3`).waitFor();
    assert.equal(await page.locator("g.round.past").count(), rounds);
    assert.equal(await heard(), 8 * 2 ** rounds);
  }
  assert.equal(await forward.isDisabled(), true);
  await page.keyboard.press("Home");
  assert.equal(await said.textContent(), "before round 0");
  await page.getByRole("button", { name: "Play" }).click();
  await page.getByText("after 3 rounds of 3").waitFor();
  await page.getByRole("slider").fill("1");
  assert.equal(await said.textContent(), "after 1 round of 3");
  await page.waitForFunction(() => location.hash.includes("round=1"));
  await done(opened);
});

test("every message of volley plan is an arrow, and says what it carries", async () => {
  const plan = await explorer.json("plan", "--model", "paper", "-k", "9", "-p", "2", "--matrix", "random:1", "--field", "7", "--format", "json");
  const opened = await explorer.show("#/schedule?k=9&p=2&matrix=random:1&field=7");
  const { page } = opened;
  const arrows = page.locator("path.arrow");
  const messages = plan.programs.flatMap((p) => p.rounds.flatMap((r) => r.sends ?? []));
  assert.equal(await arrows.count(), messages.length);
  await page.locator('path.arrow[aria-label*="0 → 1 on"]').first().focus();
  const panel = page.getByRole("region", { name: "Message" });
  await panel.getByText("0 → 1").waitFor();
  assert.match(await panel.textContent(), /round 0, prepare, port 0 · 1 element, 1 MiB/);
  assert.match(await panel.textContent(), /x0\s*= x0/);
  await page.keyboard.press("ArrowDown"); // to the same place of the next round
  await panel.getByText("round 1, shoot").waitFor();
  assert.match(await panel.textContent(), /y\d\(.*\)\s*= (\d·)?x\d \+/);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("message="));
  await done(opened);
});

test("a message shows its sums in bytes: coefficients, products, and their xor", async () => {
  const times = (a, b) => { // over 2^8 by 0x11d
    let product = 0;
    for (; b > 0; b >>= 1, a = (a << 1) ^ (a & 128 ? 0x11d : 0)) if (b & 1) product ^= a;
    return product;
  };
  const opened = await explorer.show("#/schedule?k=8");
  const { page } = opened;
  const read = () => page.locator(".products").first().locator("tr").evaluateAll((rows) => rows.map((r) => [r.cells[2].innerText.split("·")[0], ...[...r.querySelectorAll("code")].map((c) => c.innerText)]));
  const bytes = (text) => text.split(" ").map((x) => parseInt(x, 16));
  await page.locator("path.arrow").last().focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".products").count(), 0);
  await page.getByRole("button", { name: "Show bytes" }).click();
  await page.locator(".products").first().waitFor();
  const terms = await read();
  const [, sum] = terms.pop();
  assert.ok(terms.length > 1);
  for (const [coef, packet, product] of terms) assert.deepEqual(bytes(product), bytes(packet).map((b) => times(b, Number(coef))));
  assert.deepEqual(bytes(sum), terms.map(([, , p]) => bytes(p)).reduce((a, b) => a.map((x, i) => x ^ b[i])));
  // The address has it. What is only passed on is one line.
  await explorer.load(opened, "#/schedule?k=8&message=0.0.0&bytes=1");
  await page.getByRole("region", { name: "Message" }).getByText("57 41 56 45 WAVE").waitFor();
  await done(opened);
});

test("a processor is followed: where its packet goes, where its result comes from", async () => {
  const opened = await explorer.show("#/schedule?k=8");
  const { page } = opened;
  await page.getByRole("button", { name: "Follow processor 3" }).click();
  await page.waitForFunction(() => location.hash.includes("follow=3"));
  await page.getByText("where x3 goes").waitFor();
  const others = async () => new Set((await page.locator("path.arrow.followed").evaluateAll((list) => list.map((e) => e.getAttribute("aria-label")))).flatMap((l) => l.match(/(\d+) → (\d+)/).slice(1))).size;
  assert.equal(await others(), 8, "a packet goes to 7 others");
  await page.getByRole("button", { name: "result" }).click();
  await page.getByText("where y3 comes from").waitFor();
  assert.equal(await others(), 8, "a result comes from 7 others");
  await page.getByRole("group", { name: "What stands out" }).getByRole("button", { name: "messages" }).click();
  await page.getByRole("status").getByText(/Round 2, shoot, .* processor 3 sends 1 message of 1 MiB, part of y7; and gets 1 message of 1 MiB, part of y3\./).waitFor();
  assert.equal(await page.locator("path.arrow.followed").count(), 6, "3 that it sends, and 3 that it gets");
  await done(opened);
});

test("a drawing is exported as SVG that parses, and as PNG", { skip: inFirefox && "it does not tell of downloads" }, async () => {
  const opened = await explorer.show("#/schedule?k=16&follow=2");
  const { page } = opened;
  const [svg] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export SVG" }).click()]);
  assert.equal(svg.suggestedFilename(), "volley-universal-k16-p1.svg");
  const text = await readFile(await svg.path(), "utf8");
  const parsed = await page.evaluate((source) => {
    const document = new DOMParser().parseFromString(source, "image/svg+xml");
    return {
      error: document.querySelector("parsererror")?.textContent,
      root: document.documentElement.namespaceURI,
      arrows: document.querySelectorAll("path > title").length,
      variables: source.includes("var("),
    };
  }, text);
  assert.deepEqual(parsed, { error: undefined, root: "http://www.w3.org/2000/svg", arrows: 64, variables: false });
  const [png] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export PNG" }).click()]);
  const bytes = await readFile(await png.path());
  assert.equal(bytes.subarray(1, 4).toString(), "PNG");
  assert.ok(bytes.readUInt32BE(16) > 1000, "the width of the picture");
  await done(opened);
});

test("1,024 processors are shown by the sizes of messages", async () => {
  const opened = await explorer.show("#/schedule?k=1024&field=2%5E16&matrix=random:1");
  const { page } = opened;
  assert.equal(await page.locator("path.arrow").count(), 0);
  const cost = await explorer.json("cost", "-k", "1024", "--field", "2^16", "--algorithm", "universal", "--format", "json");
  await page.locator("select[name=algorithm]").selectOption("universal"); // field and matrix are not the usual ones: they are unfolded
  await page.getByText(`${cost.rows[0].universal_C1} rounds`).first().waitFor();
  assert.ok((await page.locator("main svg, main canvas").count()) >= 2, "two heat maps");
  await done(opened);
});

test("bad input has its message beside the field, and the last good picture stays", async () => {
  const opened = await explorer.show("#/schedule?k=8");
  const { page } = opened;
  await unfold(page);
  await page.getByText("More", { exact: true }).click();
  for (const [field, text] of [
    ["processors", "x"], ["ports", "0"], ["field", "6"], ["beta", "3"], ["size", "large"], ["sinks", "0"], ["max-memory", "1"],
  ]) {
    const input = page.locator(`input[name=${field}]`);
    const before = await input.inputValue();
    await input.fill(text);
    await page.locator(`#flag-${field}-error`).waitFor();
    assert.equal(await input.getAttribute("aria-invalid"), "true", `${field} ${text}`);
    assert.ok((await page.locator("path.arrow").count()) > 0, "the page is blank");
    await input.fill(before);
    await page.locator(`#flag-${field}-error`).waitFor({ state: "detached" });
  }
  await page.locator("select[name=matrix]").selectOption("dft");
  await page.locator("#flag-matrix-error").waitFor();
  assert.match(await page.locator("#flag-matrix-error").textContent(), /K = 8 does not divide/);
  await done(opened);
});

test("many processors open on the schedule of the story, and what the planner would take is what it takes", async () => {
  const opened = await explorer.show("#/schedule?k=64");
  const { page } = opened;
  assert.match(await page.locator(".heading").innerText(), /^universal m=8 n=8 /);
  const { algorithm, parameters } = await explorer.json("plan", "--model", "paper", "-k", "64", "--json");
  await page.getByText(`The planner would take ${algorithm} ${parameters}, in `).waitFor();
  await page.getByText("Matrix, field, algorithm, size", { exact: true }).click();
  await page.locator("select[name=algorithm]").selectOption("auto");
  await page.locator(".heading").getByText(`${algorithm} ${parameters} `).waitFor();
  await done(opened);
});

for (const width of [360, 390]) test(`nothing is wider than the window at ${width} px`, async () => {
  const opened = await explorer.show("", { viewport: { width, height: 900 } });
  const { page } = opened;
  for (const hash of ["#/story/1", "#/schedule?k=8&model=network&axis=time", "#/schedule?k=8&message=2.0.0&bytes=1", "#/schedule?k=500", "#/protect?nodes=8", "#/proof?k=64", "#/cost?k=16&chart=c1", "#/cost?k=64&model=network&chart=seconds", "#/figures?figure=dft"]) {
    await explorer.load(opened, hash);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width, hash);
    // What does not scroll is seen whole: all tabs, and what stands above tables.
    const cut = await page.locator('[role="tab"], caption, dd').evaluateAll((list) => list.filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth).map((e) => e.textContent));
    assert.deepEqual(cut, [], hash);
    const sideways = await page.locator(".scroll:has(table), .reading, .tabs").evaluateAll((list) => list.filter((e) => e.scrollWidth > e.clientWidth).map((e) => `${e.innerText.slice(0, 40)}: ${e.scrollWidth} > ${e.clientWidth}`));
    assert.deepEqual(sideways, [], hash);
  }
  await done(opened);
});

test("a plan that cuts packets says in words and colours which piece is where", async () => {
  const opened = await explorer.show("#/schedule?k=8&algorithm=exchange:8");
  const { page } = opened;
  const legend = page.locator(".legend");
  assert.match(await legend.textContent(), /Each packet is cut in 8 pieces: x2\.1 is piece 1 of packet 2\./);
  assert.match(await legend.textContent(), /The helper of piece 1 is processor 1:/);
  assert.match(await legend.textContent(), /piece 3: helper 3/);
  // Bars at 8 processors, above and below, of 8 pieces each; and at the tail of each message one of 1.
  const messages = await page.locator("path.arrow").count();
  assert.equal(messages, 14 * 8);
  assert.equal(await page.locator("rect.bar").count(), 16 + messages);
  assert.equal(await page.locator("rect.piece").count(), 16 * 8 + messages);
  assert.equal(await page.locator("text.label").count(), 0);
  // What goes to helper 3 has the colour of piece 3, and so has its column.
  const colour = await page.locator('path.arrow[aria-label^="round 0: 2 → 3"]').getAttribute("stroke");
  assert.equal(await page.locator("line.life.helper").nth(3).evaluate((e) => e.style.stroke), colour);
  assert.equal(await page.locator('path.arrow[aria-label^="round 7: 3 → "]').getAttribute("stroke"), colour);
  await page.locator('path.arrow[aria-label^="round 7: 3 → "]').focus();
  await page.getByRole("region", { name: "Message" }).getByText(/^piece 3 of y\d$/).waitFor();
  assert.match(await page.locator("text.label").textContent(), /^piece 3 of y\d$/);
  await done(opened);
});

test("on a network the planner chooses p, and rounds can be drawn as long as they take", async () => {
  const plan = await explorer.json("plan", "-k", "8", "--model", "network", "--network", "10gbit/20us", "--algorithm", "universal:4,2", "--size", "4KiB", "--format", "json");
  const opened = await explorer.show("#/schedule?k=8&model=network&network=10gbit/20us&algorithm=universal:4,2&size=4KiB");
  const { page } = opened;
  assert.equal(await page.getByLabel("Ports p").inputValue(), "");
  assert.match(await page.locator(".heading").textContent(), new RegExp(`p = ${plan.ports}`));
  assert.match(await page.locator(".cost").textContent(), /L = 20 µs, o = 2 µs, G = 0\.847 ns/);
  await page.getByRole("button", { name: "time", exact: true }).click();
  await page.waitForFunction(() => location.hash.includes("axis=time"));
  // L + o for each message + G for each byte, of the busiest processor.
  const rounds = plan.programs[0].rounds.map((_, t) => {
    const most = (count) => Math.max(...plan.programs.map((p) => count(p.rounds[t])));
    const messages = most((r) => Math.max(r.sends?.length ?? 0, r.recvs?.length ?? 0));
    const elements = most((r) => Math.max((r.sends ?? []).reduce((n, s) => n + s.slots.length, 0), (r.recvs ?? []).reduce((n, x) => n + x.count, 0)));
    return 20e-6 + 2e-6 * messages + (elements * 4096 * 8) / (10e9 * 0.945);
  });
  assert.ok(rounds.length > 1);
  const titles = await page.locator(".band text.title").allTextContents();
  const ends = titles.filter((t) => t.includes("–")).map((t) => parseFloat(t.split("–")[1]) * 1e-6);
  let end = 0;
  for (const [t, seconds] of rounds.entries()) {
    end += seconds;
    assert.ok(Math.abs(ends[t] / end - 1) < 0.01, `round ${t} ends at ${ends[t]}, want ${end}`);
  }
  await done(opened);
});

test("at 390 px the picture comes first, and the form behind a button", async () => {
  const opened = await explorer.show("#/schedule?k=8", { viewport: { width: 390, height: 844 } });
  const { page } = opened;
  for (const hash of ["#/schedule?k=16&model=network", "#/schedule?k=256&model=network", "#/schedule?k=8"]) {
    await explorer.load(opened, hash);
    const { y } = await page.locator(".schedule :is(svg.drawing, figure svg)").first().boundingBox();
    assert.ok(y < 600, `${hash}: the picture begins at ${y} px`);
  }
  const field = page.locator("input[name=processors]");
  assert.equal(await field.isVisible(), false);
  await page.getByRole("button", { name: "Examples and settings" }).click();
  await field.fill("4");
  await page.waitForFunction(() => document.querySelectorAll("path.arrow").length === 8);
  await page.getByRole("button", { name: "DFT", exact: true }).click(); // and its picture, not the form
  await page.locator(".heading").getByText("field 17").waitFor();
  assert.equal(await field.isVisible(), false);
  for (const hash of ["#/protect?nodes=16", "#/proof?k=8", "#/cost?k=16", "#/figures?figure=dft"]) {
    await page.evaluate((h) => (location.hash = h), hash);
    await page.locator("main :is(svg, table)").first().waitFor();
    await settled(page, hash.match(/\w+/)[0]);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${hash}: ${wide} px`);
  }
  await done(opened);
});

test("a search finds messages, and Enter goes from one to the next", async () => {
  const opened = await explorer.show("#/schedule?k=8");
  const { page } = opened;
  const search = page.getByRole("searchbox");
  await search.fill("x3");
  await page.getByText(/^[2-9]\d*: Enter$/).waitFor(); // in round 0, and in sums after that
  await search.fill("r1 p2");
  await page.getByText("2: Enter").waitFor();
  await search.press("Enter");
  await page.getByText("1 of 2").waitFor();
  await page.getByRole("region", { name: "Message" }).getByText("0 → 2").waitFor();
  await search.press("Enter");
  await page.getByText("2 of 2").waitFor();
  await page.getByRole("region", { name: "Message" }).getByText("2 → 4").waitFor();
  await search.fill("nothing");
  await page.getByText("none", { exact: true }).waitFor();
  await done(opened);
});

test("PDF prints the view, which fits on paper", async () => {
  const opened = await explorer.show("#/schedule?k=16&p=2&follow=5", { colorScheme: "dark" });
  const { page } = opened;
  await page.evaluate(() => (globalThis.print = () => (globalThis.printed = (globalThis.printed ?? 0) + 1)));
  await page.getByRole("button", { name: "PDF" }).click();
  assert.equal(await page.evaluate(() => globalThis.printed), 1);
  if (!inFirefox) { // which has no command for the rest
    const file = (await page.pdf({ format: "A4" })).toString("latin1");
    assert.match(file, /^%PDF-/);
    const pages = file.match(/\/Type \/Page\b/g).length;
    assert.ok(pages <= 2, `${pages} pages`);
  }
  await done(opened);
});
