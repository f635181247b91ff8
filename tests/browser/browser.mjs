// A headless Chromium over its own pipe, without a driver: a page, its pointer and keys, and what it complained of.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

export async function open(chromium, profile, url, { width = 1024, height = 1500, dark = false } = {}) {
  const browser = spawn(chromium, ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    `--window-size=${width},${height}`, `--user-data-dir=${profile}`, "--remote-debugging-pipe", "about:blank"],
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

  const { targetInfos } = await call("Target.getTargets");
  const { sessionId } = await call("Target.attachToTarget",
    { targetId: targetInfos.find((t) => t.type === "page").targetId, flatten: true });
  const page = (method, params) => call(method, params, sessionId);
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await page("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  };
  await page("Runtime.enable");
  await page("Network.enable");
  await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  await page("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  await page("Page.navigate", { url });
  return {
    evaluate,
    async until(expression, seconds = 240) {
      const holds = () => evaluate(expression).catch(() => false); // a page that is not there yet has not its names
      for (const deadline = Date.now() + seconds * 1000; !(await holds());) {
        if (Date.now() > deadline) throw new Error(`not true within ${seconds} s: ${expression}`);
        await new Promise((wake) => setTimeout(wake, 100));
      }
    },
    point: (x, y) => page("Input.dispatchMouseEvent", { type: "mouseMoved", x, y }),
    // Presses at one place and releases at another: a click if they are the same.
    async drag(x, y, toX, toY) {
      const left = { button: "left", clickCount: 1 };
      await page("Input.dispatchMouseEvent", { type: "mousePressed", x, y, ...left, buttons: 1 });
      if (toX !== x || toY !== y) await page("Input.dispatchMouseEvent", { type: "mouseMoved", x: toX, y: toY, ...left, buttons: 1 });
      await page("Input.dispatchMouseEvent", { type: "mouseReleased", x: toX, y: toY, ...left });
    },
    async key(key) {
      const text = key.length === 1 ? key : undefined;
      await page("Input.dispatchKeyEvent", { type: "keyDown", key, text });
      await page("Input.dispatchKeyEvent", { type: "keyUp", key });
    },
    screenshot: async (file, clip) => writeFileSync(file, Buffer.from((await page("Page.captureScreenshot", { clip })).data, "base64")),
    pdf: async (file) => writeFileSync(file, Buffer.from((await page("Page.printToPDF", { printBackground: true })).data, "base64")),
    // What it wrote on the console, threw, or asked of anything but this disk.
    complaints: () => told.filter((m) => m.method !== "Network.requestWillBeSent" || !/^(file|blob|data):/.test(m.params.request.url))
      .map((m) => m.params),
    close: () => browser.kill(),
  };
}
