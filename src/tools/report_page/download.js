// Files that the reader saves. They are made in the page and not sent anywhere.
function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const fileName = (id, extension) => "tensorsmith-" + id.replace(/^(plot|table)-/, "").replace(/[^A-Za-z0-9-]+/g, "-") + "." + extension;

// Prefixes a text cell with an apostrophe if a spreadsheet would take it for a formula.
function csvCell(value) {
  if (value === null || value === undefined || (typeof value === "number" && !isFinite(value))) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
  return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}

// Numbers are in the units that the header line states, with all their digits.
function csvText(columns, rows) {
  const names = columns.map(([name, kind]) => (kind && kind.unit ? `${name} (${kind.unit})` : name));
  return [names, ...rows].map((row) => row.map(csvCell).join(",") + "\r\n").join("");
}

const saveCsv = (id, columns, rows) =>
  save(fileName(id, "csv"), new Blob(["\ufeff", csvText(columns, rows)], { type: "text/csv;charset=utf-8" }));
