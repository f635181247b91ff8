"use strict";
// The page: two workers with a model each, which run the library as WebAssembly, and what draws their numbers.
const LAYERS = 2, HEADS = 4, BATCH = 16;
const PRESETS = {
  causal: { kind: 0, n: 0, text: "causal: itself and the past" },
  none: { kind: 0, n: -1, text: "none: everything" },
  ahead: { kind: 0, n: 1, text: "one token ahead" },
  window: { kind: 1, n: 8, text: "the last 8 tokens" },
};
const $ = (id) => document.getElementById(id);
const fromBase64 = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const data = JSON.parse($("data").textContent);
const library = fromBase64($("library").textContent);
const words = new TextDecoder().decode(fromBase64(data.words)).split("\0").slice(0, -1);
const corpus = new Uint16Array(fromBase64(data.ids).buffer);
const T = data.floor.length;
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
const honestFloor = mean(data.floor), cheatersFloor = data.floor[T - 1] / T;

// ---- A worker: one model. One step per task, so that a message acts before the next step. ----

function worker() {
  let library, memory, busy = false, step = 0, stopAt = Infinity, rate = 0, last = 0;
  const channel = new MessageChannel();
  const text = (at) => {
    const bytes = new Uint8Array(memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  };
  // The address first: the call that gives it may grow the memory, which is then another buffer.
  const copy = (type, at, length) => new type(memory.buffer, at, length).slice();
  const wasi = {
    args_get: () => 0, args_sizes_get: () => 0, environ_get: () => 0, environ_sizes_get: () => 0,
    fd_close: () => 8, fd_seek: () => 8, fd_fdstat_get: () => 8, fd_fdstat_set_flags: () => 8,
    proc_exit(status) { throw new Error("the library ended with status " + status); },
    clock_time_get(id, precision, to) {
      new DataView(memory.buffer).setBigUint64(to, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    fd_write(fd, vectors, count, written) {
      const view = new DataView(memory.buffer);
      let sum = 0, said = "";
      for (let i = 0; i < count; i++, vectors += 8) {
        const at = view.getUint32(vectors, true), length = view.getUint32(vectors + 4, true);
        said += new TextDecoder().decode(new Uint8Array(memory.buffer, at, length));
        sum += length;
      }
      view.setUint32(written, sum, true);
      postMessage({ error: said });
      return 0;
    },
  };
  const report = (loss) => {
    const now = performance.now();
    if (busy && loss !== undefined && now - last < 100 && step !== stopAt) return postMessage({ step, loss });
    last = now;
    const message = { step, loss, rate, hash: BigInt.asUintN(64, library.playground_hash()).toString(16).padStart(16, "0") };
    if (step > 0) message.positions = copy(Float64Array, library.playground_by_position(), self.T);
    message.maps = copy(Float32Array, library.playground_maps(), self.n_maps * self.T * self.T);
    postMessage(message);
  };
  const oneStep = () => {
    const begin = performance.now(), loss = library.playground_step();
    const seconds = (performance.now() - begin) / 1000;
    rate = rate ? 0.95 * rate + 0.05 / seconds : 1 / seconds;
    step++;
    report(loss);
  };
  channel.port1.onmessage = () => {
    if (!busy) return;
    if (step >= stopAt) busy = false;
    else oneStep();
    if (busy) channel.port2.postMessage(0);
    else postMessage({ paused: true });
  };
  const start = (m) => {
    library.playground_new(m.layers, m.width, m.T, m.batch, m.vocabulary, m.seed, m.lr) ||
      postMessage({ error: text(library.playground_message()) });
    self.T = m.T;
    self.n_maps = m.layers * m.heads;
    step = 0;
    rate = 0;
    busy = false;
  };
  const obey = async (m) => {
    if (m.code) {
      const { instance } = await WebAssembly.instantiate(m.code, { wasi_snapshot_preview1: wasi });
      library = instance.exports;
      memory = library.memory;
      library._initialize();
      const at = library.playground_corpus(m.corpus.length);
      new Int32Array(memory.buffer, at, m.corpus.length).set(m.corpus);
    }
    if (m.stopAt) stopAt = m.stopAt;
    if (m.model) start(m.model);
    if (m.mask) library.playground_mask(m.mask.kind, m.mask.n);
    if (m.model || (m.mask && !busy)) report();
    if (m.step) oneStep();
    if (m.run === true && !busy) { busy = true; channel.port2.postMessage(0); }
    if (m.run === false) busy = false;
  };
  let obeyed = Promise.resolve(); // one after the other: the library must be there first
  onmessage = ({ data: m }) => { obeyed = obeyed.then(() => obey(m)).catch((error) => postMessage({ error: String(error) })); };
}
const workerUrl = URL.createObjectURL(new Blob([`(${worker})()`], { type: "text/javascript" }));

// ---- The two models ----

const fragment = new URLSearchParams(location.hash.slice(1));
const models = [["one", "causal"], ["other", "none"]].map(([id, preset]) => makeModel(id, fragment.get(id) || preset));
let running = false;

function makeModel(id, preset) {
  const section = $(id);
  const model = { id, losses: [], positions: null, maps: null, step: 0, hash: "", rate: 0, color: `--${id}` };
  const options = Object.entries(PRESETS).map(([name, p]) => `<option value="${name}">${p.text}</option>`).join("");
  section.innerHTML = `<label>Each token sees <select>${options}</select></label>
    <p><span class="number">–</span> <span class="about"></span></p><div class="maps"></div><p class="hash"></p>`;
  model.select = section.querySelector("select");
  model.select.value = preset in PRESETS ? preset : "causal";
  for (let map = 0; map < LAYERS * HEADS; map++) {
    const canvas = Object.assign(document.createElement("canvas"), { width: T, height: T });
    const name = `layer ${Math.floor(map / HEADS)}, head ${map % HEADS}`;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Attention of ${name}`);
    canvas.onmousemove = (event) => showWeight(model, map, name, event);
    section.querySelector(".maps").append(canvas);
  }
  model.worker = new Worker(workerUrl);
  model.worker.onmessage = ({ data: m }) => receive(model, m);
  model.worker.onerror = (event) => say(event.message);
  model.select.onchange = () => {
    model.worker.postMessage({ mask: PRESETS[model.select.value] });
    share();
  };
  return model;
}

function receive(model, m) {
  if (m.error) say(m.error);
  if (m.step !== undefined) model.step = m.step;
  if (m.loss !== undefined) model.losses[m.step - 1] = m.loss;
  if (m.positions) model.positions = m.positions;
  if (m.maps) { model.maps = m.maps; model.hash = m.hash; model.rate = m.rate; model.dirty = true; }
  if (m.paused && models.every((other) => other.step === model.step)) { running = false; $("run").textContent = "Run"; say("Paused."); }
  requestAnimationFrame(draw);
}

function say(text) { $("status").textContent = text; }

// The set-up is in the address, so that it can be shared.
function share() {
  const state = new URLSearchParams({ seed: $("seed").value, width: $("width").value, rate: $("rate").value });
  for (const model of models) state.set(model.id, model.select.value);
  if (fragment.get("stop")) state.set("stop", fragment.get("stop"));
  history.replaceState(null, "", "#" + state);
}

function reset() {
  run(false);
  for (const model of models) {
    model.losses = [];
    model.positions = null;
    model.worker.postMessage({
      model: { layers: LAYERS, heads: HEADS, width: +$("width").value, T, batch: BATCH, vocabulary: words.length,
               seed: +$("seed").value, lr: +$("rate").value },
      mask: PRESETS[model.select.value],
      stopAt: +fragment.get("stop") || undefined,
    });
  }
  share();
  say("Ready: press Run.");
}

function run(on) {
  running = on;
  $("run").textContent = on ? "Pause" : "Run";
  say(on ? "Training." : "Paused.");
  for (const model of models) model.worker.postMessage({ run: on });
}

// ---- Drawing ----

const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function chart(canvas, highest, xOf, series, lines) {
  const c = canvas.getContext("2d"), w = canvas.width, h = canvas.height, left = 44, bottom = 22;
  const y = (value) => h - bottom - (Math.min(value, highest) / highest) * (h - bottom - 8);
  c.clearRect(0, 0, w, h);
  c.font = "14px system-ui, sans-serif";
  c.fillStyle = c.strokeStyle = ink("--ink");
  for (let tick = 0; tick <= highest; tick++) {
    c.fillText(tick, 8, y(tick) + 4);
    c.globalAlpha = 0.2;
    c.strokeRect(left, y(tick), w - left, 0);
    c.globalAlpha = 1;
  }
  for (const line of lines) {
    c.setLineDash([6, 4]);
    c.strokeStyle = c.fillStyle = ink("--floor");
    c.beginPath();
    line.values.forEach((v, i) => c.lineTo(left + xOf(i, line.values.length) * (w - left), y(v)));
    c.stroke();
    c.fillText(line.name, w - 230, y(line.values.at(-1)) - 5);
    c.setLineDash([]);
  }
  for (const { values, color } of series) {
    c.strokeStyle = ink(color);
    c.lineWidth = 2;
    c.beginPath();
    values.forEach((v, i) => c.lineTo(left + xOf(i, values.length) * (w - left), y(v)));
    c.stroke();
    c.lineWidth = 1;
  }
}

let drawn = 0;
function draw(now) {
  if (now === drawn) return;
  drawn = now;
  const highest = Math.ceil(Math.log(words.length));
  const steps = Math.max(100, ...models.map((m) => m.losses.length));
  chart($("curves"), highest, (i, n) => (n === 2 ? i : i / steps), models.map((m) => ({ values: m.losses, color: m.color })),
        [{ name: `honest floor ${honestFloor.toFixed(3)}`, values: [honestFloor, honestFloor] },
         { name: `cheater's floor ${cheatersFloor.toFixed(3)}`, values: [cheatersFloor, cheatersFloor] }]);
  chart($("positions"), highest, (i, n) => i / (n - 1),
        models.filter((m) => m.positions).map((m) => ({ values: [...m.positions], color: m.color })),
        [{ name: "honest floor", values: data.floor }]);
  for (const model of models) drawModel(model);
}

function drawModel(model) {
  const section = $(model.id), recent = model.losses.slice(-20);
  section.querySelector(".number").textContent = recent.length ? mean(recent).toFixed(3) : "–";
  section.querySelector(".about").textContent = `nats, mean of the last ${recent.length} steps; step ${model.step}` +
    (model.rate ? `, ${model.rate.toFixed(0)} steps/s` : "");
  if (!model.dirty) return;
  model.dirty = false;
  section.querySelector(".hash").textContent = `weights ${model.hash}`;
  section.querySelectorAll(".maps canvas").forEach((canvas, map) => {
    const image = new ImageData(T, T);
    for (let i = 0; i < T * T; i++) {
      const weight = model.maps[map * T * T + i], dark = Math.round(255 * (1 - Math.sqrt(weight)));
      image.data.set([dark, dark, 255 - Math.round((255 - dark) / 3), weight === 0 ? 40 : 255], 4 * i);
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  });
}

function showWeight(model, map, name, event) {
  const box = event.target.getBoundingClientRect();
  const key = Math.min(T - 1, Math.floor(((event.clientX - box.left) / box.width) * T));
  const query = Math.min(T - 1, Math.floor(((event.clientY - box.top) / box.height) * T));
  const word = (i) => `${i} “${words[corpus[i]]}”`;
  if (model.maps)
    $("hover").textContent = `${name}: ${word(query)} looks at ${word(key)}: ${model.maps[(map * T + query) * T + key].toFixed(4)}`;
}

// ---- Controls ----

for (const id of ["seed", "width", "rate"]) {
  if (fragment.get(id)) $(id).value = fragment.get(id);
  $(id).onchange = reset;
}
$("run").onclick = () => run(!running);
$("step").onclick = () => { run(false); for (const model of models) model.worker.postMessage({ step: true }); };
$("reset").onclick = reset;
$("about").textContent = `The data: ${new TextDecoder().decode(fromBase64(data.name))}, ${words.length} words.`;
for (const model of models) model.worker.postMessage({ code: library, corpus });
reset();
if (fragment.get("stop")) run(true);
