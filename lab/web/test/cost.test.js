import assert from "node:assert/strict";
import { test } from "node:test";
import { done, Explorer } from "./explorer.js";

const explorer = new Explorer();

for (const [name, hash, args] of [
  ["any matrix", "#/cost?any=1&ks=2..20", []],
  ["cauchy, p = 2", "#/cost?p=2&ks=2..20", ["-p", "2", "--matrix", "cauchy"]],
  ["a DFT over 257", "#/cost?matrix=dft&field=257&ks=2,4,8,16,32,64", ["--matrix", "dft", "--field", "257", "-k", "2,4,8,16,32,64"]],
]) {
  test(`costs against K are those of volley cost, of five algorithms at most: ${name}`, async () => {
    const k = args.includes("-k") ? [] : ["-k", "2..20"];
    const { rows } = await explorer.json("cost", ...k, ...args, "--format", "json");
    const opened = await explorer.open(hash);
    const { page } = opened;
    for (const [button, quantity] of [["rounds", "C1"], ["packets", "C2"]]) {
      await page.getByRole("button", { name: button, exact: true }).click();
      await page.locator(`figure[data-chart=${quantity.toLowerCase()}] svg`).waitFor();
      const shown = await page.locator("td[data-algorithm]").evaluateAll((list) => list.map((td) => ({ ...td.dataset })));
      const columns = shown.length / rows.length;
      assert.ok(columns >= 2 && columns <= 5, `${columns} algorithms`);
      for (const { algorithm, k, value } of shown) {
        const want = rows.find((row) => row.K === Number(k))[`${algorithm}_${quantity}`];
        assert.ok(value === undefined ? want === undefined : Math.abs(Number(value) - want) < 1e-6 * want + 1e-9, `${quantity} of ${algorithm} at K = ${k}: ${value}, want ${want}`);
      }
      for (const { algorithm } of shown) assert.ok(shown.some((c) => c.algorithm === algorithm && c.value !== undefined), `${algorithm}: nothing`);
    }
    await done(opened);
  });
}

test("the command is what the command line takes", async () => {
  const opened = await explorer.show("#/cost?k=16&p=2&ks=4,8,16&only=universal&beta=1ms");
  const { page } = opened;
  await page.locator("figure svg").waitFor();
  const command = await page.locator("main code").filter({ hasText: "volley-lab cost " }).textContent();
  assert.match(command, /--beta 1ms/);
  assert.equal((await explorer.json(...command.split(" ").slice(1), "--format", "json")).rows.length, 3);
  await done(opened);
});
