// Predictions, tasks with their schedules, failures, and how to reproduce the run.
function predictionSection(data) {
  if (data.predictions.length === 0)
    return [paragraph(data.predictor ? `${data.predictor} predicted none of these programs.`
                                     : "No cost model was used. tensorsmith report --cost-model FILE shows the predictions of one.", true)];
  const points = data.predictions.map((p) => ({
    x: data.tasks[p.task].records.seconds[p.record], y: p.seconds, low: p.low_seconds, high: p.high_seconds, task: p.task,
  }));
  const inside = points.filter((p) => isKnown(p.low) && p.x >= p.low && p.x <= p.high).length;
  const withInterval = points.filter((p) => isKnown(p.low)).length;
  const errors = points.map((p) => Math.abs(p.y / p.x - 1));
  const all = points.flatMap((p) => [p.x, p.y]);
  const ends = [Math.min(...all) / 1.5, Math.max(...all) * 1.5];
  const intervals = points.flatMap((p) => (isKnown(p.low) ? [{ x: p.x, y: p.low }, { x: p.x, y: p.high }, { x: p.x, y: NaN }] : []));
  const summary = `${points.length} programs; the median error is ${percent(quantile(errors, .5))}` +
    (withInterval > 0 ? `; ${percent(inside / withInterval)} of the measured times are within their predicted 90 % intervals` : "") + ".";
  return [
    paragraph(`Predicted by ${data.predictor}. ${summary}`),
    plot("plot-predictions", "Predicted against measured", summary, 400, (colours) => ({
      type: "scatter",
      datasets: [dots("programs", colours.lines[0], points, { pointRadius: 3.5, backgroundColor: faded(colours.lines[0], .65) }),
                 line("interval of 90 %", faded(colours.lines[5], .5), intervals, { borderWidth: 1, spanGaps: false, pointHitRadius: 0 }),
                 line("as measured", colours.lines[1], ends.map((v) => ({ x: v, y: v })), { borderDash: [6, 3], pointHitRadius: 0 })],
      scales: { x: latencyAxis("measured", ends, { log: true }),
                y: latencyAxis("predicted", [...ends, ...points.flatMap((p) => (isKnown(p.low) ? [p.low, p.high] : []))], { log: true }) },
      tooltip: (item) => item.raw.task === undefined ? item.dataset.label
                 : `${data.tasks[item.raw.task].name}: ${seconds(item.raw.y)}, measured ${seconds(item.raw.x)}`,
    }), { zoom: "xy", table: {
      id: "table-predictions", caption: "predicted against measured",
      columns: [["task", asText], ["measured", asSeconds], ["predicted", asSeconds], ["predicted over measured", asFactor],
                ["interval of 90 %, from", asSeconds], ["to", asSeconds]],
      rows: () => points.map((p) => [taskLabel(data, p.task), p.x, p.y, ratioOf(p.y, p.x), p.low, p.high]) } }),
  ];
}

// Adds the strategy that proposed the program if there are several, and how far other programs used the machine if that
// makes its time doubtful.
const chosenBecause = (data, task) => {
  if (task.best === null) return "no program ran";
  const why = data.reasons[task.records.reason[task.best]];
  const several = new Set(data.tasks.map((other) => other.strategy).filter((name) => name)).size > 1;
  const origin = several && task.strategy ? `${why} (${task.strategy})` : why;
  return isKnown(task.disturbance) ? `${origin}; others used ${percent(task.disturbance)} of the processors meanwhile` : origin;
};

const failuresOf = (task) => task.failures.reduce((sum, failure) => sum + failure.count, 0);

function tasksSection(data) {
  if (data.tasks.length === 0) return [paragraph("No records are part of this report.", true)];
  const order = heaviestFirst(data);
  const part = new Map();
  if (data.models.length === 1) for (const of of data.models[0].tasks) part.set(of.task, of);
  const calls = (t) => (part.has(t) ? part.get(t).calls : 1);
  const total = order.reduce((sum, t) => sum + calls(t) * (isKnown(data.tasks[t].best_seconds) ? data.tasks[t].best_seconds : 0), 0);
  const rows = order.map((t) => {
    const task = data.tasks[t];
    return [taskLabel(data, t), calls(t), isKnown(task.best_seconds) ? calls(t) * task.best_seconds / total : null,
            task.untuned_seconds, task.best_seconds, ratioOf(task.untuned_seconds, task.best_seconds),
            task.records.at.length, failuresOf(task), chosenBecause(data, task)];
  });
  const out = [table("table-tasks", "Tasks, the longest first; times of one call, each task measured alone",
                     [["task", asText], ["calls", asCount], ["share", asPercent], ["untuned", asSeconds], ["best", asSeconds],
                      ["speed-up", asFactor], ["programs", asCount], ["failed", asCount], ["origin of the best", asText]], rows)];
  const placed = [...part.values()].filter((of) => isKnown(of.tuned_in_model));
  if (placed.length > 0)
    out.push(tableBehind("table-in-model", "times of the tasks during a run of the model, all calls",
                         [["task", asText], ["calls", asCount], ["untuned", asSeconds], ["tuned", asSeconds], ["speed-up", asFactor]],
                         () => placed.map((of) => [taskLabel(data, of.task), of.calls, of.untuned_in_model,
                                                   of.kept_untuned ? "untuned, kept" : of.tuned_in_model,
                                                   of.kept_untuned ? "" : ratioOf(of.untuned_in_model, of.tuned_in_model)])));
  out.push(element("h3", {}, "Winning schedules"));
  for (const t of order) {
    const task = data.tasks[t];
    if (task.best === null) continue;
    out.push(foldedOut("schedule-" + t, `${taskLabel(data, t)}: ${seconds(task.best_seconds)}`, () => {
      const label = "Loops of " + taskLabel(data, t);
      return task.loops ? element("pre", { tabindex: "0", role: "region", "aria-label": label }, task.loops)
                        : paragraph("Its loops cannot be shown: " + task.no_loops_because);
    }));
  }
  return out;
}

function failureSection(data) {
  const rows = [];
  data.tasks.forEach((task, t) => task.failures.forEach((failure) => rows.push({ t, ...failure })));
  const measured = data.tasks.reduce((sum, task) => sum + task.records.at.length, 0);
  if (rows.length === 0) return [paragraph(`None of ${measured} measured programs failed.`)];
  rows.sort((a, b) => b.count - a.count);
  const outcomes = new Map();
  for (const row of rows) outcomes.set(row.outcome, (outcomes.get(row.outcome) || 0) + row.count);
  const kinds = [...outcomes].sort((a, b) => b[1] - a[1]);
  const failed = kinds.reduce((sum, kind) => sum + kind[1], 0);
  return [
    paragraph(`${failed} of ${measured} measured programs failed (${percent(failed / measured)}). A failure ends only the candidate, not the search.`),
    plot("plot-failures", "Failures by kind", kinds.map(([name, count]) => `${name}: ${count}`).join("; ") + ".", 70 + kinds.length * 32,
         (colours) => ({
           type: "bar", indexAxis: "y", labels: kinds.map(([name]) => name),
           datasets: [bars("programs", colours.lines[6], kinds.map(([, count]) => count))],
           scales: { x: valueAxis("programs", kNoUnits, kinds.map(([, count]) => count), { zero: true }), y: nameAxis() },
           tooltip: (item) => `${kinds[item.dataIndex][0]}: ${item.raw}`,
         }), { folded: false, table: { columns: [["kind", asText], ["programs", asCount]], rows: () => kinds } }),
    table("table-failures", "Failures by reason", [["reason", asText], ["kind", asText], ["programs", asCount], ["task", asText]],
          rows.map((row) => [row.reason || "none given", row.outcome, row.count, taskLabel(data, row.t)])),
  ];
}

function settingsSection(data) {
  const rows = [...data.settings];
  data.setups.forEach((setup, s) => rows.push(["measured on", `${setupName(data, s)} (key ${setup.device_key})`]));
  data.models.forEach((model) => rows.push([
    "compiled model", `${model.directory}: for ${model.device}, by Tensorsmith ${model.tool_version}` +
      (model.threads > 0 ? `, tuned for ${model.threads} thread${model.threads === 1 ? "" : "s"}` : ""),
  ]));
  const out = [table("table-settings", "What reproduces it", [["what", asText], ["value", asText]], rows)];
  if (data.notes.length > 0) out.push(element("ul", {}, ...data.notes.map((note) => element("li", {}, note))));
  return out;
}
