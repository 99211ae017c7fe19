// Where the time of a run goes: a timeline, a bar a kernel, and how far each is from what the device can do.
const kMostRows = 24;

// Letters of a name beside a bar.
const rowRoom = () => (innerWidth < 600 ? 18 : 34);

// Kernels by task: the ones that take longest first.
function byTask(kernels) {
  const rows = new Map();
  for (const kernel of kernels) {
    const key = kernel.task + "/" + kernel.place;
    if (!rows.has(key)) rows.set(key, { name: kernel.task, seconds: 0, calls: 0, flops: 0, bytes: 0, kernels: [] });
    const row = rows.get(key);
    row.seconds += kernel.seconds;
    row.calls += 1;
    row.flops += kernel.flops || 0;
    row.bytes += kernel.bytes || 0;
    row.kernels.push(kernel);
  }
  return [...rows.values()].sort((a, b) => b.seconds - a.seconds);
}

function shownRows(kernels) {
  const rows = byTask(kernels);
  if (rows.length <= kMostRows) return rows;
  const rest = rows.slice(kMostRows - 1);
  const others = { name: `${rest.length} others`, seconds: 0, calls: 0, flops: 0, bytes: 0, kernels: [] };
  for (const row of rest) {
    for (const key of ["seconds", "calls", "flops", "bytes"]) others[key] += row[key];
    others.kernels.push(...row.kernels);
  }
  return [...rows.slice(0, kMostRows - 1), others];
}

function runOf(model, m) {
  const total = model.kernels.reduce((sum, kernel) => sum + kernel.seconds, 0);
  const ran = isKnown(model.kernels_run_seconds);
  const out = [element("h3", {}, nameOf(model))];
  if (total === 0) return [...out, paragraph("The times of its kernels are not known: " + (model.not_run_because || "it has none") + ".")];
  out.push(paragraph(
    ran ? `One run of ${model.run_seconds.length}, the one at the lower quartile of their times: ${seconds(model.kernels_run_seconds)}, of which ` +
            `${seconds(Math.max(model.kernels_run_seconds - total, 0))} lie between the kernels.`
        : `The model was not run (${model.not_run_because}): the times are those of each kernel measured alone, one after the other.`, true));
  const rows = shownRows(model.kernels);
  const share = (row) => row.seconds / total;
  const spans = rows.flatMap((row, r) => row.kernels.map((kernel) => ({
    x: [kernel.begin_seconds, kernel.begin_seconds + kernel.seconds], y: r + ". " + short(row.name, rowRoom()), row,
  })));
  const labels = rows.map((row, r) => r + ". " + short(row.name, rowRoom()));
  const shown = (label) => String(label).replace(/^\d+\. /, "");
  const rowAxis = () => axis("", { type: "category", labels, tick: (value) => shown(labels[value]), ticks: { autoSkip: false } });
  const height = 70 + rows.length * 20;
  out.push(plot(`plot-timeline-${m}`, "Timeline of one run",
                `${model.kernels.length} calls one after the other; the longest kernels: ` +
                rows.slice(0, 3).map((row) => `${row.name}, ${percent(share(row))}`).join("; ") + ".",
                height, (colours) => ({
                  type: "bar", indexAxis: "y", labels,
                  datasets: [{ label: "calls", data: spans, backgroundColor: colours.lines[0], borderColor: colours.lines[0],
                               borderWidth: 1, barPercentage: .8, grouped: false }],
                  scales: { x: axis("time since the run began", { type: "linear", beginAtZero: true, tick: (v) => seconds(v) }),
                            y: rowAxis() },
                  tooltip: (item) => `${item.raw.row.name}: ${seconds(item.raw.x[1] - item.raw.x[0])} at ${seconds(item.raw.x[0])}`,
                })));
  out.push(plot(`plot-kernels-${m}`, "Time of each kernel, all its calls",
                rows.slice(0, 5).map((row) => `${row.name}: ${seconds(row.seconds)}`).join("; ") + ".",
                height, (colours) => ({
                  type: "bar", indexAxis: "y", labels,
                  datasets: [{ label: "time", data: rows.map((row) => row.seconds), backgroundColor: colours.lines[0],
                               borderColor: colours.lines[0], barPercentage: .8 }],
                  scales: { x: axis("time of a run", { type: "linear", beginAtZero: true, tick: (v) => seconds(v) }), y: rowAxis() },
                  tooltip: (item) => `${rows[item.dataIndex].name}: ${seconds(rows[item.dataIndex].seconds)}, ` +
                                     percent(share(rows[item.dataIndex])),
                })));
  out.push(tableBehind(`table-kernels-${m}`, `kernels of ${nameOf(model)}`,
                       [["kernel", false], ["calls", true], ["time", true], ["share", true], ["speed", true], ["bytes of its tensors", true]],
                       () => byTask(model.kernels).map((row) => [row.name, String(row.calls), seconds(row.seconds), percent(share(row)),
                                                                 row.flops > 0 ? flopRate(row.flops / row.seconds) : "no arithmetic",
                                                                 byteCount(row.bytes)])));
  out.push(tableBehind(`table-timeline-${m}`, `calls of ${nameOf(model)} in their order`,
                       [["number", true], ["kernel", false], ["begins", true], ["takes", true]],
                       () => model.kernels.map((kernel, c) => [String(c + 1), kernel.task, seconds(kernel.begin_seconds),
                                                               seconds(kernel.seconds)])));
  return out;
}

function runSection(data) {
  if (data.models.length === 0)
    return [paragraph("No compiled model is part of this report. tensorsmith report DATABASE DIRECTORY runs one and shows it here.", true)];
  return data.models.flatMap((model, m) => runOf(model, m));
}

// {title, points, roofs} of each roofline plot: kernels of a model that ran, else the best program of each task.
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

// The least of the peak and the memory's bandwidth times the intensity.
function bound(roofs, x) {
  const peak = roofs.find((roof) => roof.flops_per_second), memory = roofs.find((roof) => roof.name === "memory");
  return Math.min(peak ? peak.flops_per_second : Infinity, memory ? memory.bytes_per_second * x : Infinity);
}

function rooflineOf(roofline, m) {
  const { points, roofs, title } = roofline;
  const xs = points.map((p) => p.x);
  const peak = roofs.find((roof) => roof.flops_per_second);
  // Where a bandwidth's line meets the peak's.
  const ridges = peak ? roofs.filter((roof) => roof.bytes_per_second).map((roof) => peak.flops_per_second / roof.bytes_per_second) : [];
  const low = Math.min(...xs, ...ridges) / 3, high = Math.max(...xs, ...ridges) * 3;
  const lineOf = (roof) => {
    if (roof.flops_per_second) return [{ x: low, y: roof.flops_per_second }, { x: high, y: roof.flops_per_second }];
    const end = peak ? Math.min(high, Math.max(peak.flops_per_second / roof.bytes_per_second, low)) : high;
    return [{ x: low, y: low * roof.bytes_per_second }, { x: end, y: end * roof.bytes_per_second }];
  };
  const share = (p) => p.y / bound(roofs, p.x);
  const rows = [...points].sort((a, b) => share(a) - share(b));
  return [
    plot(`plot-roofline-${m}`, "Roofline: " + title,
         `${points.length} kernels; ${roofs.map(roofName).join("; ")}. A kernel under a line could be faster by that limit.`,
         360, (colours) => ({
           type: "scatter",
           datasets: [dots("kernels", colours.lines[1], points, { pointRadius: 4 }),
                      ...roofs.map((roof, i) => line(roofName(roof), colours.lines[[0, 2, 3, 4, 5][i % 5]], lineOf(roof),
                                                     { borderDash: i % 2 ? [6, 3] : [] }))],
           scales: { x: axis("operations a byte", { type: "logarithmic", tick: logTick(digits) }),
                     y: axis("operations a second", { type: "logarithmic", tick: logTick(flopRate) }) },
           tooltip: (item) => item.raw.name ? `${item.raw.name}: ${flopRate(item.raw.y)}` : item.dataset.label,
         })),
    tableBehind(`table-roofline-${m}`, "roofline, " + title,
                [["kernel", false], ["operations a byte", true], ["speed", true], ["of its limit", true]],
                () => rows.map((p) => [p.name, digits(p.x), flopRate(p.y), percent(share(p))])),
  ];
}

function rooflineSection(data) {
  const list = rooflines(data);
  if (list.length === 0) return [paragraph("No kernel with known operations, bytes and time.", true)];
  return [...list.flatMap(rooflineOf),
          paragraph("Bytes: each tensor of a kernel once. The peak is that of f32 vectors at the device's base clock: " +
                    "faster clocks, bytes, short floats and Winograd's sums can be above it, and kernels whose data " +
                    "are in caches above the line of the memory.", true)];
}
