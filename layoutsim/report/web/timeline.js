// The timeline: what is alive above, where it lies below, with one time axis. Two canvases lie on each other: the picture is
// drawn when the view changes, the pointer (cursor, chosen value) at every step.

const spans = data.spans;
const count = spans.start.length;
const curves = data.groups.map(() => new Float64Array(data.times + 1));
for (let i = 0; i < count; i += 1) {
  curves[spans.group[i]][spans.start[i]] += spans.size[i];
  curves[spans.group[i]][spans.end[i]] -= spans.size[i];
}
const live = new Float64Array(data.times);
for (const curve of curves) {
  for (let t = 0, sum = 0; t < data.times; t += 1) {
    sum += curve[t];
    curve[t] = sum;
    live[t] += sum;
  }
}

const timeline = element("timeline"), picture = element("picture"), pointer = element("pointer"), tip = element("tip");
const alive = element("alive");
const MOST_LISTED = 100, LEFT = 66, RIGHT = 8, TOP = 8, BOTTOM = 22, BETWEEN = 14;
const most = Math.max(1, live[data.peak]), allocated = Math.max(1, data.allocated);
let view = { from: 0, to: data.times };
let time = data.peak, chosen = -1, listed = [];

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

/** Where things are, in CSS pixels. */
function frame() {
  const width = timeline.clientWidth, height = timeline.clientHeight;
  const inner = height - TOP - BOTTOM - BETWEEN, curveHeight = Math.round(inner * 0.42);
  const mapTop = TOP + curveHeight + BETWEEN;
  return { width, height, plot: width - LEFT - RIGHT, curveHeight, mapTop, mapHeight: height - BOTTOM - mapTop };
}

const xOf = (t, f) => LEFT + ((t - view.from) / (view.to - view.from)) * f.plot;
const timeAt = (x, f) => clamp(Math.floor(view.from + ((x - LEFT) / f.plot) * (view.to - view.from)), 0, data.times - 1);

/** An empty canvas of the right size, measured in CSS pixels. */
function context(canvas, f) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(f.width * ratio), height = Math.round(f.height * ratio);
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, f.width, f.height);
  g.lineWidth = 1;
  g.font = "11px system-ui, sans-serif";
  return g;
}

function drawPicture() {
  const f = frame(), g = context(picture, f);
  drawCurve(g, f);
  drawMap(g, f);
  drawAxes(g, f);
}

/** One column of pixels shows the moment in it at which most is alive: a peak is never lost, however many steps there are. */
function drawCurve(g, f) {
  const perPixel = (view.to - view.from) / f.plot;
  const columns = Math.ceil(f.plot);
  const moments = new Int32Array(columns);
  for (let x = 0; x < columns; x += 1) {
    const begin = Math.floor(view.from + x * perPixel);
    const end = clamp(Math.floor(view.from + (x + 1) * perPixel), begin + 1, data.times);
    let best = Math.min(begin, data.times - 1);
    for (let t = begin; t < end; t += 1) if (live[t] > live[best]) best = t;
    moments[x] = best;
  }
  const scale = (f.curveHeight * 0.96) / most;
  const base = new Float64Array(columns);
  curves.forEach((curve, group) => {
    g.fillStyle = data.groups[group].color;
    for (let x = 0; x < columns; x += 1) {
      const height = curve[moments[x]] * scale;
      if (height > 0) g.fillRect(LEFT + x, TOP + f.curveHeight - base[x] - height, 1, height);
      base[x] += height;
    }
  });
}

function drawMap(g, f) {
  const scale = f.mapHeight / allocated;
  g.fillStyle = color("--gap");
  g.fillRect(LEFT, f.mapTop, f.plot, f.mapHeight);
  g.save();
  g.beginPath();
  g.rect(LEFT, f.mapTop, f.plot, f.mapHeight);
  g.clip();
  let group = -1;
  for (const i of data.order) {
    if (spans.end[i] <= view.from || spans.start[i] >= view.to) continue;
    if (spans.group[i] !== group) {
      group = spans.group[i];
      g.fillStyle = data.groups[group].color;
    }
    const [x, y, width, height] = rectangle(i, f, scale);
    const line = width > 3 && height > 3 ? 0.5 : 0; // a gap between neighbours that are large enough to tell apart
    g.fillRect(x, y + line, Math.max(width - line, 0.6), Math.max(height - line, 0.6));
  }
  g.restore();
}

function rectangle(i, f, scale) {
  const x = xOf(spans.start[i], f), height = spans.size[i] * scale;
  return [x, f.mapTop + f.mapHeight - spans.offset[i] * scale - height, xOf(spans.end[i], f) - x, height];
}

function drawAxes(g, f) {
  g.fillStyle = color("--soft");
  g.textAlign = "right";
  g.textBaseline = "middle";
  for (const part of [0, 0.5, 1]) {
    g.fillText(humanBytes(Math.round(most * part)), LEFT - 6, TOP + f.curveHeight * (1 - 0.96 * part));
    g.fillText(humanBytes(Math.round(allocated * part)), LEFT - 6, clamp(f.mapTop + f.mapHeight * (1 - part), f.mapTop + 5, f.height));
  }
  g.textBaseline = "top";
  const steps = Math.max(2, Math.floor(f.plot / 120));
  for (let k = 0; k <= steps; k += 1) {
    const t = Math.round(view.from + ((view.to - view.from) * k) / steps);
    g.textAlign = k === 0 ? "left" : k === steps ? "right" : "center";
    g.fillText(t.toLocaleString("en"), xOf(t, f), f.height - BOTTOM + 6);
  }
  const peak = xOf(data.peak + 0.5, f);
  if (peak >= LEFT && peak <= f.width - RIGHT) {
    g.fillStyle = color("--ink");
    g.beginPath();
    g.moveTo(peak - 4, TOP - 6);
    g.lineTo(peak + 4, TOP - 6);
    g.lineTo(peak, TOP + 1);
    g.fill();
  }
}

function drawPointer() {
  const f = frame(), g = context(pointer, f), x = xOf(time + 0.5, f);
  g.strokeStyle = color("--ink");
  g.beginPath();
  g.moveTo(x, TOP);
  g.lineTo(x, f.height - BOTTOM);
  g.stroke();
  if (chosen >= 0) {
    const [left, y, width, height] = rectangle(chosen, f, f.mapHeight / allocated);
    g.lineWidth = 2;
    g.strokeRect(left, y, Math.max(width, 2), Math.max(height, 2));
  }
}

/** Values alive at a time, the largest first. */
function aliveAt(t) {
  const found = [];
  for (let i = 0; i < count && spans.start[i] <= t; i += 1) if (t < spans.end[i]) found.push(i);
  return found.sort((a, b) => spans.size[b] - spans.size[a] || a - b);
}

/** The value that lies at a point of the address map, or -1. */
function valueAt(x, y, f) {
  if (y < f.mapTop || y > f.mapTop + f.mapHeight || x < LEFT) return -1;
  const t = timeAt(x, f), address = ((f.mapTop + f.mapHeight - y) / f.mapHeight) * allocated;
  return aliveAt(t).find((i) => spans.offset[i] <= address && address < spans.offset[i] + spans.size[i]) ?? -1;
}

const sourceOf = (i) => data.sources[spans.source[i]];
const shapeOf = (i) => data.shapes[spans.shape[i]];
const lifeOf = (i) => `${spans.start[i].toLocaleString("en")} to ${(spans.end[i] - 1).toLocaleString("en")}`;

const words = {
  time: (t) => `time ${t.toLocaleString("en")} of ${(data.times - 1).toLocaleString("en")}`,
  amount: (t) => `${humanBytes(live[t])} of temporaries alive${t === data.peak ? " (the peak)" : ""}`,
  value: (i) => (i < 0 ? "" : `; ${spans.name[i]}, ${humanBytes(spans.size[i])}, alive ${lifeOf(i)}`),
};

function showMoment() {
  const all = aliveAt(time);
  listed = all.slice(0, MOST_LISTED);
  if (!listed.includes(chosen)) chosen = -1;
  element("moment").replaceChildren(make("b", words.time(time)), `: ${words.amount(time)}`);
  alive.replaceChildren(...listed.map(option));
  const rest = all.length - listed.length;
  element("rest").textContent = rest > 0 ? `and ${rest.toLocaleString("en")} smaller ones` : "";
  showChoice();
}

function option(i) {
  const row = make("div", "", "", { role: "option", id: `value-${i}`, "aria-selected": "false" });
  const cells = [spans.name[i], shapeOf(i), humanBytes(spans.size[i]), lifeOf(i), sourceOf(i)];
  row.append(swatch(data.groups[spans.group[i]].color));
  cells.forEach((text, column) => row.append(make("span", text, column === 2 ? "number" : "", { title: text })));
  return row;
}

function showChoice() {
  timeline.setAttribute("aria-valuemax", data.times - 1);
  timeline.setAttribute("aria-valuenow", time);
  timeline.setAttribute("aria-valuetext", `${words.time(time)}, ${words.amount(time)}${words.value(chosen)}`);
  drawPointer();
  alive.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
  const row = element(`value-${chosen}`);
  if (row === null) {
    alive.removeAttribute("aria-activedescendant");
    return;
  }
  row.setAttribute("aria-selected", "true");
  alive.setAttribute("aria-activedescendant", row.id);
  const top = row.offsetTop - alive.offsetTop, bottom = top + row.offsetHeight;
  alive.scrollTop = clamp(alive.scrollTop, bottom - alive.clientHeight, top);
}

function choose(i) {
  chosen = i;
  showChoice();
}

function go(t) {
  time = clamp(t, 0, data.times - 1);
  const width = view.to - view.from;
  if (time < view.from || time >= view.to) setView(time - width / 2, width);
  showMoment();
}

function setView(from, width) {
  width = clamp(Math.round(width), Math.min(20, data.times), data.times);
  from = clamp(Math.round(from), 0, data.times - width);
  view = { from, to: from + width };
  drawPicture();
}

function zoom(factor) {
  const width = (view.to - view.from) * factor;
  setView(time - width * ((time - view.from) / (view.to - view.from)), width);
  drawPointer();
}

function step(by) {
  if (!listed.length) return;
  const at = listed.indexOf(chosen);
  choose(listed[clamp(at < 0 ? 0 : at + by, 0, listed.length - 1)]);
}

const KEYS = {
  ArrowLeft: (event) => go(time - (event.shiftKey ? 10 : 1)),
  ArrowRight: (event) => go(time + (event.shiftKey ? 10 : 1)),
  ArrowUp: () => step(-1),
  ArrowDown: () => step(1),
  PageUp: () => go(time - Math.ceil((view.to - view.from) / 10)),
  PageDown: () => go(time + Math.ceil((view.to - view.from) / 10)),
  Home: () => go(0),
  End: () => go(data.times - 1),
  p: () => go(data.peak),
  "+": () => zoom(0.5),
  "=": () => zoom(0.5),
  "-": () => zoom(2),
  0: () => zoom(data.times),
};

function onKey(event) {
  const action = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
  if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action(event);
}

function onHover(event) {
  const f = frame(), x = event.offsetX, y = event.offsetY, i = valueAt(x, y, f), t = timeAt(x, f);
  const lines = i < 0
    ? [`time ${t.toLocaleString("en")}: ${humanBytes(live[t])} alive`]
    : [spans.name[i], shapeOf(i), `${humanBytes(spans.size[i])}, alive ${lifeOf(i)}`, data.groups[spans.group[i]].name, sourceOf(i)];
  tip.replaceChildren(...lines.filter(Boolean).map((line) => make("div", line)));
  tip.hidden = false;
  tip.style.left = `${clamp(x + 14, 0, Math.max(0, f.width - tip.offsetWidth - 2))}px`;
  tip.style.top = `${y + 20 + tip.offsetHeight > f.height ? y - tip.offsetHeight - 8 : y + 20}px`;
}

function onClick(event) {
  const f = frame();
  chosen = valueAt(event.offsetX, event.offsetY, f);
  go(timeAt(event.offsetX, f));
}

function startTimeline() {
  if (!data.times || !count) {
    timeline.replaceWith(make("p", "There are no temporaries."));
    return;
  }
  const items = data.groups.map((group) => {
    const item = make("li");
    item.append(swatch(group.color), group.name);
    return item;
  });
  element("legend").replaceChildren(...items);
  timeline.addEventListener("keydown", onKey);
  alive.addEventListener("keydown", onKey);
  alive.addEventListener("click", (event) => {
    const row = event.target.closest("[role=option]");
    if (row) choose(Number(row.id.replace("value-", "")));
  });
  timeline.addEventListener("click", onClick);
  let hovered = null;
  timeline.addEventListener("pointermove", (event) => {
    if (hovered === null) requestAnimationFrame(() => { onHover(hovered); hovered = null; });
    hovered = event;
  });
  timeline.addEventListener("pointerleave", () => { tip.hidden = true; });
  element("to-peak").addEventListener("click", () => go(data.peak));
  element("zoom-in").addEventListener("click", () => zoom(0.5));
  element("zoom-out").addEventListener("click", () => zoom(2));
  element("zoom-all").addEventListener("click", () => zoom(data.times));
  const redraw = () => {
    if (timeline.clientWidth > LEFT + RIGHT) {
      drawPicture();
      drawPointer();
    }
  };
  new ResizeObserver(redraw).observe(timeline);
  for (const query of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(query).addEventListener("change", redraw);
  showMoment();
}
