// Course of the search: the best so far over time, for models and for tasks.
const kMostCurves = 7;

// The steps of one task: [time, fastest so far].
function stepsOf(task) {
  const { at, seconds: taken, implausible } = task.records;
  const ignored = new Set(implausible);
  const order = [...at.keys()].sort((a, b) => at[a] - at[b] || a - b);
  const steps = [];
  let best = Infinity;
  for (const r of order) {
    if (!isKnown(taken[r]) || ignored.has(r) || taken[r] >= best) continue;
    best = taken[r];
    steps.push({ x: at[r], y: best, record: r });
  }
  return steps;
}

const lastMoment = (data) => data.tasks.reduce((most, task) => task.records.at.reduce((a, b) => Math.max(a, b), most), 0);

function curves(data) {
  const points = (curve) => curve.at.map((x, i) => ({ x, y: curve.seconds[i] }));
  const list = data.models.filter((model) => model.best_so_far.at.length > 0)
                   .map((model) => ({ name: nameOf(model), points: points(model.best_so_far) }));
  if (list.length > 0) return list;
  return data.best_so_far.map((curve, s) => ({ name: "all tasks, " + setupName(data, s), points: points(curve) }))
             .filter((curve) => curve.points.length > 0);
}

// Weight of a task in the search, the seconds of all its calls; the heaviest task is shown first.
function weightOf(data, t) {
  const task = data.tasks[t];
  const calls = data.models.reduce(
    (sum, model) => sum + model.tasks.reduce((a, part) => a + (part.task === t ? part.calls : 0), 0), 0);
  return (calls || 1) * (isKnown(task.best_seconds) ? task.best_seconds : 0);
}

const heaviestFirst = (data) =>
  data.tasks.map((_, t) => t).sort((a, b) => weightOf(data, b) - weightOf(data, a) || a - b);

const taskLabel = (data, t) =>
  data.tasks[t].name + (data.setups.length > 1 ? ", " + setupName(data, data.tasks[t].setup) : "");

const searchTimeAxis = (moments) => valueAxis("time of the search", kDurationUnits, moments, { zero: true });
const latencyAxis = (title, values, options) => valueAxis(title, kTimeUnits, values, options);

function modelCurves(data) {
  const shown = curves(data).slice(0, kMostCurves);
  if (shown.length === 0) return [paragraph("No program ran yet.")];
  const points = shown.flatMap((curve) => curve.points);
  return [
    plot("plot-model-curve", "Best so far: the whole model",
         shown.map((curve) => `${curve.name}: from ${seconds(curve.points[0].y)} to ` +
                              seconds(curve.points[curve.points.length - 1].y)).join("; ") + ".",
         280, (colours) => ({
           type: "line",
           datasets: shown.map((curve, i) => line(curve.name, colours.lines[i], curve.points, {
             stepped: "before", ...(shown.length === 1 ? { fill: "start", backgroundColor: faded(colours.lines[i], .1) } : {}) })),
           scales: { x: searchTimeAxis(points.map((p) => p.x)), y: latencyAxis("sum of the kernels", points.map((p) => p.y)) },
           tooltip: (item) => `${item.dataset.label}: ${seconds(item.raw.y)} after ${duration(item.raw.x)}`,
         }), { zoom: "xy", table: {
           id: "table-model-curve", caption: "best so far of the whole model",
           columns: [["of", asText], ["after", asDuration], ["time", asSeconds]],
           rows: () => shown.flatMap((curve) => curve.points.map((p) => [curve.name, p.x, p.y])) } }),
  ];
}

function relativeCurves(data, order) {
  const shown = order.filter((t) => isKnown(data.tasks[t].best_seconds)).slice(0, kMostCurves);
  const end = lastMoment(data);
  const of = (t) => {
    const steps = stepsOf(data.tasks[t]);
    const start = isKnown(data.tasks[t].untuned_seconds) ? data.tasks[t].untuned_seconds : steps[0].y;
    const points = [{ x: 0, y: 1 }];
    for (const step of steps) if (step.y < start) points.push({ x: step.x, y: start / step.y });
    return [...points, { x: end, y: points[points.length - 1].y }];
  };
  const all = shown.map(of);
  return [plot("plot-task-curve", `Best so far: speed-up of the ${shown.length} tasks that take longest`,
               shown.map((t) => `${taskLabel(data, t)}: ${times(data.tasks[t].untuned_seconds, data.tasks[t].best_seconds)}`)
                    .join("; ") + ".",
               320, (colours) => ({
                 type: "line",
                 datasets: shown.map((t, i) => line(shortNames(shown.map((u) => taskLabel(data, u)), 48)[i], colours.lines[i], all[i],
                                                    { stepped: "before", borderDash: i % 2 ? [6, 3] : [] })),
                 scales: { x: searchTimeAxis([end]),
                           y: valueAxis("times as fast as untuned", [[1, "×"]], all.flat().map((p) => p.y)) },
                 tooltip: (item) => `${item.dataset.label}: ${digits(item.raw.y)}× after ${duration(item.raw.x)}`,
               }), { zoom: "xy", table: {
                 id: "table-task-curve", caption: "speed-up of the tasks that take longest",
                 columns: [["task", asText], ["after", asDuration], ["times as fast as untuned", asFactor]],
                 rows: () => shown.flatMap((t, i) => all[i].map((p) => [taskLabel(data, t), p.x, p.y])) } })];
}

function oneTaskCurve(data, t) {
  const task = data.tasks[t], steps = stepsOf(task), records = task.records;
  const ignored = new Set(records.implausible);
  const measured = [];
  for (let r = 0; r < records.at.length; ++r)
    if (isKnown(records.seconds[r]) && !ignored.has(r)) measured.push({ x: records.at[r], y: records.seconds[r], record: r });
  const end = records.at.reduce((a, b) => Math.max(a, b), 0);
  const best = steps.length > 0 ? [...steps, { x: end, y: steps[steps.length - 1].y }] : [];
  return [
    plot("plot-task-curve", "Best so far: " + taskLabel(data, t),
         `${records.at.length} programs measured, ${records.at.length - measured.length} of them failed; ` +
         `untuned ${seconds(task.untuned_seconds)}, best ${seconds(task.best_seconds)}.`,
         320, (colours) => ({
           type: "scatter",
           datasets: [line("best so far", colours.lines[0], best, { stepped: "before" }),
                      dots("measured programs", colours.lines[1], measured, { pointRadius: 2.5, backgroundColor: faded(colours.lines[1], .6) })],
           scales: { x: searchTimeAxis([end]), y: latencyAxis("time of a call", measured.map((p) => p.y)) },
           tooltip: (item) => `${seconds(item.raw.y)} after ${duration(item.raw.x)}`,
         }), { zoom: "xy", table: {
           id: "table-task-records", caption: "all measured programs of the task",
           columns: [["number", asCount], ["after", asDuration], ["time", asSeconds], ["outcome", asText], ["why it was measured", asText]],
           rows: () => records.at.map((at, r) => [r + 1, at, records.seconds[r], data.outcomes[records.outcome[r]],
                                                  data.reasons[records.reason[r]]]) } }),
  ];
}

function searchSection(data, state) {
  const order = heaviestFirst(data);
  const out = [...modelCurves(data)];
  if (data.tasks.length === 0) return out;
  const place = element("div");
  const names = ["the tasks that take longest", ...order.map((t) => taskLabel(data, t))];
  const show = (chosen) => {
    state.task = chosen === 0 ? null : data.tasks[order[chosen - 1]].key + "/" + data.tasks[order[chosen - 1]].setup;
    place.replaceChildren(...(chosen === 0 ? relativeCurves(data, order) : oneTaskCurve(data, order[chosen - 1])));
    drawNew();
  };
  const kept = order.findIndex((t) => data.tasks[t].key + "/" + data.tasks[t].setup === state.task);
  out.push(choice("choose-task", "Tasks: ", names, kept + 1, show), place);
  show(kept + 1);
  return out;
}
