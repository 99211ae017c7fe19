// Tables whose rows can be sorted by a click on a heading and filtered by words. The reader's choices are kept by the
// table's id when the page is redrawn.
const kFilterFrom = 8;    // rows; shorter tables have no filter
const kRowsAtFirst = 200;  // the others are shown on request
const tableStates = new Map();  // id -> {column, descending, words, all}

function compareCells(a, b) {
  const numbers = [isKnown(a), isKnown(b)];
  if (numbers[0] && numbers[1]) return a - b;
  if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;  // unknown values come last
  return String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true });
}

const shownCell = (kind, value) => (kind && (isKnown(value) || value === null || value === undefined) ? kind.show(value) : value);

const longestOf = (rows, c) => rows.reduce((most, row) => Math.max(most, String(row[c]).length), 0) + 1;

// columns: [heading, kind]; rows: lists of numbers and texts, one per column. A text in a column of numbers says why there
// is no number.
function table(id, caption, columns, rows) {
  const state = tableStates.get(id) || { column: null, descending: false, words: "", all: false };
  tableStates.set(id, state);
  const body = element("tbody");
  const count = element("span", { class: "count", role: "status" });
  const more = element("button", { type: "button", id: id + "-more", class: "more" });
  const heads = columns.map(([name, kind], c) => {
    const button = element("button", { type: "button", id: `${id}-sort-${c}` }, name, element("span", { class: "arrow", "aria-hidden": "true" }));
    button.addEventListener("click", () => {
      const first = kind !== asText;  // largest numbers first, texts from A to Z
      if (state.column !== c) Object.assign(state, { column: c, descending: first });
      else if (state.descending === first) state.descending = !first;
      else state.column = null;
      show();
    });
    const head = element("th", { scope: "col", class: kind ? "number" : "text" }, button);
    if (!kind) head.style.minWidth = `min(calc(${longestOf(rows, c)}ch + 1.3rem), ${c === 0 ? 18 : 14}rem, ${c === 0 ? 40 : 60}vw)`;
    return head;
  });

  const chosen = () => {
    const words = state.words.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const kept = words.length === 0 ? [...rows] : rows.filter((row) => {
      const text = row.map((value, c) => shownCell(columns[c][1], value)).join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    });
    if (state.column === null) return kept;
    const c = state.column, sign = state.descending ? -1 : 1;
    return kept.sort((a, b) => {
      const order = compareCells(a[c], b[c]);
      return isKnown(a[c]) === isKnown(b[c]) ? sign * order : order;
    });
  };
  const cell = (name, c, value, attributes = {}) =>
    element(name, { class: columns[c][1] ? "number" : "text", ...attributes }, shownCell(columns[c][1], value));
  function show() {
    const kept = chosen();
    const shown = state.all ? kept : kept.slice(0, kRowsAtFirst);
    body.replaceChildren(...shown.map((row) =>
      element("tr", {}, ...row.map((value, c) => (c === 0 ? cell("th", 0, value, { scope: "row" }) : cell("td", c, value))))));
    if (kept.length === 0)
      body.append(element("tr", {}, element("td", { class: "text", colspan: String(columns.length) }, "No row has these words.")));
    heads.forEach((head, c) => {
      if (state.column === c) head.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    count.textContent = shown.length < rows.length ? `${shown.length} of ${rows.length} rows` : `${rows.length} rows`;
    more.hidden = shown.length === kept.length;
    more.textContent = `Show all ${kept.length} rows`;
  }

  // The visible caption is beside the buttons; the table's own caption is for screen readers and for print.
  const tools = element("div", { class: "tools" }, element("span", { class: "title", "aria-hidden": "true" }, caption));
  if (rows.length >= kFilterFrom) {
    const input = element("input", { type: "search", id: id + "-filter", placeholder: "Filter rows", autocomplete: "off",
                                     "aria-label": "Filter rows: " + caption });
    input.value = state.words;
    input.addEventListener("input", () => {
      state.words = input.value;
      show();
    });
    tools.append(input, count);
  }
  const save = element("button", { type: "button", id: id + "-csv", title: "Save the rows as CSV" }, "CSV",
                       element("span", { class: "hidden" }, ": " + caption));
  save.addEventListener("click", () => saveCsv(id, columns, chosen()));
  tools.append(save);
  more.addEventListener("click", () => {
    state.all = true;
    show();
  });
  show();
  const made = element("table", {}, element("caption", {}, element("span", { class: "hidden" }, caption)), element("thead", {}, element("tr", {}, ...heads)), body);
  return element("div", { class: "table", id }, tools,
                 element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, made), more);
}

// The numbers of a plot, for readers who cannot see it.
const tableBehind = (id, caption, columns, rows) =>
  foldedOut(id, "Table: " + caption, () => table(id + "-rows", caption, columns, rows()), { class: "behind" });
