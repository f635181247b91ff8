// node pictures.mjs CHROMIUM PROFILE REPORT OUT_DIR: screenshots of the report of `lab leak` under the pointer, for the docs.
import { open } from "./browser.mjs";

const [chromium, profile, report, out] = process.argv.slice(2);
const page = await open(chromium, profile, `file://${report}`, { width: 1100, height: 760 });
await page.until("document.querySelector('.hint')");

async function picture(section, target, part, name) {
  const place = (selector) => page.evaluate(`(() => {
    const { x, y, width, height } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
    return { x, y, width, height, above: scrollY };
  })()`);
  await page.evaluate(`document.querySelector("#${section}").scrollIntoView()`);
  const at = await place(`#${section} ${target}`);
  await page.point(at.x + at.width * part, at.y + at.height * 0.4);
  const whole = await place(`#${section} .touch`);
  await page.screenshot(`${out}/${name}.png`,
    { x: whole.x - 8, y: whole.y + whole.above - 8, width: whole.width + 16, height: whole.height + 16, scale: 1 });
}

await picture("influence", '[data-cell="0 9 7"]', 0.5, "report-influence");
page.close();
process.exit(0);
