// Opens a page in a headless Chromium, without a driver: node browser.mjs CHROMIUM PROFILE URL UNTIL RESULT [SCREENSHOT.png]
// waits until the expression UNTIL is true in the page, and prints the value of RESULT as JSON.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

const [chromium, profile, url, until, result, screenshot] = process.argv.slice(2);
const SECONDS = 240;
const browser = spawn(chromium, ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--window-size=1024,1500", `--user-data-dir=${profile}`, "--remote-debugging-pipe", "about:blank"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const waiting = new Map(), told = [];
let id = 0, rest = "";
browser.stdio[4].on("data", (bytes) => {
  const parts = (rest + bytes).split("\0");
  rest = parts.pop();
  for (const message of parts.map((part) => JSON.parse(part))) {
    if (waiting.has(message.id)) waiting.get(message.id)(message);
    else if (/consoleAPICalled|exceptionThrown|requestWillBeSent$/.test(message.method)) told.push(message);
  }
});
const call = (method, params = {}, sessionId) => new Promise((resolve) => {
  waiting.set(++id, resolve);
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
}).then((answer) => {
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
});
const leave = (status, text) => {
  console.log(text);
  browser.kill();
  process.exit(status);
};

const { targetInfos } = await call("Target.getTargets");
const { sessionId } = await call("Target.attachToTarget",
  { targetId: targetInfos.find((t) => t.type === "page").targetId, flatten: true });
const page = (method, params) => call(method, params, sessionId);
const evaluate = async (expression) => (await page("Runtime.evaluate", { expression, returnByValue: true })).result.value;
await page("Runtime.enable");
await page("Network.enable");
await page("Page.navigate", { url });
const deadline = Date.now() + SECONDS * 1000;
while (!(await evaluate(until))) {
  if (Date.now() > deadline) leave(1, `not true within ${SECONDS} s: ${until}; ${await evaluate("document.body.innerText")}`);
  await new Promise((wake) => setTimeout(wake, 200));
}
const value = await evaluate(result);
if (screenshot) writeFileSync(screenshot, Buffer.from((await page("Page.captureScreenshot")).data, "base64"));
const wrong = told.filter((m) => m.method !== "Network.requestWillBeSent" || !/^(file|blob|data):/.test(m.params.request.url));
if (wrong.length > 0) leave(1, `the page said or asked for: ${JSON.stringify(wrong.map((m) => m.params)).slice(0, 1000)}`);
leave(0, JSON.stringify(value));
