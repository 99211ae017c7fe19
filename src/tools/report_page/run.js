// Where the time of a run goes: a timeline, a bar per kernel, and how far each is from the device's limits.
const kMostRows = 24;

// Most letters of a name beside a bar.
const rowRoom = () => (innerWidth < 600 ? 18 : 34);

// Kernels by task, the longest first.
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
  if (total === 0) return [...out, paragraph("The times of its kernels are not known: " + (model.not_run_because || "it has no kernels") + ".")];
  out.push(paragraph(
    ran ? `The run at the lower quartile of ${model.run_seconds.length} runs took ${seconds(model.kernels_run_seconds)}, of which ` +
            `${seconds(Math.max(model.kernels_run_seconds - total, 0))} lie between the kernels.`
        : `The model was not run (${model.not_run_because}). The times are those of each kernel measured alone, drawn one after the other.`, true));
  const rows = shownRows(model.kernels);
  const share = (row) => row.seconds / total;
  const labels = shortNames(rows.map((row, r) => row.name + (rows.findIndex((other) => other.name === row.name) < r ? " #" + r : "")), rowRoom());
  const spans = rows.flatMap((row, r) => row.kernels.map((kernel) => ({
    x: [kernel.begin_seconds, kernel.begin_seconds + kernel.seconds], y: labels[r], row,
  })));
  const height = 76 + rows.length * 22;
  out.push(plot(`plot-timeline-${m}`, "Timeline of one run",
                `${model.kernels.length} calls one after the other; the longest kernels: ` +
                rows.slice(0, 3).map((row) => `${row.name}, ${percent(share(row))}`).join("; ") + ".",
                height, (colours) => ({
                  type: "bar", indexAxis: "y", labels,
                  datasets: [bars("calls", colours.lines[0], spans, { borderWidth: 1, barPercentage: .7, grouped: false, borderRadius: 2 })],
                  scales: { x: valueAxis("time since the run began", kTimeUnits, spans.map((span) => span.x[1]), { zero: true }),
                            y: nameAxis({ type: "category", labels, grid: { color: colours.grid } }) },
                  tooltip: (item) => `${item.raw.row.name}: ${seconds(item.raw.x[1] - item.raw.x[0])} at ${seconds(item.raw.x[0])}`,
                }), { zoom: "x", table: {
                  id: `table-timeline-${m}`, caption: `calls of ${nameOf(model)} in their order`,
                  columns: [["number", asCount], ["kernel", asText], ["begins", asSeconds], ["takes", asSeconds]],
                  rows: () => model.kernels.map((kernel, c) => [c + 1, kernel.task, kernel.begin_seconds, kernel.seconds]) } }));
  out.push(plot(`plot-kernels-${m}`, "Time of each kernel, all its calls",
                rows.slice(0, 5).map((row) => `${row.name}: ${seconds(row.seconds)}`).join("; ") + ".",
                height, (colours) => ({
                  type: "bar", indexAxis: "y", labels,
                  datasets: [bars("time", colours.lines[0], rows.map((row) => row.seconds), { barPercentage: .75 })],
                  scales: { x: valueAxis("time of a run", kTimeUnits, rows.map((row) => row.seconds), { zero: true }), y: nameAxis() },
                  tooltip: (item) => `${rows[item.dataIndex].name}: ${seconds(rows[item.dataIndex].seconds)}, ` +
                                     percent(share(rows[item.dataIndex])),
                }), { table: {
                  id: `table-kernels-${m}`, caption: `kernels of ${nameOf(model)}`,
                  columns: [["kernel", asText], ["calls", asCount], ["time", asSeconds], ["share", asPercent], ["speed", asFlopRate],
                            ["bytes of its tensors", asBytes]],
                  rows: () => byTask(model.kernels).map((row) => [row.name, row.calls, row.seconds, share(row),
                                                                  row.flops > 0 ? row.flops / row.seconds : "no arithmetic", row.bytes]) } }));
  return out;
}

function runSection(data) {
  if (data.models.length === 0)
    return [paragraph("No compiled model is part of this report. tensorsmith report DATABASE DIRECTORY runs one and shows it here.", true)];
  return data.models.flatMap((model, m) => runOf(model, m));
}
