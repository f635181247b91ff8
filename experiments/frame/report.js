/* What makes a report's pictures something to touch: curves and maps drawn from the numbers beside each picture, with
 * values under the pointer, and a mode for the projector. Without it the report shows the same pictures as images. */
"use strict";
(() => {
const words = JSON.parse(document.getElementById("words").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
let onPaper = false;

const projecting = () => document.body.classList.contains("projector");

/* ---- Elements, numbers, colors ---- */

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}
const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const template = html("template");
template.innerHTML = "<svg></svg>"; /* the parser knows the name space, so that the page holds no address */
const space = template.content.firstChild.namespaceURI;
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(space, tag), attributes, children);

function button(label, act, attributes = {}) {
  const made = html("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

const raised = (text) => text.replace(/[-0-9]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
function shown(value, digits = 5) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e7) return String(Number(value.toPrecision(size >= 1e5 ? 7 : digits))).replace("-", "−");
  const [part, power] = value.toExponential(digits - 2).split("e");
  const front = String(Number(part)).replace("-", "−");
  return (front === "1" ? "" : front + "×") + "10" + raised(String(Number(power)));
}

const channels = (rgb) => [1, 3, 5].map((at) => parseInt(rgb.slice(at, at + 2), 16));
const lightness = (rgb) => channels(rgb).reduce((sum, c, i) => sum + [0.299, 0.587, 0.114][i] * c, 0) / 255;
const mixed = (rgb, other, part) =>
  "#" + channels(rgb).map((c, i) => Math.round(c + part * (channels(other)[i] - c)).toString(16).padStart(2, "0")).join("");
const isDark = () => dark.matches && !onPaper;
/* What is dark enough for paper is too dark for a dark page. */
const ink = (rgb) => (isDark() ? mixed(rgb, "#ffffff", Math.max(0, 0.62 - lightness(rgb))) : rgb);

const viridis = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];
function heat(along) {
  const at = Math.min(Math.max(along, 0), 1) * (viridis.length - 1), i = Math.min(Math.floor(at), viridis.length - 2);
  return mixed(viridis[i], viridis[i + 1], at - i);
}

/* ---- Scales ---- */

class Scale {
  constructor(low, high, log, from, to) {
    Object.assign(this, { low, high, log, from, to });
    this.of = log ? Math.log10 : (v) => v;
  }
  along(v) { return (this.of(v) - this.of(this.low)) / (this.of(this.high) - this.of(this.low)); }
  at(v) { return this.from + (this.to - this.from) * this.along(v); }
  value(pixel) {
    const v = this.of(this.low) + ((pixel - this.from) / (this.to - this.from)) * (this.of(this.high) - this.of(this.low));
    return this.log ? 10 ** v : v;
  }
  ticks(most) {
    const found = [];
    if (this.log) {
      const first = Math.floor(Math.log10(this.low)), last = Math.ceil(Math.log10(this.high));
      const decades = Math.log10(this.high / this.low), every = Math.max(1, Math.ceil(decades / most));
      const within = decades < 1.5 ? [1, 2, 5] : [1];
      for (let power = first; power <= last; power++)
        if (power % every === 0) for (const m of within) found.push(m * 10 ** power);
    } else {
      const rough = (this.high - this.low) / most, unit = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough * 0.999);
      for (let i = Math.ceil(this.low / step - 1e-9); i * step <= this.high + 1e-9 * step; i++) found.push(i * step);
    }
    const kept = found.filter((v) => v >= this.low * (this.log ? 0.9999 : 1) && v <= this.high * 1.0001 + (this.log ? 0 : 1e-300));
    return kept.map((v) => Number(v.toPrecision(12)));
  }
}

/* ---- A picture: what figures and maps share ---- */

const pictures = [];
class Picture {
  constructor(figure, data) {
    Object.assign(this, { figure, data });
    this.description = figure.querySelector("img") ? figure.querySelector("img").alt : "";
    this.tip = html("div", { class: "tip", role: "status" });
    this.stage = html("div", { class: "stage", tabindex: "0", role: "group", "aria-label": this.description });
    this.controls = html("div", { class: "controls" });
    this.frame = html("div", { class: "touch" }, this.controls, this.stage, this.tip);
    figure.prepend(this.frame);
    figure.classList.add("touched");
    pictures.push(this);
  }
  begin() {
    this.width = 0;
    new ResizeObserver(() => this.fit()).observe(this.stage);
    this.fit();
  }
  fit() {
    const width = Math.floor(this.stage.clientWidth);
    if (width < 40 || (width === this.width && this.tall === innerHeight)) return;
    Object.assign(this, { width, tall: innerHeight });
    this.render();
  }
  /* How high a picture may be. */
  get room() { return projecting() ? innerHeight * 0.52 : 430; }
  /* Beside the pointer, and inside the picture. */
  say(x, y, ...children) {
    this.tip.replaceChildren(...children);
    this.tip.classList.add("seen");
    const box = this.frame.getBoundingClientRect(), stage = this.stage.getBoundingClientRect();
    const left = stage.left - box.left + x, right = left + 14 + this.tip.offsetWidth > box.width;
    this.tip.style.left = Math.max(0, right ? left - 14 - this.tip.offsetWidth : left + 14) + "px";
    this.tip.style.top = stage.top - box.top + Math.max(0, y - this.tip.offsetHeight / 2) + "px";
  }
  silence() { this.tip.classList.remove("seen"); }
}

const row = (rgb, label, value) =>
  html("div", {}, html("i", { style: `background: ${rgb}` }), html("span", {}, label), html("b", {}, value));

/* ---- Curves, points and bars ---- */

const MARGINS = { left: 62, right: 16, top: 28, bottom: 46 }, ON_PROJECTOR = { left: 78, right: 20, top: 34, bottom: 58 };
class Figure extends Picture {
  constructor(figure, data) {
    super(figure, data);
    this.hidden = new Set();
    this.zoom = null;
    Object.assign(this, { logX: data.logX, logY: data.logY });
    this.bars = data.places ? data.series.filter((s) => s.shape === "bars") : [];
    const legend = data.series.map((s, k) => (s.entry ? this.entry(s, k) : null)).filter(Boolean);
    const values = data.series.flatMap((s) => s.y), xs = data.series.flatMap((s) => s.x);
    const positive = (list) => list.some((v) => v > 0) && list.every((v) => v === null || v >= 0);
    this.back = button(words.reset, () => { this.zoom = null; this.render(); }, { hidden: "" });
    this.controls.append(html("div", { class: "legend" }, ...legend), html("div", { class: "axes" }, this.back,
      !data.places && positive(xs) ? this.axis("logX", data.x) : null, positive(values) ? this.axis("logY", data.y) : null));
    for (const [event, act] of Object.entries({
      pointermove: (e) => this.point(e), pointerleave: () => { this.silence(); this.mark(null); },
      pointerdown: (e) => { this.pressed = e.offsetX; }, pointerup: (e) => this.release(e),
      dblclick: () => { this.zoom = null; this.render(); }, keydown: (e) => this.key(e),
    })) this.stage.addEventListener(event, act);
    this.begin();
  }
  entry(series, k) {
    const sample = svg("svg", { width: 26, height: 12, "aria-hidden": "true" });
    const made = button(sample, () => {
      if (!this.hidden.delete(k)) this.hidden.add(k);
      made.setAttribute("aria-pressed", String(!this.hidden.has(k)));
      this.render();
    }, { "aria-pressed": "true", title: words.toggle });
    made.append(html("span", {}, series.label));
    (this.samples ??= []).push(() => sample.replaceChildren(["points", "bars"].includes(series.shape)
      ? svg("rect", { x: 8, y: 1, width: 10, height: 10, rx: series.shape === "points" ? 5 : 1, fill: ink(series.rgb) })
      : svg("line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke: ink(series.rgb), "stroke-width": 3, "stroke-dasharray": series.dash })));
    return made;
  }
  axis(which, name) {
    const label = () => `${name || (which === "logX" ? "x" : "y")}: ${this[which] ? words.log : words.linear}`;
    const made = button(label(), () => {
      this[which] = !this[which];
      made.textContent = label();
      this.render();
    }, { title: words.axis });
    return made;
  }
  get series() { return this.data.series.filter((s, k) => !this.hidden.has(k)); }
  span() {
    const d = this.data, fitting = this.zoom || this.hidden.size || this.logY !== d.logY;
    let x = this.zoom ?? (this.bars.length ? [-0.6, d.places.length - 0.4] : d.spanX), y = d.spanY;
    if (this.logX && x[0] <= 0) x = [Math.min(...d.series.flatMap((s) => s.x).filter((v) => v > 0)), x[1]];
    if (fitting) {
      const ys = this.series.flatMap((s) => s.shape === "level" ? s.y
        : s.y.flatMap((v, i) => v === null || s.x[i] < x[0] || s.x[i] > x[1] ? [] : s.spread ? [v - s.spread[i], v + s.spread[i]] : [v]))
        .filter((v) => v !== null && (!this.logY || v > 0));
      let low = Math.min(...ys), high = Math.max(...ys);
      if (this.bars.length && !this.logY) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
      if (!(low < high)) [low, high] = isFinite(low) ? [low - Math.abs(low || 1) / 10, high + Math.abs(high || 1) / 10] : [this.logY ? 0.1 : 0, 1];
      const part = this.logY ? (high / low) ** 0.04 : (high - low) * 0.04;
      y = this.logY ? [low / part, high * part] : [low - part, high + part];
    }
    return { x, y };
  }
  render() {
    const height = Math.min(this.room, Math.max(250, this.width * 0.58)), d = this.data, m = { ...(projecting() ? ON_PROJECTOR : MARGINS) }, span = this.span();
    const turned = this.bars.length && d.places.some((p) => p.length * 7.5 > (this.width - m.left) / d.places.length);
    if (turned) m.bottom += Math.min(110, Math.max(...d.places.map((p) => p.length)) * 5);
    this.x = new Scale(...span.x, this.logX, m.left, this.width - m.right);
    this.y = new Scale(...span.y, this.logY, height - m.bottom, m.top);
    const axes = svg("g", { class: "grid" });
    for (const v of this.y.ticks(6)) {
      axes.append(svg("line", { x1: m.left, x2: this.width - m.right, y1: this.y.at(v), y2: this.y.at(v) }),
        svg("text", { x: m.left - 8, y: this.y.at(v) + 4, "text-anchor": "end" }, shown(v, 4)));
    }
    const names = this.bars.length ? d.places.map((name, v) => [v, name]) : this.x.ticks(this.width / 90).map((v) => [v, shown(v, 4)]);
    for (const [v, name] of names) {
      const x = this.x.at(v), y = height - m.bottom;
      axes.append(svg("text", { x, y: y + 20, "text-anchor": turned ? "end" : "middle",
        transform: turned ? `rotate(-38 ${x} ${y + 14})` : null }, name));
      if (!this.bars.length) axes.append(svg("line", { class: "tick", x1: x, x2: x, y1: y, y2: y + 5 }));
    }
    axes.append(svg("line", { class: "axis", x1: m.left, x2: this.width - m.right, y1: height - m.bottom, y2: height - m.bottom }),
      svg("text", { x: 4, y: 15 }, d.y),
      svg("text", { x: (m.left + this.width - m.right) / 2, y: height - 6, "text-anchor": "middle" }, d.x));
    const clip = `clip-${pictures.indexOf(this)}`, curves = svg("g", { "clip-path": `url(#${clip})` });
    let bar = 0;
    d.series.forEach((s, k) => {
      const slot = s.shape === "bars" ? bar++ : 0;
      if (!this.hidden.has(k)) curves.append(...this.shape(s, slot));
    });
    const lines = d.verticals.filter((v) => v.x >= this.x.low && v.x <= this.x.high).map((v) => {
      const x = this.x.at(v.x), left = x > this.width * 0.6;
      return svg("g", { class: "vertical" }, svg("line", { x1: x, x2: x, y1: m.top, y2: height - m.bottom }),
        svg("text", { x: x + (left ? -6 : 6), y: m.top + 12, "text-anchor": left ? "end" : "start" }, v.label));
    });
    this.guide = svg("g", { class: "guide" });
    this.brush = svg("rect", { class: "brush", y: m.top, height: height - m.top - m.bottom, width: 0 });
    this.stage.replaceChildren(svg("svg", { width: this.width, height, viewBox: `0 0 ${this.width} ${height}`, role: "img", "aria-label": this.description },
      svg("clipPath", { id: clip }, svg("rect", { x: m.left - 5, y: m.top - 5, width: this.width - m.left - m.right + 10,
        height: height - m.top - m.bottom + 10 })), axes, curves, ...lines, this.brush, this.guide));
    this.back.hidden = !this.zoom;
    for (const sample of this.samples ?? []) sample();
  }
  can(x, y) { return x !== null && y !== null && (!this.logX || x > 0) && (!this.logY || y > 0); }
  path(s, value) {
    let pen = "M";
    return s.x.map((x, i) => {
      if (!this.can(x, value(i))) { pen = "M"; return ""; }
      const step = `${pen}${this.x.at(x).toFixed(2)} ${this.y.at(value(i)).toFixed(2)}`;
      pen = "L";
      return step;
    }).join("");
  }
  shape(s, slot) {
    const color = ink(s.rgb), at = s.x.map((x, i) => i).filter((i) => this.can(s.x[i], s.y[i]));
    const line = (width, opacity = 1) => svg("path", { d: this.path(s, (i) => s.y[i]), fill: "none", stroke: color, "stroke-width": width,
      "stroke-opacity": opacity, "stroke-dasharray": s.dash, "stroke-linejoin": "round" });
    const dots = (size) => at.map((i) => svg("circle", { cx: this.x.at(s.x[i]), cy: this.y.at(s.y[i]), r: size, fill: color }));
    const low = (i) => (this.logY ? Math.max(s.y[i] - s.spread[i], this.y.low) : s.y[i] - s.spread[i]);
    switch (s.shape) {
      case "level":
        return this.can(1, s.y[0]) ? [svg("line", { x1: this.x.from, x2: this.x.to, y1: this.y.at(s.y[0]), y2: this.y.at(s.y[0]), stroke: color,
          "stroke-width": 2, "stroke-dasharray": s.dash })] : [];
      case "bars": {
        const width = 0.8 / this.bars.length, base = this.y.at(this.logY ? this.y.low : 0);
        return s.y.flatMap((y, i) => {
          if (!this.can(1, y)) return [];
          const x = i + width * (slot - 0.5 * (this.bars.length - 1)), top = this.y.at(y);
          return [svg("rect", { x: this.x.at(x - 0.46 * width), width: Math.max(1, this.x.at(x + 0.46 * width) - this.x.at(x - 0.46 * width)),
            y: Math.min(top, base), height: Math.max(1, Math.abs(top - base)), fill: color })];
        });
      }
      case "band":
        return [svg("path", { d: this.path({ x: [...at.map((i) => s.x[i]), ...at.map((i) => s.x[i]).reverse()] },
          (j) => (j < at.length ? s.y[at[j]] + s.spread[at[j]] : low(at[2 * at.length - 1 - j]))), fill: color, "fill-opacity": 0.22 }), line(2.4)];
      case "errors":
        return [line(1.6), ...at.map((i) => svg("line", { x1: this.x.at(s.x[i]), x2: this.x.at(s.x[i]), y1: this.y.at(low(i)),
          y2: this.y.at(s.y[i] + s.spread[i]), stroke: color, "stroke-width": 2 })), ...dots(4)];
      case "thin": return [line(0.9, 0.45)];
      case "points":
        return [...dots(4.5), ...(s.names && s.names.length <= 40 ? at.map((i) => svg("text", { class: "name", x: this.x.at(s.x[i]) + 8,
          y: this.y.at(s.y[i]) + 4 }, s.names[i])) : [])];
      default: return at.length <= 16 ? [line(2.4), ...dots(3.6)] : [line(2.4)];
    }
  }
  /* Of each curve, the point whose x is nearest to the pointer's. */
  nearest(pixel) {
    const found = [];
    for (const s of this.series) {
      if (s.shape === "level") continue;
      let best = -1, distance = Infinity;
      s.x.forEach((x, i) => {
        if (!this.can(x, s.y[i]) || x < this.x.low || x > this.x.high) return;
        const away = Math.abs(this.x.at(x) - pixel);
        if (away < distance) [best, distance] = [i, away];
      });
      if (best >= 0) found.push({ s, i: best, distance });
    }
    const least = Math.min(...found.map((f) => f.distance));
    return found.filter((f) => f.distance <= least + 1.5);
  }
  mark(found) {
    this.guide.replaceChildren();
    if (!found || found.length === 0) return;
    const x = this.x.at(found[0].s.x[found[0].i]);
    if (!this.bars.length) this.guide.append(svg("line", { x1: x, x2: x, y1: this.y.to, y2: this.y.from }));
    for (const { s, i } of found)
      if (s.shape !== "bars") this.guide.append(svg("circle", { cx: this.x.at(s.x[i]), cy: this.y.at(s.y[i]), r: 4.5, fill: ink(s.rgb) }));
  }
  point(event) {
    if (this.pressed !== undefined && event.buttons === 1 && !this.bars.length) {
      const [from, to] = [this.pressed, event.offsetX].sort((a, b) => a - b);
      fill(this.brush, { x: from, width: to - from }, []);
    } else this.pressed = undefined;
    this.tell(event.offsetX, event.offsetY);
  }
  tell(pixel, y) {
    let found = this.nearest(pixel);
    if (found.length === 0) return this.silence();
    const one = found.every((f) => f.s.shape === "points");
    const far = (f) => Math.abs(this.y.at(f.s.y[f.i]) - y);
    if (one) found = found.sort((a, b) => far(a) - far(b)).slice(0, 1);
    this.at = found[0].s.x[found[0].i];
    this.mark(found);
    const most = 12, rows = found.filter((f) => f.s.entry || f.s.label).sort((a, b) => far(a) - far(b)).slice(0, most)
      .sort((a, b) => b.s.y[b.i] - a.s.y[a.i]);
    const levels = this.series.filter((s) => s.shape === "level");
    const head = one && found[0].s.names ? found[0].s.names[found[0].i]
      : this.bars.length ? this.data.places[this.at] : `${this.data.x} ${shown(this.at)}`;
    this.say(this.x.at(this.at), y, html("strong", {}, head),
      ...(one ? [html("div", {}, html("span", {}, this.data.x), html("b", {}, shown(this.at)))] : []),
      ...rows.map(({ s, i }) => row(ink(s.rgb), s.label, shown(s.y[i]) + (s.spread ? ` ± ${shown(s.spread[i], 3)}` : ""))),
      ...levels.map((s) => row(ink(s.rgb), s.plain, shown(s.y[0]))));
  }
  release(event) {
    const from = this.pressed;
    this.pressed = undefined;
    this.brush.setAttribute("width", 0);
    if (from === undefined || this.bars.length || Math.abs(event.offsetX - from) < 10) return;
    const [low, high] = [from, event.offsetX].sort((a, b) => a - b).map((p) => this.x.value(p));
    this.zoom = [Math.max(low, this.x.low), Math.min(high, this.x.high)];
    this.render();
  }
  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || projecting()) return;
    const all = [...new Set(this.series.filter((s) => s.shape !== "level").flatMap((s) => s.x.filter((x, i) => this.can(x, s.y[i]))))]
      .sort((a, b) => a - b);
    const now = all.findIndex((x) => x >= (this.at ?? -Infinity));
    this.tell(this.x.at(all[Math.min(Math.max(now + step * Math.max(1, Math.round(all.length / 60)), 0), all.length - 1)]), this.y.to + 60);
    event.preventDefault();
  }
}

/* ---- Maps ---- */

class HeatMap extends Picture {
  constructor(figure, data) {
    super(figure, data);
    const cells = data.panels.reduce((sum, p) => sum + p.values.length, 0);
    this.chosen = cells > 12000 ? 0 : -1; /* -1: all */
    if (data.panels.length > 1) {
      const choice = html("select", { "aria-label": words.panel }, ...(cells > 12000 ? [] : [html("option", { value: -1 }, words.all)]),
        ...data.panels.map((p, i) => html("option", { value: i }, p.title)));
      choice.addEventListener("change", () => { this.chosen = Number(choice.value); this.render(); });
      this.controls.append(html("label", {}, choice));
    }
    this.bar = html("span", { class: "bar" });
    this.controls.append(this.bar);
    this.strip = html("div", { class: "strip", "aria-hidden": "true" });
    this.stage.after(this.strip);
    this.stage.addEventListener("pointermove", (e) => this.point(e.target.closest("[data-cell]"), e));
    this.stage.addEventListener("pointerleave", () => this.point(null));
    this.stage.addEventListener("keydown", (e) => this.key(e));
    this.begin();
  }
  color(v) {
    const { span, log } = this.data;
    return heat(new Scale(span[0], span[1], log, 0, 1).along(log ? Math.max(v, span[0]) : v));
  }
  /* Where cell (r,c) of a panel is forbidden, exactly 0, or wrong, it has a sign and no color of the scale. */
  render() {
    const all = this.data.panels, panels = this.chosen < 0 ? all : [all[this.chosen]];
    const letters = (list) => Math.max(...list.map((t) => [...t].length)), letter = projecting() ? 10.5 : 7.6;
    const wide = Math.max(...panels.map((p) => p.columns.length)), tall = Math.max(...panels.map((p) => p.rows.length));
    const left = Math.min(15 * letter, 10 + letter * Math.max(...panels.map((p) => letters(p.rows)))) + 18;
    let across = Math.max(1, Math.min(panels.length, Math.floor(this.width / (left + Math.max(150, 13 * wide)))));
    if (panels.length === 4 && across === 3) across = 2;
    const cell = Math.max(7, Math.min(projecting() ? 70 : 44, (this.width / across - left - 26) / wide, (this.room * (across > 1 ? 1 : 1.1)) / tall));
    this.stage.replaceChildren(...panels.map((p) => this.panel(p, all.indexOf(p), cell, left, letter)));
    this.stage.style.setProperty("--across", across);
    this.legend();
  }
  legend() {
    const { span, log, unit } = this.data, stops = viridis.join(", ");
    this.bar.replaceChildren(html("span", {}, shown(span[0], 3)), html("i", { style: `background: linear-gradient(to right, ${stops})` }),
      html("span", {}, `${shown(span[1], 3)} ${unit}${log ? ` (${words.log})` : ""}`));
  }
  panel(p, index, cell, left, letter) {
    const longest = letter * Math.max(...p.columns.map((t) => [...t].length)), turned = longest > cell;
    const top = turned ? Math.min(15 * letter, 12 + longest) : 24;
    const width = left + cell * p.columns.length + 2, height = top + cell * p.rows.length + 2;
    const every = Math.ceil((1.7 * letter) / cell); /* as many labels as do not touch */
    const cells = p.values.map((v, i) => {
      const r = Math.floor(i / p.columns.length), c = i % p.columns.length, kind = p.kinds[i];
      const x = left + c * cell, y = top + r * cell, at = { "data-cell": `${index} ${r} ${c}` };
      const middle = { cx: x + cell / 2, cy: y + cell / 2 };
      if (kind === "-") return svg("g", at, svg("rect", { x, y, width: cell, height: cell, class: "absent" }),
        svg("circle", { ...middle, r: Math.max(1, cell / 14), class: "dot" }));
      const fillColor = kind === "!" ? "#d40000" : kind === "0" ? "#ffffff" : this.color(v);
      const box = svg("rect", { x, y, width: cell, height: cell, fill: fillColor });
      if (!this.data.numbers || cell < 34 || kind === "!") return fill(box, at, []);
      return svg("g", at, box, svg("text", { x: x + cell / 2, y: y + cell / 2 + 4, "text-anchor": "middle",
        style: `fill: ${lightness(fillColor) < 0.55 ? "#ffffff" : "#111111"}`, class: "value" }, shown(v, 2)));
    });
    const rows = p.rows.map((t, r) => r % every ? null : svg("text", { x: left - 5, y: top + (r + 0.5) * cell + 4, "text-anchor": "end",
      "data-row": r }, t));
    const columns = p.columns.map((t, c) => {
      const x = left + (c + 0.5) * cell;
      return c % every ? null : svg("text", { x, y: top - 6, "text-anchor": turned ? "start" : "middle",
        transform: turned ? `rotate(-90 ${x + 4} ${top - 6})` : null, dx: turned ? 4 : null, "data-column": c }, t);
    });
    const title = p.title && this.data.panels.length > 1 ? html("h3", {}, p.title) : null;
    return fill(html("div", { class: "panel" }), {}, [title, svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${p.title}. ${this.description}` },
      ...rows, ...columns, ...cells)]);
  }
  point(target, event) {
    for (const old of this.stage.querySelectorAll(".lit")) old.classList.remove("lit");
    if (!target) return this.silence();
    const [index, r, c] = target.dataset.cell.split(" ").map(Number), p = this.data.panels[index];
    this.now = [index, r, c];
    target.classList.add("lit");
    const drawing = target.closest("svg");
    for (const label of drawing.querySelectorAll(`[data-row="${r}"], [data-column="${c}"]`)) label.classList.add("lit");
    const i = r * p.columns.length + c, kind = p.kinds[i];
    const stage = this.stage.getBoundingClientRect(), box = target.getBoundingClientRect();
    const x = (event ? event.clientX : box.right) - stage.left, y = (event ? event.clientY : box.top) - stage.top;
    const place = (name, at, label) => html("div", {}, html("span", {}, name || ""), html("b", {}, label === String(at) ? label : `${at} “${label}”`));
    this.say(x, y, html("strong", {}, p.title || this.data.unit), place(this.data.rows, r, p.rows[r]), place(this.data.columns, c, p.columns[c]),
      html("div", {}, html("span", {}, kind === "-" ? words.absent : kind === "!" ? words.alarm : this.data.unit),
        html("b", {}, kind === "-" ? "" : shown(p.values[i]))));
    this.look(p, r);
  }
  /* The text itself, each token as dark as the weight that this row gives it. */
  look(p, r) {
    if (!this.data.tokens) return;
    const from = p.values.slice(r * p.columns.length, (r + 1) * p.columns.length), most = Math.max(...from.map((v) => v ?? 0), 1e-30);
    this.strip.replaceChildren(...p.columns.map((t, c) => html("span", { class: c === r ? "query" : "",
      style: `--part: ${Math.max(0, from[c] ?? 0) / most}` }, t)));
  }
  key(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step || projecting()) return;
    const [index, r, c] = this.now ?? [Math.max(this.chosen, 0), 0, -1], p = this.data.panels[index];
    const clamp = (v, n) => Math.min(Math.max(v, 0), n - 1);
    this.point(this.stage.querySelector(`[data-cell="${index} ${clamp(r + step[0], p.rows.length)} ${clamp(c + step[1], p.columns.length)}"]`));
    event.preventDefault();
  }
}

/* ---- The page ---- */

for (const numbers of document.querySelectorAll("script.numbers")) {
  const data = JSON.parse(numbers.textContent);
  new (data.panels ? HeatMap : Figure)(numbers.closest("figure"), data);
}
const renderAll = () => pictures.forEach((p) => p.width && p.render());
dark.addEventListener("change", renderAll);
addEventListener("resize", () => pictures.forEach((p) => p.fit()));

const folds = [...document.querySelectorAll("details")];
for (const fold of folds) if (fold.querySelectorAll("tbody tr").length > 6 && !fold.querySelector("tbody .fail, tbody .undecided")) fold.open = false;
let opened = [];
addEventListener("beforeprint", () => {
  opened = folds.map((fold) => fold.open);
  for (const fold of folds) fold.open = true;
  onPaper = true;
  for (const p of pictures) p.width = Math.min(p.width, 680);
  renderAll();
});
addEventListener("afterprint", () => {
  folds.forEach((fold, i) => { fold.open = opened[i]; });
  onPaper = false;
  for (const p of pictures) p.width = 0;
  pictures.forEach((p) => p.fit());
});

const sections = [...document.querySelectorAll("main > section")];
const contents = html("nav", { class: "contents", "aria-label": words.contents },
  ...sections.map((section, i) => html("a", { href: `#${(section.id ||= section.className || `part-${i + 1}`)}` }, section.querySelector("h2").textContent)));
document.querySelector("main > header").append(contents);

/* ---- For the projector: one thing on the screen at a time ---- */

const slides = [document.querySelector("main > header"), ...sections.filter((section) => !section.matches(".verdicts, .done, .sources"))];
const counter = html("div", { class: "counter", "aria-live": "polite" });
document.body.append(counter);
let slide = 0;
const link = (rel) => document.querySelector(`a[rel=${rel}]`);

function show(i) {
  slide = i;
  for (const shownNow of document.querySelectorAll(".now")) shownNow.classList.remove("now");
  slides[i].classList.add("now");
  for (let note = slides[i].previousElementSibling; note && note.matches(".note"); note = note.previousElementSibling) note.classList.add("now");
  counter.textContent = `${i + 1} / ${slides.length}   ${words.keys}`;
  scrollTo(0, 0);
  pictures.forEach((p) => p.fit());
}
function project(on) {
  document.body.classList.toggle("projector", on);
  document.body.classList.remove("verdict");
  for (const p of pictures) p.width = 0;
  if (on) show(slide);
  else slides[slide].scrollIntoView();
  pictures.forEach((p) => p.fit());
}
function turn(by) {
  const to = slide + by, other = to < 0 ? link("prev") : to >= slides.length ? link("next") : null;
  document.body.classList.remove("verdict");
  if (other) location.href = `${other.getAttribute("href")}#projector`;
  else if (slides[to]) show(to);
}
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select, textarea")) return;
  if (event.key === "p") project(!projecting());
  else if (!projecting()) return;
  else if (event.key === "Escape") project(false);
  else if (event.key === "v") document.body.classList.toggle("verdict");
  else if (["ArrowRight", "PageDown", " "].includes(event.key)) turn(1);
  else if (["ArrowLeft", "PageUp"].includes(event.key)) turn(-1);
  else return;
  event.preventDefault();
});
document.querySelector("main > header").append(html("p", { class: "hint" }, words.hint));
if (location.hash === "#projector") project(true);
})();
