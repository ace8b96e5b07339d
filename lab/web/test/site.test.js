// The page as static files, with the engine in the browser: make site makes them.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { after, before, test } from "node:test";
import { browse, done, open, repository } from "./explorer.js";

const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };
let server, browser, address;
before(async () => {
  const site = join(repository, "lab/web/site");
  await readFile(join(site, "volley.wasm")); // or it has not been made
  server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://site").pathname).replace(/^\/explorer\//, "/").replace(/\/$/, "/index.html");
    try {
      const data = await readFile(join(site, path));
      response.writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream" }).end(data);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${server.address().port}/explorer/`; // in a folder, as pages are published
  browser = await browse();
});
after(async () => {
  await browser?.close();
  server?.close();
});

test("a schedule is computed in the browser", async () => {
  const opened = await open(browser, `${address}#/schedule?k=16`);
  const { page } = opened;
  await page.locator("path.arrow").first().waitFor();
  assert.equal(await page.locator("path.arrow").count(), 64);
  await page.locator("input[name=processors]").fill("none");
  await page.locator("#flag-processors-error").waitFor();
  await page.goto("about:blank");
  await page.goto(`${address}#/schedule?k=8&message=0.0.0&bytes=1`);
  await page.getByText("57 41 56 45 WAVE").waitFor();
  await done(opened);
});
