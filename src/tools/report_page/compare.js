// Two runs side by side: of two reports, of two setups, or of two periods in which a database grew.
const kMostCompared = 24;

// Every run on the page: {label, data, setup, run}; run is null for all records of the setup, else the number of pauses before it.
function runsOf(data) {
  const runs = [];
  const shortTitle = (report) => report.title.replace(/^Tensorsmith: /, "");
  for (const report of [data, data.beside].filter((one) => one)) {
    report.setups.forEach((_, setup) => {
      const measured = new Set(report.tasks.filter((task) => task.setup === setup).flatMap((task) => task.records.run));
      if (measured.size === 0) return;
      const parts = data.beside ? [shortTitle(report) + (report === data.beside && report.title === data.title ? " (beside)" : "")] : [];
      if (report.setups.length > 1 || !data.beside) parts.push(setupName(report, setup));
      const label = parts.join(", ");
      runs.push({ label, data: report, setup, run: null });
      if (measured.size > 1)
        [...measured].sort((a, b) => a - b).forEach((run, i) =>
          runs.push({ label: `${label}, run ${i + 1} of ${measured.size}`, data: report, setup, run }));
    });
  }
  return runs;
}

// Summarizes the tasks of a run: key -> {name, calls, untuned, best, programs, failed, steps, loops}.
function resultsOf(run) {
  const { data } = run;
  const mine = (task, r) => run.run === null || task.records.run[r] === run.run;
  const tasks = [...data.tasks.keys()].filter((t) => data.tasks[t].setup === run.setup);
  const begin = tasks.reduce((first, t) => data.tasks[t].records.at.reduce(
    (least, at, r) => (mine(data.tasks[t], r) ? Math.min(least, at) : least), first), Infinity);
  const results = new Map();
  for (const t of tasks) {
    const task = data.tasks[t], { at, seconds: taken, implausible } = task.records, ignored = new Set(implausible);
    const calls = data.models.reduce((sum, model) => sum + model.tasks.reduce((a, part) => a + (part.task === t ? part.calls : 0), 0), 0);
    const result = { name: task.name, calls: calls || 1, untuned: task.untuned_seconds, best: null, programs: 0, failed: 0, steps: [],
                     loops: task.loops };
    for (const r of [...at.keys()].filter((r) => mine(task, r)).sort((a, b) => at[a] - at[b] || a - b)) {
      ++result.programs;
      if (!isKnown(taken[r])) ++result.failed;
      if (!isKnown(taken[r]) || ignored.has(r) || (result.best !== null && taken[r] >= result.best)) continue;
      result.best = taken[r];
      result.steps.push({ x: at[r] - begin, y: taken[r] });
    }
    if (result.best !== task.best_seconds) result.loops = "";
    if (result.best !== null) results.set(task.key, result);
  }
  return results;
}

// Returns the sum over tasks of calls * fastest so far; a task counts with its first time until it has another.
function sumCurve(rows, which) {
  const events = rows.flatMap((row, k) => row[which].steps.map((step) => ({ ...step, k }))).sort((a, b) => a.x - b.x);
  const now = rows.map((row) => (isKnown(row[which].untuned) ? Math.max(row[which].untuned, row[which].steps[0].y) : row[which].steps[0].y));
  let sum = now.reduce((total, value, k) => total + rows[k].calls * value, 0);
  const points = [{ x: 0, y: sum }];
  for (const event of events) {
    if (event.y >= now[event.k]) continue;
    sum -= rows[event.k].calls * (now[event.k] - event.y);
    now[event.k] = event.y;
    points.push({ x: event.x, y: sum });
  }
  return points;
}

function compareRuns(a, b) {
  const first = resultsOf(a), second = resultsOf(b);
  const rows = [...first.keys()].filter((key) => second.has(key)).map((key) => {
    const [one, other] = [first.get(key), second.get(key)];
    return { key, name: one.name, calls: Math.max(one.calls, other.calls), a: one, b: other };
  }).sort((x, y) => y.calls * Math.max(y.a.best, y.b.best) - x.calls * Math.max(x.a.best, x.b.best));
  if (rows.length === 0) return [paragraph("The two runs have no task in common.")];
  const sum = (which) => rows.reduce((total, row) => total + row.calls * row[which].best, 0);
  const alone = first.size + second.size - 2 * rows.length;
  const out = [figures([["A: sum of the tasks", seconds(sum("a"))], ["B: sum of the tasks", seconds(sum("b"))],
                        ["speed of B over that of A", times(sum("a"), sum("b")), "strong"],
                        ["programs measured", `${rows.reduce((n, row) => n + row.a.programs, 0)} and ` +
                                              rows.reduce((n, row) => n + row.b.programs, 0)]])];
  if (alone > 0)
    out.push(paragraph(`${rows.length} tasks are in both runs and are compared; ${alone} are in only one of them.`, true));
  const curves = [sumCurve(rows, "a"), sumCurve(rows, "b")];
  const end = Math.max(...curves.flat().map((p) => p.x));
  for (const curve of curves) curve.push({ x: end, y: curve[curve.length - 1].y });
  out.push(plot("plot-compare-curve", "Best so far of both runs",
                `A: ${a.label}, from ${seconds(curves[0][0].y)} to ${seconds(sum("a"))}; B: ${b.label}, from ` +
                `${seconds(curves[1][0].y)} to ${seconds(sum("b"))}.`, 280, (colours) => ({
                  type: "line",
                  datasets: [line("A: " + a.label, colours.lines[0], curves[0], { stepped: "before" }),
                             line("B: " + b.label, colours.lines[1], curves[1], { stepped: "before", borderDash: [6, 3] })],
                  scales: { x: searchTimeAxis([end]), y: latencyAxis("sum of the tasks", curves.flat().map((p) => p.y)) },
                  tooltip: (item) => `${item.dataset.label}: ${seconds(item.raw.y)} after ${duration(item.raw.x)}`,
                }), { zoom: "xy", table: {
                  id: "table-compare-curve", caption: "best so far of both runs",
                  columns: [["run", asText], ["after", asDuration], ["time", asSeconds]],
                  rows: () => curves.flatMap((curve, c) => curve.map((p) => [c === 0 ? "A" : "B", p.x, p.y])) } }));
  const shown = rows.slice(0, kMostCompared);
  const labels = shortNames(shown.map((row, r) => row.name + (shown.findIndex((other) => other.name === row.name) < r ? " #" + r : "")), rowRoom());
  const columns = [["task", asText], ["calls", asCount], ["A: fastest", asSeconds], ["B: fastest", asSeconds], ["A over B", asFactor],
                   ["A: programs", asCount], ["B: programs", asCount]];
  const cells = () => rows.map((row) => [row.name, row.calls, row.a.best, row.b.best, ratioOf(row.a.best, row.b.best), row.a.programs,
                                         row.b.programs]);
  out.push(plot("plot-compare-tasks", "Time of each task's fastest program, all its calls",
                shown.slice(0, 5).map((row) => `${row.name}: A ${seconds(row.calls * row.a.best)}, B ${seconds(row.calls * row.b.best)}`)
                     .join("; ") + ".",
                84 + shown.length * 30, (colours) => ({
                  type: "bar", indexAxis: "y", labels,
                  datasets: [bars("A", colours.lines[0], shown.map((row) => row.calls * row.a.best)),
                             bars("B", colours.lines[1], shown.map((row) => row.calls * row.b.best))],
                  scales: { x: valueAxis("time of a run", kTimeUnits, shown.flatMap((row) => [row.calls * row.a.best, row.calls * row.b.best]),
                                         { zero: true }), y: nameAxis() },
                  tooltip: (item) => `${item.dataset.label}, ${shown[item.dataIndex].name}: ${seconds(item.raw)}`,
                }), { folded: false, table: { columns, rows: cells } }));
  out.push(table("table-compare", "Tasks of both runs; times of one call, each task measured alone", columns, cells()));
  const different = rows.filter((row) => row.a.loops && row.b.loops && row.a.loops !== row.b.loops);
  if (different.length > 0) out.push(element("h3", {}, "Tasks whose fastest schedules differ"));
  different.forEach((row, r) => out.push(foldedOut("beside-" + r, `${row.name}: ${seconds(row.a.best)} and ${seconds(row.b.best)}`, () =>
    element("div", { class: "pair" }, ...["a", "b"].map((which) =>
      element("pre", { tabindex: "0", role: "region", "aria-label": `Loops of ${row.name} in ${which.toUpperCase()}` }, row[which].loops))))));
  return out;
}

function compareSection(data, state) {
  const runs = runsOf(data);
  if (runs.length < 2)
    return [paragraph("This page shows one run. tensorsmith report DATABASE DIRECTORY --beside PAGE compares it with another one: " +
                      "PAGE is an earlier report page or a database.", true)];
  const place = element("div");
  const other = runs.findIndex((run) => run.data !== runs[0].data);
  const chosen = state.compared && state.compared.every((c) => c < runs.length) ? state.compared
                   : [0, other > 0 ? other : runs.length === 2 ? 1 : runs.length - 1];
  const show = () => {
    state.compared = chosen;
    place.replaceChildren(...compareRuns(runs[chosen[0]], runs[chosen[1]]));
    drawNew();
  };
  const names = runs.map((run) => run.label);
  const select = (which) => choice("choose-run-" + "ab"[which], "AB"[which] + ":", names, chosen[which], (run) => {
    chosen[which] = run;
    show();
  });
  show();
  return [element("div", { class: "choices" }, select(0), select(1)), place];
}
