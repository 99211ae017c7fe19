// Roofline plots: how far each kernel is from the device's limits.
// {title, points, roofs} of each roofline plot: the kernels of a model that ran, else the best program of each task.
function rooflines(data) {
  const list = [];
  data.models.forEach((model) => {
    const points = byTask(model.kernels).filter((row) => row.flops > 0 && row.bytes > 0 && row.seconds > 0)
                     .map((row) => ({ name: row.name, x: row.flops / row.bytes, y: row.flops / row.seconds }));
    const roofs = model.roofs.length > 0 ? model.roofs
                                         : (model.tasks.length > 0 ? data.setups[data.tasks[model.tasks[0].task].setup].roofs : []);
    if (points.length > 0) list.push({ title: "kernels of " + nameOf(model), points, roofs });
  });
  if (list.length > 0) return list;
  data.setups.forEach((setup, s) => {
    const points = data.tasks.filter((task) => task.setup === s && task.flops && task.bytes && isKnown(task.best_seconds))
                     .map((task) => ({ name: task.name, x: task.flops / task.bytes, y: task.flops / task.best_seconds }));
    if (points.length > 0) list.push({ title: "best program of each task, " + setupName(data, s), points, roofs: setup.roofs });
  });
  return list;
}

const roofName = (roof) =>
  `${roof.name}: ${roof.flops_per_second ? flopRate(roof.flops_per_second) : byteRate(roof.bytes_per_second)}` +
  (roof.assumed ? " (assumed)" : "");

// Returns the smaller one of the peak and the memory's bandwidth times the intensity.
function bound(roofs, x) {
  const peak = roofs.find((roof) => roof.flops_per_second), memory = roofs.find((roof) => roof.name === "memory");
  return Math.min(peak ? peak.flops_per_second : Infinity, memory ? memory.bytes_per_second * x : Infinity);
}

// Draws the names of the limits beside their lines.
const roofNames = (roofs, lineOf, colours) => ({
  id: "roofNames",
  afterDatasetsDraw(chart) {
    const pen = chart.ctx, { x, y } = chart.scales, { left, right, top, bottom } = chart.chartArea;
    pen.save();
    pen.beginPath();
    pen.rect(left, top - 8, right - left, bottom - top + 8);
    pen.clip();
    pen.font = "600 11px " + getComputedStyle(document.body).fontFamily;
    pen.textBaseline = "bottom";
    roofs.forEach((roof, i) => {
      // The visible part: a zoomed plot may show only a part of the line, or nothing of it.
      const [first, last] = lineOf(roof), bandwidth = roof.bytes_per_second;
      const begin = Math.max(first.x, x.min, bandwidth ? y.min / bandwidth : 0);
      const end = Math.min(last.x, x.max, bandwidth ? y.max / bandwidth : Infinity);
      const heights = [begin, end].map((at) => (bandwidth ? at * bandwidth : roof.flops_per_second));
      if (begin >= end || heights[0] < y.min || heights[0] > y.max) return;
      const [from, to] = [begin, end].map((at, e) => [x.getPixelForValue(at), y.getPixelForValue(heights[e])]);
      const text = roof.flops_per_second ? "peak" : roof.name;
      const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
      const wide = pen.measureText(text).width, along = 8, below = i % 2 === 0;
      if (Math.hypot(to[0] - from[0], to[1] - from[1]) < along + wide) return;
      pen.fillStyle = colours.lines[kRoofColours[i % kRoofColours.length]];
      pen.save();
      if (roof.flops_per_second) {
        pen.translate(Math.min(to[0], right) - wide - 6, from[1] - 3);
      } else {
        pen.translate(from[0], from[1]);
        pen.rotate(angle);
        pen.translate(along, below ? 16 : -3);  // names of lines with similar bandwidths are on opposite sides
      }
      pen.fillText(text, 0, 0);
      pen.restore();
    });
    pen.restore();
  },
});
const kRoofColours = [0, 2, 3, 4, 5];

function rooflineOf(roofline, m) {
  const { points, roofs, title } = roofline;
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  const peak = roofs.find((roof) => roof.flops_per_second);
  // Where a bandwidth's line intersects the peak's.
  const ridges = peak ? roofs.filter((roof) => roof.bytes_per_second).map((roof) => peak.flops_per_second / roof.bytes_per_second) : [];
  // The range includes all points and the ends of all lines, with a margin.
  const low = Math.min(...xs, ...ridges) / 2, high = Math.max(...xs, ...ridges) * 2.5;
  const least = Math.min(...ys) / 2, most = Math.max(...ys, ...(peak ? [peak.flops_per_second] : [])) * 1.8;
  const lineOf = (roof) => {
    if (roof.flops_per_second) return [{ x: low, y: roof.flops_per_second }, { x: high, y: roof.flops_per_second }];
    const begin = Math.min(Math.max(low, least / roof.bytes_per_second), high);
    const end = Math.max(begin, Math.min(high, (peak ? peak.flops_per_second : most) / roof.bytes_per_second));
    return [{ x: begin, y: begin * roof.bytes_per_second }, { x: end, y: end * roof.bytes_per_second }];
  };
  const share = (p) => p.y / bound(roofs, p.x);
  const rows = [...points].sort((a, b) => share(a) - share(b));
  return [
    plot(`plot-roofline-${m}`, "Roofline: " + title,
         `${points.length} kernels; ${roofs.map(roofName).join("; ")}. A kernel below a line could be faster as far as this limit is concerned.`,
         400, (colours) => ({
           type: "scatter",
           datasets: [dots("kernels", colours.lines[1], points, { pointRadius: 5, pointHoverRadius: 7, backgroundColor: faded(colours.lines[1], .65) }),
                      ...roofs.map((roof, i) => line(roofName(roof), colours.lines[kRoofColours[i % kRoofColours.length]], lineOf(roof),
                                                     { borderDash: i % 2 ? [6, 3] : [], pointHitRadius: 0 }))],
           scales: { x: valueAxis("operations a byte", kNoUnits, [low, high], { log: true }),
                     y: valueAxis("operations a second", kFlopUnits, [least, most], { log: true }) },
           tooltip: (item) => item.raw.name ? `${item.raw.name}: ${flopRate(item.raw.y)}` : item.dataset.label,
           plugins: [roofNames(roofs, lineOf, colours)],
         }), { zoom: "xy", table: {
           id: `table-roofline-${m}`, caption: "roofline, " + title,
           columns: [["kernel", asText], ["operations a byte", asNumber], ["speed", asFlopRate], ["share of its limit", asPercent]],
           rows: () => rows.map((p) => [p.name, p.x, p.y, share(p)]) } }),
  ];
}

function rooflineSection(data) {
  const list = rooflines(data);
  if (list.length === 0) return [paragraph("No kernel with known operations, bytes and time.", true)];
  return [...list.flatMap(rooflineOf),
          paragraph("Each tensor of a kernel counts once in its bytes. The peak is that of f32 vectors at the device's base clock. Kernels " +
                    "with a faster clock, 8-bit or 16-bit elements or Winograd's method can be above it, and kernels " +
                    "whose data are in caches can be above the line of the memory.", true)];
}
