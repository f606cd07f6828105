// What the other parts share: the data of the page, sizes as people read them, and elements.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);

/** Bytes as "1.50 MiB"; exact below 1 KiB. */
function humanBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${unit ? bytes.toFixed(2) : bytes} ${units[unit]}`;
}

/** A new element with text, a class and attributes. */
function make(tag, text = "", className = "", attributes = {}) {
  const node = document.createElement(tag);
  node.textContent = text;
  if (className) node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function swatch(color) {
  const node = make("span", "", "swatch");
  node.style.background = color;
  return node;
}

const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
