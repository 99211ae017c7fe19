// Elements, tables and sections. Text from the data only ever becomes text nodes and attribute values.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const paragraph = (text, quiet = false) => element("p", quiet ? { class: "quiet" } : {}, text);

// columns: [heading, isNumber]; rows: lists of text.
function table(caption, columns, rows) {
  const cell = (name, number, text, attributes = {}) =>
    element(name, { class: number ? "number" : "text", ...attributes }, text);
  const head = columns.map(([name, number]) => cell("th", number, name, { scope: "col" }));
  const body = rows.map((row) =>
    element("tr", {}, ...row.map((text, c) => (c === 0 ? cell("th", columns[0][1], text, { scope: "row" })
                                                       : cell("td", columns[c][1], text)))));
  const made = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head)),
                       element("tbody", {}, ...body));
  return element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, made);
}

// What is made when somebody opens it, or prints the page.
const unopened = new Map();
function fill(details) {
  const make = unopened.get(details);
  unopened.delete(details);
  if (make) details.append(make());
}

function foldedOut(id, title, make, attributes = {}) {
  const made = element("details", { id, ...attributes }, element("summary", {}, title));
  unopened.set(made, make);
  made.addEventListener("toggle", () => made.open && fill(made));
  return made;
}

// The numbers of a plot, for whoever does not see it.
const tableBehind = (id, caption, columns, rows) =>
  foldedOut(id, "Table: " + caption, () => table(caption, columns, rows()), { class: "behind" });

function figures(pairs) {
  return element("dl", { class: "figures" },
                 ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function choice(id, label, names, chosen, changed) {
  const select = element("select", { id }, ...names.map((name, i) => element("option", { value: String(i) }, name)));
  select.value = String(chosen);
  select.addEventListener("change", () => changed(Number(select.value)));
  return element("div", {}, element("label", { for: id }, label), select);
}
