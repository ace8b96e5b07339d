// What is wrong is said where it can be seen, and the address and the history are those of what is done.
import assert from "node:assert/strict";
import { test } from "node:test";
import { done, Explorer, open, serve, settled } from "./explorer.js";

const explorer = new Explorer();

test("an error stands beside its field or, if that is nowhere, above the view", async () => {
  const opened = await explorer.open("#/schedule");
  const { page } = opened;
  for (const [hash, flag] of [["#/schedule?max-memory=x", "max-memory"], ["#/cost?gamma=x", "gamma"], ["#/schedule?k=x", "processors"]]) {
    await explorer.load(opened, hash);
    assert.ok(await page.locator(`#flag-${flag}-error`).isVisible(), hash);
  }
  await explorer.load(opened, "#/schedule?model=network&beta=x"); // a network has no β
  await page.locator(".banner").getByText(/^β: /).waitFor();
  await explorer.load(opened, "#/schedule?k=x");
  await page.getByRole("tab", { name: "Story" }).click();
  await page.locator(".machines button").first().waitFor();
  assert.equal(await page.locator(".banner").count(), 0, "the story asks for no plan");
  await page.setViewportSize({ width: 390, height: 800 });
  await page.goBack();
  await page.locator("#flag-processors-error").waitFor();
  assert.ok(await page.locator("#flag-processors-error").isVisible(), "behind a button");
  await done(opened);
});

test("an error has the words of the fields, and names no flag", async () => {
  const opened = await explorer.show("#/schedule");
  const { page } = opened;
  const said = page.locator("#form .error, main .error, .banner:not(:has(button))").filter({ visible: true }).first();
  for (const [hash, text] of [
    ["#/schedule?size=--size", /^"--size": want a size such as 64MiB$/], ["#/schedule?beta=x", /^"x": want a number and its unit/], ["#/schedule?order=up", /^"up": want one of natural/],
    ["#/schedule?model=x", /^"x": want network or paper$/], ["#/schedule?k=0", /^0 processors: say how many with “Processors K”/], ["#/schedule?matrix=file:x", /^the page reads no files; volley plan does$/],
    ["#/schedule?model=network&p=2", /^a network has a rate and a latency, and the planner chooses p/], ["#/schedule?model=network&tau=1ns", /^τ: a network has a rate/], ["#/schedule?network=wan", /^Rate and latency: it is of a network/],
  ]) {
    await explorer.load(opened, hash);
    assert.match((await said.innerText()).trim(), text, hash);
  }
  const message = "no plan keeps the limits at any K: allow more with --rounds-over, --max-memory or --max-compute, or leave --whole out"; // of package comparison
  await page.route("**/api/plan", (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ error: { field: "max-memory", message } }) }));
  await explorer.load(opened, "#/schedule?max-memory=1");
  assert.equal(await said.innerText(), "no plan keeps the limits at any K: allow more with “Rounds over the fewest”, “Memory at most” or “C3 at most”, or leave “Packets stay whole” out");
  await page.unroute("**/api/plan");
  await page.locator("input[type=file]").setInputFiles({ name: "list.json", mimeType: "application/json", buffer: Buffer.from("[]") });
  await page.locator(".banner").getByText("want a plan of volley plan, as JSON, or a manifest").waitFor();
  await done(opened);
});

test("typing makes one entry of the history", async () => {
  const opened = await explorer.show("#/schedule?k=4");
  const { page } = opened;
  const before = await page.evaluate(() => history.length);
  const field = page.locator("input[name=processors]");
  await field.fill("");
  await field.pressSequentially("12");
  await page.waitForFunction(() => location.hash === "#/schedule?k=12");
  assert.equal(await page.evaluate(() => history.length), before + 1);
  await page.getByText("Matrix, field, algorithm, size", { exact: true }).click();
  await page.locator("input[name=size]").pressSequentially("64KiB");
  await page.waitForFunction(() => location.hash.includes("size=64KiB"));
  assert.equal(await page.evaluate(() => history.length), before + 2);
  await page.goBack();
  await page.waitForFunction(() => location.hash === "#/schedule?k=12");
  await page.goBack();
  await page.waitForFunction(() => location.hash === "#/schedule?k=4");
  await page.locator(".heading").getByText("K = 4").waitFor();
  await done(opened);
});

test("a server that is gone: what is shown is said to be from before, and one button tries again", async () => {
  const server = await serve(explorer.binary.volley);
  const { page, close } = await open(explorer.browser, `${server.address}#/schedule?k=8`);
  await settled(page);
  await server.end();
  await page.locator("input[name=processors]").fill("9");
  await page.locator(".banner").getByText("The engine does not answer.").waitFor();
  await page.getByText("What is shown is from before.").waitFor();
  await page.route("**/api/*", (route) => route.fulfill({ status: 503, body: "busy\n" }));
  const again = page.getByRole("button", { name: "Try again" });
  assert.equal(await again.count(), 1);
  await again.click();
  await page.locator(".banner").getByText("busy").waitFor();
  await page.unroute("**/api/*");
  const { origin, search } = new URL(explorer.server.address);
  await page.route("**/api/*", async (route) => {
    const request = route.request();
    const answer = await fetch(`${origin}/api/${new URL(request.url()).pathname.split("/").at(-1)}${search}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: request.postData() });
    await route.fulfill({ status: answer.status, contentType: answer.headers.get("Content-Type"), body: await answer.text() });
  });
  await again.click();
  await page.locator(".heading").getByText("K = 9").waitFor();
  assert.equal(await page.locator(".banner").count(), 0);
  await close();
});

test("without the engine every view says what is missing, or from before, and one button brings it", async () => {
  const { page, close } = await explorer.open("#/schedule"); // of requests that fail the browser complains
  const banner = page.locator(".banner");
  for (const [from, name, brought] of [
    ["schedule", "Story", ".machines button"], ["schedule", "Protect", "dt:text('protect, all nodes')"], ["schedule", "Cost", "figure[data-chart] svg"],
    ["schedule", "Figures", "article svg"], ["story", "Schedule", "svg.drawing"], ["story", "Proof", "#transfer td"],
  ]) {
    await explorer.load({ page }, `#/${from}`);
    await page.route("**/api/*", (route) => route.abort());
    await page.getByRole("tab", { name }).click();
    await banner.getByText("The engine does not answer.").waitFor();
    await settled(page);
    assert.equal((await banner.last().innerText()).trim().replace(/\s+/g, " "), "What the engine computes is missing here. Try again", name);
    assert.equal(await banner.count(), 2, name);
    assert.equal(await page.getByText("beside the field").count(), 0, name);
    await page.getByRole("tab", { name: from, exact: false }).click();
    await banner.first().waitFor({ state: "detached" }); // here all has been answered
    await page.getByRole("tab", { name }).click();
    await page.unroute("**/api/*");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(brought).first().waitFor();
    await banner.first().waitFor({ state: "detached" });
  }
  await explorer.load({ page }, "#/story/1");
  await page.route("**/api/*", (route) => route.abort());
  await page.evaluate(() => (location.hash = "#/story/5?window=7"));
  const again = page.getByRole("button", { name: "Try again" });
  await again.waitFor();
  assert.ok(await again.evaluate((e) => e.getBoundingClientRect().bottom <= innerHeight), "the banner is in sight at every screen");
  await page.unroute("**/api/*");
  await explorer.load({ page }, "#/schedule?k=8&message=2.0.0&bytes=1");
  await page.locator(".products").first().waitFor();
  await page.route("**/api/*", (route) => route.abort());
  await page.evaluate(() => (location.hash = "#/schedule?k=8&message=1.0.0&bytes=1"));
  await banner.getByText("What the engine computes is missing here.").waitFor();
  assert.equal(await page.locator(".products").count(), 0, "the bytes of another message");
  await close();
});
