// Plots by Chart.js in the colours of the page.
const plots = new Map();  // canvas -> {chart, make}

function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { text: of("--text"), grid: of("--grid"), axis: of("--axis"), page: of("--page"),
           lines: ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6"].map(of) };
}

function axis(title, options = {}) {
  const { tick, ...rest } = options;
  return (colours) => ({
    title: { display: title !== "", text: title, color: colours.axis },
    grid: { color: colours.grid, borderColor: colours.axis },
    ticks: { color: colours.axis, maxRotation: 0, autoSkipPadding: 12, ...(tick ? { callback: tick } : {}),
             ...(rest.ticks || {}) },
    ...Object.fromEntries(Object.entries(rest).filter(([key]) => key !== "ticks")),
  });
}

// Of a logarithmic axis: the powers of ten, and 2 and 5 where there are few.
function logTick(format) {
  return function (value) {
    const power = Math.log10(value), span = Math.log10(this.max / this.min);
    const lead = Math.round(value / 10 ** Math.floor(power + 1e-9));
    return lead === 1 || (span < 2 && (lead === 2 || lead === 5)) ? format(value) : "";
  };
}

// description: what the plot shows, as a sentence or two. make: colours -> {type, datasets, scales, tooltip, labels}.
function plot(id, title, description, height, make) {
  const canvas = element("canvas", { id, role: "img", "aria-label": title + ". " + description });
  const legend = element("ul", { class: "legend", "aria-hidden": "true" });
  const figure = element("figure", {}, element("figcaption", {}, title),
                         element("div", { class: "plot", style: `height:${height}px` }, canvas), legend);
  plots.set(canvas, { chart: null, make, legend });
  return figure;
}

function draw(canvas, entry) {
  const colours = palette();
  const { type, datasets, scales, tooltip, labels, indexAxis } = entry.make(colours);
  if (entry.chart) entry.chart.destroy();
  entry.legend.replaceChildren(...datasets.filter((set) => set.label && datasets.length > 1).map((set) => {
    const swatch = element("span");
    swatch.style.background = set.borderColor || set.backgroundColor;
    return element("li", {}, swatch, set.label);
  }));
  entry.chart = new Chart(canvas, {
    type,
    data: { datasets, ...(labels ? { labels } : {}) },
    options: {
      animation: false, responsive: true, maintainAspectRatio: false, indexAxis: indexAxis || "x", color: colours.text,
      interaction: { mode: "nearest", intersect: false },
      scales: Object.fromEntries(Object.entries(scales).map(([key, made]) => [key, made(colours)])),
      plugins: { legend: { display: false }, tooltip: { callbacks: { title: () => "", ...(tooltip ? { label: tooltip } : {}) } } },
    },
  });
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

const line = (label, colour, data, more = {}) => ({
  type: "line", label, data, borderColor: colour, backgroundColor: colour, borderWidth: 2, pointRadius: 0, pointHitRadius: 6,
  showLine: true, fill: false, ...more,
});
const dots = (label, colour, data, more = {}) => ({
  type: "scatter", label, data, borderColor: colour, backgroundColor: colour, pointRadius: 2.5, showLine: false, ...more,
});
