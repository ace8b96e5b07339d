import assert from "node:assert/strict";
import { test } from "node:test";
import { done, Explorer } from "./explorer.js";

const explorer = new Explorer();

for (const [name, hash, args] of [
  ["any matrix", "#/cost?any=1&ks=2..20", []],
  ["cauchy, p = 2", "#/cost?p=2&ks=2..20", ["-p", "2", "--matrix", "cauchy"]],
  ["a DFT over 257", "#/cost?matrix=dft&field=257&ks=2,4,8,16,32,64", ["--matrix", "dft", "--field", "257", "-k", "2,4,8,16,32,64"]],
]) {
  test(`costs against K are those of volley cost: ${name}`, async () => {
    const k = args.includes("-k") ? [] : ["-k", "2..20"];
    const { rows } = await explorer.json("cost", ...k, ...args, "--format", "json");
    const opened = await explorer.show(hash);
    const { page } = opened;
    await page.locator("figure[data-chart=c1] svg").waitFor();
    await page.locator("figure[data-chart=c2] svg").waitFor();
    const cells = page.locator("td[data-algorithm]");
    for (const summary of await page.locator("main summary").filter({ hasText: "Table of C" }).all()) await summary.click();
    await page.locator("td[data-c2]").first().waitFor();
    const shown = await cells.evaluateAll((list) => list.map((td) => ({ ...td.dataset })));
    let compared = 0;
    for (const row of rows) {
      for (const key of Object.keys(row).filter((key) => key.endsWith("_C1") && key !== "bound_C1")) {
        const algorithm = key.slice(0, -3);
        const of = (quantity) => shown.find((c) => c.algorithm === algorithm && Number(c.k) === row.K && c[quantity] !== undefined)?.[quantity];
        assert.equal(Number(of("c1")), row[key], `C1 of ${algorithm} at K = ${row.K}`);
        assert.ok(Math.abs(Number(of("c2")) - row[`${algorithm}_C2`]) < 1e-6 * row[`${algorithm}_C2`] + 1e-9, `C2 of ${algorithm} at K = ${row.K}`);
        compared++;
      }
    }
    assert.ok(compared > rows.length, `${compared} compared`);
    await done(opened);
  });
}

test("the command is what the command line takes", async () => {
  const opened = await explorer.show("#/cost?k=16&p=2&ks=4,8,16&beta=1ms");
  const { page } = opened;
  for (const chart of ["c1", "sizes"]) await page.locator(`figure[data-chart=${chart}] svg`).waitFor();
  const command = await page.locator("main code").filter({ hasText: "volley-lab cost " }).textContent();
  assert.match(command, /--beta 1ms/);
  assert.equal((await explorer.json(...command.split(" ").slice(1), "--format", "json")).rows.length, 3);
  await done(opened);
});
