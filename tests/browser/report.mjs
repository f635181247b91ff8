// node report.mjs CHROMIUM PROFILE FOLDER: the report of `lab leak` in FOLDER answers the pointer, the keys and the printer,
// and what it shows are the numbers of its CSV files.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open } from "./browser.mjs";

const [chromium, profile, folder] = process.argv.slice(2);
const csv = (name) => readFileSync(`${folder}/${name}.csv`, "utf8").trim().split("\n").slice(1)
  .map((line) => line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).map((cell) => cell.replace(/,$/, "").replace(/^"|"$/g, "")));
const page = await open(chromium, profile, `file://${folder}/report.html`, { width: 1280, height: 900 });
await page.until("document.querySelector('.hint')");
const value = (text) => Number(text.replace("−", "-").replace(/×10(.*)$/, (_, power) =>
  "e" + [...power].map((c) => (c === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c))).join("")));
const near = (seen, wanted) => assert.ok(Math.abs(value(seen) - wanted) <= 6e-5 * Math.abs(wanted), `${seen} is not ${wanted}`);
const box = (selector) => page.evaluate(`(() => {
  const element = document.querySelector(${JSON.stringify(selector)});
  element.scrollIntoView({ block: "center" });
  const { x, y, width, height } = element.getBoundingClientRect();
  return { x, y, width, height };
})()`);
const tip = () => page.evaluate(`[...document.querySelectorAll(".tip.seen")].map((t) => t.innerText.split("\\n")).flat()`);

// The values under the pointer, at every tenth of the curve, are those of the CSV.
const losses = csv("loss"), curve = await box("#loss .stage svg");
for (let tenth = 1; tenth < 10; tenth++) {
  await page.point(curve.x + 62 + ((curve.width - 78) * tenth) / 10, curve.y + 100);
  const said = await tip(), step = value(said[0].replace("step ", ""));
  const rows = losses.filter(([series, x]) => Math.abs(Number(x) - step) <= 1e-4 * step && said.includes(series));
  assert.ok(rows.length > 0, `no value for ${said}`);
  for (const [series, , y] of rows) near(said[said.indexOf(series) + 1], Number(y));
  for (const floor of ["honest floor", "cheater's floor"])
    near(said[said.indexOf(floor) + 1], Number(losses.find(([series]) => series === floor)[2]));
}

// Each cell of a map, the same; the forbidden ones of the masked model say so.
const cells = csv("influence");
let absent = 0;
for (const [panel, row, column, , , exists, number] of cells.filter((_, i) => i % 37 === 0)) {
  const index = [...new Set(cells.map((c) => c[0]))].indexOf(panel);
  const at = await box(`#influence [data-cell="${index} ${row} ${column}"]`);
  await page.point(at.x + at.width / 2, at.y + at.height / 2);
  const said = await tip();
  assert.equal(said[0], panel);
  if (exists === "no") absent += said.includes("does not exist");
  else near(said.at(-1), Number(number));
}
assert.ok(absent > 0);

// A curve is switched off and on; an axis becomes logarithmic; a drag zooms, and a button shows all again.
const paths = () => page.evaluate(`document.querySelectorAll("#loss .stage path").length`);
const press = async (selector) => {
  const at = await box(selector);
  const [x, y] = [at.x + at.width / 2, at.y + at.height / 2];
  await page.drag(x, y, x, y);
};
const all = await paths();
await press("#loss .legend button");
assert.equal(await paths(), all - 1);
await press("#loss .legend button");
assert.equal(await paths(), all);
const ticks = () => page.evaluate(`[...document.querySelectorAll("#loss .grid text")].map((t) => t.textContent).join(" ")`);
const linear = await ticks();
await press("#loss .axes button:last-child");
assert.notEqual(await ticks(), linear);
await press("#loss .axes button:last-child");
assert.equal(await ticks(), linear);
const again = await box("#loss .stage svg");
await page.drag(again.x + 200, again.y + 100, again.x + 400, again.y + 100);
assert.notEqual(await ticks(), linear);
await press("#loss .axes button:first-child");
assert.equal(await ticks(), linear);

// The projector shows one figure at a time, in at most 80 % of the height, and the verdicts when asked.
await page.key("p");
const visible = () => page.evaluate(`[...document.querySelectorAll("main > *")].filter((e) => e.offsetParent || e.offsetHeight).map((e) => e.id || e.className || e.tagName)`);
const seen = [];
for (let i = 0; i < 40; i++) {
  seen.push((await visible()).join(" "));
  const height = await page.evaluate(`Math.max(0, ...[...document.querySelectorAll(".now .touch")].map((t) => t.offsetHeight / innerHeight))`);
  assert.ok(height <= 0.8, `${seen.at(-1)} takes ${height} of the height`);
  const count = await page.evaluate(`document.querySelector(".counter").textContent`);
  await page.key("ArrowRight");
  if ((await page.evaluate(`document.querySelector(".counter").textContent`)) === count) break;
}
assert.ok(seen.some((s) => s.includes("loss")) && seen.some((s) => s.includes("influence")) && seen.length >= 6, seen.join("; "));
assert.ok(!seen.some((s) => /verdicts/.test(s)), seen.join("; "));
await page.key("v");
assert.match((await visible()).join(" "), /verdicts/);
assert.equal(await page.evaluate(`document.querySelectorAll(".verdicts tbody tr").length`), csv("summary").length);
await page.key("p");
assert.ok((await visible()).length > 8);

await page.pdf(`${folder}/report.pdf`);
assert.equal(readFileSync(`${folder}/report.pdf`).subarray(0, 4).toString(), "%PDF");
assert.deepEqual(page.complaints(), []);
page.close();
console.log(`${cells.length} cells, ${losses.length} points, ${seen.length} slides`);
process.exit(0);
