// Elements and collapsible sections. Text from the data only becomes text nodes and attribute values.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const paragraph = (text, quiet = false) => element("p", quiet ? { class: "quiet" } : {}, text);

// Functions that make the content of unopened sections, called when a section is opened or the page is printed.
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

// pairs: [name, value], or [name, value, "strong"] for the most important ones.
function figures(pairs) {
  return element("dl", { class: "figures" }, ...pairs.map(([name, value, weight]) =>
    element("div", { class: weight || (value.length > 12 ? "wide" : "plain") }, element("dt", {}, name), element("dd", {}, value))));
}

function choice(id, label, names, chosen, changed) {
  const select = element("select", { id }, ...names.map((name, i) => element("option", { value: String(i) }, name)));
  select.value = String(chosen);
  select.addEventListener("change", () => changed(Number(select.value)));
  return element("div", { class: "choice" }, element("label", { for: id }, label), select);
}
