// Plots by Chart.js in the colours of the page, each with its buttons: zoom, PNG, CSV.
const plots = new Map();  // canvas -> {id, title, chart, make, legend, zoom, buttons}
const kPngScale = 2;      // pixels of a saved picture per pixel of the page

function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { text: of("--text"), quiet: of("--quiet"), grid: of("--grid"), axis: of("--axis"), line: of("--line"), page: of("--card"),
           tip: of("--tip"), tipText: of("--tip-text"),
           lines: ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6"].map(of) };
}

const faded = (colour, share) => colour + Math.round(255 * share).toString(16).padStart(2, "0");

function toolButton(id, text, title, act) {
  const button = element("button", { type: "button", id, title }, text);
  button.addEventListener("click", act);
  return button;
}

// description: what the plot shows, as a sentence or two. make: colours -> {type, datasets, scales, tooltip, labels, plugins}.
// more: zoom, the axes that can be zoomed ("x", "xy", ""); table: {id, caption, columns, rows: () => rows}, the contents
// of the CSV file; folded: whether the table is shown collapsed below the plot (else the caller shows it).
function plot(id, title, description, height, make, more = {}) {
  const { zoom = "", table: behind = null, folded = true } = more;
  const canvas = element("canvas", { id, role: "img", "aria-label": title + ". " + description });
  const legend = element("ul", { class: "legend", "aria-hidden": "true" });
  const entry = { id, title, chart: null, make, legend, zoom, buttons: null };
  const tools = element("div", { class: "tools" });
  if (zoom) tools.append(...zoomButtons(canvas, entry));
  tools.append(toolButton(id + "-png", "PNG", "Save the plot as a PNG picture: " + title, () => savePng(canvas, entry)));
  if (behind)
    tools.append(toolButton(id + "-csv", "CSV", "Save the numbers of the plot as CSV: " + title,
                            () => saveCsv(id, behind.columns, behind.rows())));
  const area = element("div", { class: "plot", style: `height:${height}px` }, canvas);
  if (zoom) dragToZoom(canvas, area, entry);
  plots.set(canvas, entry);
  return element("figure", {}, element("div", { class: "head" }, element("figcaption", {}, title), tools), area, legend,
                 behind && folded ? tableBehind(behind.id, behind.caption, behind.columns, behind.rows) : null);
}

function configuration(entry, colours) {
  const { type, datasets, scales, tooltip, labels, indexAxis, plugins = [] } = entry.make(colours);
  const made = Object.fromEntries(Object.entries(scales).map(([key, scale]) => [key, scale(colours)]));
  for (const [key, range] of Object.entries(zooms.get(entry.id) || {})) Object.assign(made[key], range);
  return {
    type,
    data: { datasets, ...(labels ? { labels } : {}) },
    options: {
      animation: false, responsive: true, maintainAspectRatio: false, indexAxis: indexAxis || "x", color: colours.text,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12 },
      interaction: { mode: "nearest", intersect: false },
      layout: { padding: { top: 8, right: 14 } },
      scales: made,
      plugins: {
        legend: { display: false },
        tooltip: { backgroundColor: colours.tip, bodyColor: colours.tipText, padding: 10, cornerRadius: 8, displayColors: false,
                   callbacks: { title: () => "", ...(tooltip ? { label: tooltip } : {}) } },
      },
    },
    plugins,
  };
}

const swatchOf = (set) => (Array.isArray(set.legendColour || set.borderColor) ? set.borderColor[0] : set.legendColour || set.borderColor);
const inLegend = (datasets) => datasets.filter((set) => set.label && datasets.length > 1);

function draw(canvas, entry) {
  const configured = configuration(entry, palette());
  if (entry.chart) entry.chart.destroy();
  entry.legend.replaceChildren(...inLegend(configured.data.datasets).map((set) => {
    const swatch = element("span", { class: set.borderDash && set.borderDash.length ? "dashed" : set.type === "line" ? "line" : "box" });
    swatch.style.setProperty("--swatch", swatchOf(set));
    return element("li", {}, swatch, set.label);
  }));
  entry.chart = new Chart(canvas, configured);
  showZoom(entry);
}

function drawAll() {
  for (const [canvas, entry] of plots) {
    if (canvas.isConnected) {
      draw(canvas, entry);
    } else {
      if (entry.chart) entry.chart.destroy();
      plots.delete(canvas);
    }
  }
}

function drawNew() {
  for (const [canvas, entry] of plots) if (canvas.isConnected && !entry.chart) draw(canvas, entry);
}

// Draws the plot as on the page, with its title and its legend.
function picture(canvas, entry) {
  const colours = palette(), width = canvas.clientWidth, height = canvas.clientHeight, edge = 16;
  const font = (weight, size) => `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  const configured = configuration(entry, colours);
  Object.assign(configured.options, { responsive: false, devicePixelRatio: kPngScale });
  const drawn = element("canvas", { width: String(width), height: String(height) });
  const chart = new Chart(drawn, configured);

  const made = element("canvas"), pen = made.getContext("2d");
  pen.font = font(400, 12);
  const rows = [[]];
  let at = 0;
  for (const set of inLegend(configured.data.datasets)) {
    const wide = 18 + pen.measureText(set.label).width + 16;
    if (at > 0 && at + wide > width) {
      rows.push([]);
      at = 0;
    }
    rows[rows.length - 1].push({ set, at });
    at += wide;
  }
  const top = edge + 28, below = top + height + 8;
  made.width = kPngScale * (width + 2 * edge);
  made.height = kPngScale * (below + rows.length * 20 + edge / 2);
  pen.scale(kPngScale, kPngScale);
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, made.width, made.height);
  pen.textBaseline = "middle";
  pen.fillStyle = colours.text;
  pen.font = font(600, 15);
  pen.fillText(entry.title, edge, edge + 8, width);
  pen.drawImage(drawn, edge, top, width, height);
  pen.font = font(400, 12);
  rows.forEach((row, r) => row.forEach(({ set, at: x }) => {
    pen.fillStyle = swatchOf(set);
    pen.fillRect(edge + x, below + 20 * r + 3, 12, 12);
    pen.fillStyle = colours.text;
    pen.fillText(set.label, edge + x + 18, below + 20 * r + 9.5);
  }));
  chart.destroy();
  return made;
}

// Synchronous, because toBlob() waits for an idle moment, which may come late.
function savePng(canvas, entry) {
  const bytes = atob(picture(canvas, entry).toDataURL("image/png").split(",")[1]);
  save(fileName(entry.id, "png"), new Blob([Uint8Array.from(bytes, (letter) => letter.charCodeAt(0))], { type: "image/png" }));
}

const line = (label, colour, data, more = {}) => ({
  type: "line", label, data, borderColor: colour, backgroundColor: colour, borderWidth: 2, pointRadius: 0, pointHitRadius: 6,
  showLine: true, fill: false, ...more,
});
const dots = (label, colour, data, more = {}) => ({
  type: "scatter", label, data, borderColor: colour, backgroundColor: colour, pointRadius: 2.5, showLine: false, ...more,
});
const bars = (label, colour, data, more = {}) => ({
  label, data, borderColor: colour, backgroundColor: colour, borderRadius: 3, maxBarThickness: 26, ...more,
});

// A reference line across a bar plot, at the value that the bars are compared with.
const markAt = (value, colour) => ({
  id: "markAt",
  afterDatasetsDraw(chart) {
    const pen = chart.ctx, x = chart.scales.x.getPixelForValue(value), { top, bottom } = chart.chartArea;
    pen.save();
    pen.strokeStyle = colour;
    pen.setLineDash([4, 3]);
    pen.beginPath();
    pen.moveTo(x, top);
    pen.lineTo(x, bottom);
    pen.stroke();
    pen.restore();
  },
});
