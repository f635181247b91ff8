// node until.mjs CHROMIUM PROFILE URL UNTIL RESULT [SCREENSHOT.png]: waits until the expression UNTIL is true in the page,
// and prints the value of RESULT as JSON. What the page complained of is a failure.
import { open } from "./browser.mjs";

const [chromium, profile, url, until, result, screenshot] = process.argv.slice(2);
const page = await open(chromium, profile, url);
let status = 0;
try {
  await page.until(until);
  console.log(JSON.stringify(await page.evaluate(result)));
  if (screenshot) await page.screenshot(screenshot);
  const wrong = page.complaints();
  if (wrong.length > 0) throw new Error(`the page said or asked for: ${JSON.stringify(wrong).slice(0, 1000)}`);
} catch (error) {
  console.log(`${error.message}; ${await page.evaluate("document.body.innerText")}`);
  status = 1;
}
page.close();
process.exit(status);
