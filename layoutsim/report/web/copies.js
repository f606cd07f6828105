// The table of copies: sorted by any column, filtered, and only the rows in sight are in the document.

const ROW_HEIGHT = 28, AROUND = 12, MOST_PRINTED = 60;
const table = { box: element("copy-table"), rows: data.copies.map((_, i) => i), column: -1, ascending: true, first: -1, printing: false };

function startCopies() {
  const node = make("table", "", "", { "aria-rowcount": data.copies.length + 1 });
  const widths = make("colgroup");
  const head = make("tr");
  data.columns.forEach((column, i) => {
    const width = make("col");
    width.style.width = column.width;
    widths.append(width);
    const cell = make("th", "", column.number ? "number" : "", { scope: "col", "aria-sort": "none" });
    const button = make("button", column.name, "", { type: "button" });
    button.addEventListener("click", () => sortBy(i));
    cell.append(button);
    head.append(cell);
  });
  const header = make("thead");
  header.append(head);
  table.body = make("tbody");
  node.append(widths, header, table.body);
  table.box.append(node);
  table.head = head;
  table.box.addEventListener("scroll", showRows);
  element("filter").addEventListener("input", (event) => filterBy(event.target.value.toLowerCase()));
  window.addEventListener("beforeprint", () => { table.printing = true; order(); });
  window.addEventListener("afterprint", () => { table.printing = false; order(); });
  order();
}

function sortBy(column) {
  const ascendingFirst = !data.columns[column].number; // numbers begin with the largest
  table.ascending = table.column === column ? !table.ascending : ascendingFirst;
  table.column = column;
  [...table.head.children].forEach((cell, i) => {
    const state = i !== column ? "none" : table.ascending ? "ascending" : "descending";
    cell.setAttribute("aria-sort", state);
  });
  order();
}

function order() {
  const { column } = table;
  if (column >= 0) {
    const sign = table.ascending ? 1 : -1;
    const names = new Intl.Collator("en", { numeric: true });
    const compare = data.columns[column].number ? (a, b) => (a ?? -1) - (b ?? -1) : names.compare;
    table.rows.sort((a, b) => sign * compare(data.copies[a].cells[column], data.copies[b].cells[column]) || a - b);
  }
  table.first = -1;
  showRows();
}

function filterBy(text) {
  const all = data.copies.map((_, i) => i);
  table.rows = all.filter((i) => data.copies[i].cells.some((cell) => String(cell).toLowerCase().includes(text)));
  const [found, total] = [table.rows.length, all.length].map((number) => number.toLocaleString("en"));
  element("matches").textContent = text ? `${found} of ${total}` : "";
  order();
}

/** Fill the table with the rows in sight, and space for the others. */
function showRows() {
  const total = table.rows.length, inSight = Math.ceil(table.box.clientHeight / ROW_HEIGHT) + 2 * AROUND;
  const top = clamp(Math.floor(table.box.scrollTop / ROW_HEIGHT) - AROUND, 0, Math.max(0, total - inSight));
  const first = table.printing ? 0 : top - (top % AROUND);
  if (first === table.first) return;
  table.first = first;
  const last = Math.min(total, table.printing ? MOST_PRINTED : first + inSight + AROUND);
  const shown = table.rows.slice(first, last).map((copy, i) => copyRow(copy, first + i));
  table.body.replaceChildren(space(first), ...shown, space(table.printing ? 0 : total - last));
  element("unprinted").textContent = table.printing && last < total ? `and ${(total - last).toLocaleString("en")} more` : "";
}

function space(rows) {
  const row = make("tr", "", "space", { "aria-hidden": "true" });
  const cell = make("td", "", "", { colspan: data.columns.length });
  cell.style.height = `${rows * ROW_HEIGHT}px`;
  row.append(cell);
  row.hidden = rows === 0;
  return row;
}

function copyRow(copy, position) {
  const row = make("tr", "", "", { "aria-rowindex": position + 2 });
  const { cells, group } = data.copies[copy];
  cells.forEach((value, i) => {
    const { number } = data.columns[i];
    const text = value === null ? "?" : number ? value.toLocaleString("en") : value;
    const cell = make("td", "", number ? "number" : "", { title: text });
    if (i === 0 && group >= 0) {
      const link = make("a", text, "", { href: `#why-${group}`, "aria-label": `why ${text}` });
      link.addEventListener("click", () => openChain(group, copy));
      cell.append(link);
    } else {
      cell.textContent = text;
    }
    row.append(cell);
  });
  return row;
}
