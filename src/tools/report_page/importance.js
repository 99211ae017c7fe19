// How much of the variation of the measured times each decision of the search explains.
const kMostDecisions = 20;

const kRoleNames = {
  structure: "structure of the program", tile: "tile lengths", unroll: "unrolling", location: "where a stage is computed",
  parallel: "parallel loops", vectorize: "vector loops", layout: "layout of packed data", tail: "handling of remainders",
  cache_write: "write buffer",
};
const roleName = (role) => kRoleNames[role] || role;

// The values of a decision are listed only if it explains more than chance.
const isAboveChance = (decision) => decision.values.length > 0;

// {role, share} over all tasks: for each task the decision of the role that explains most, weighted by the task's time.
function importanceOfRoles(data, tasks) {
  const total = tasks.reduce((sum, t) => sum + weightOf(data, t), 0);
  const sums = new Map();
  for (const t of tasks) {
    const most = new Map();
    for (const decision of data.tasks[t].importance.decisions)
      if (isAboveChance(decision)) most.set(decision.role, Math.max(most.get(decision.role) || 0, decision.share));
    for (const [role, share] of most) sums.set(role, (sums.get(role) || 0) + share * weightOf(data, t) / total);
  }
  return [...sums].map(([role, share]) => ({ role, share })).sort((a, b) => b.share - a.share);
}

function importanceOverview(data, tasks) {
  const rows = importanceOfRoles(data, tasks);
  if (rows.length === 0) return [paragraph("No decision explains more of the spread of times than chance would.")];
  const labels = shortNames(rows.map((row) => roleName(row.role)), rowRoom());
  return [plot("plot-importance", "Share of the spread of times that kinds of decisions explain",
               rows.slice(0, 5).map((row) => `${roleName(row.role)}: ${percent(row.share)}`).join("; ") + ".",
               70 + rows.length * 30, (colours) => ({
                 type: "bar", indexAxis: "y", labels,
                 datasets: [bars("share", colours.lines[0], rows.map((row) => row.share))],
                 scales: { x: valueAxis("share of the spread", [[.01, "%"]], rows.map((row) => row.share), { zero: true }), y: nameAxis() },
                 tooltip: (item) => `${roleName(rows[item.dataIndex].role)}: ${percent(item.raw)}`,
               }), { table: {
                 id: "table-importance-roles", caption: "importance of kinds of decisions",
                 columns: [["kind of decision", asText], ["share of the spread", asPercent]],
                 rows: () => rows.map((row) => [roleName(row.role), row.share]) } })];
}

function importanceOfTask(data, t) {
  const { programs, decisions } = data.tasks[t].importance;
  const shown = decisions.slice(0, kMostDecisions);
  const labels = shortNames(shown.map((decision) => decision.name), rowRoom());
  const strongest = decisions.filter(isAboveChance);
  const valueRows = () => strongest.flatMap((decision) =>
    decision.values.map(([value, count, fastest, median]) => [decision.name, String(value), count, fastest, median]));
  return [
    plot("plot-importance", "Share of the spread of times that each decision explains: " + taskLabel(data, t),
         `${programs} programs; ` + (strongest.length === 0 ? "no decision explains more than chance would."
           : strongest.slice(0, 5).map((decision) => `${decision.name}: ${percent(decision.share)}`).join("; ") + "."),
         84 + shown.length * 24, (colours) => ({
           type: "bar", indexAxis: "y", labels,
           datasets: [
             bars("explained", colours.lines[0], shown.map((decision) => Math.max(decision.share, 0)),
                  { backgroundColor: shown.map((decision) => (isAboveChance(decision) ? colours.lines[0] : faded(colours.lines[0], .35))),
                    borderColor: colours.lines[0], grouped: false, barPercentage: .7, order: 2 }),
             { type: "scatter", label: "exceeded by chance in one of twenty cases", borderColor: colours.lines[1],
               backgroundColor: colours.lines[1], pointStyle: "line", rotation: 90, pointRadius: 7, borderWidth: 2, order: 1,
               data: shown.map((decision, d) => ({ x: Math.max(decision.chance, 0), y: labels[d] })) },
           ],
           scales: { x: valueAxis("share of the spread", [[.01, "%"]], shown.flatMap((d) => [d.share, d.chance]), { zero: true }),
                     y: nameAxis({ type: "category", labels }) },
           tooltip: (item) => `${shown[item.dataIndex].name}: ${percent(shown[item.dataIndex].share)}, by chance up to ` +
                              percent(shown[item.dataIndex].chance),
         }), { table: {
           id: "table-importance", caption: "importance of each decision",
           columns: [["decision", asText], ["kind", asText], ["share of the spread", asPercent], ["by chance up to", asPercent],
                     ["more than chance", asText]],
           rows: () => decisions.map((d) => [d.name, roleName(d.role), d.share, d.chance, isAboveChance(d) ? "yes" : "no"]) } }),
    strongest.length === 0 ? null
      : tableBehind("table-importance-values", "times by the value of a decision",
                    [["decision", asText], ["value", asText], ["programs", asCount], ["fastest", asSeconds], ["median", asSeconds]],
                    valueRows),
  ].filter((part) => part !== null);
}

function importanceSection(data, state) {
  const tasks = heaviestFirst(data).filter((t) => data.tasks[t].importance);
  if (tasks.length === 0)
    return [paragraph(data.live && data.live.running ? "Shown when the search has ended."
                        : "No task has enough measured programs whose decisions are known.", true)];
  const place = element("div");
  const keyOf = (t) => data.tasks[t].key + "/" + data.tasks[t].setup;
  const show = (chosen) => {
    state.importance = chosen === 0 ? null : keyOf(tasks[chosen - 1]);
    place.replaceChildren(...(chosen === 0 ? importanceOverview(data, tasks) : importanceOfTask(data, tasks[chosen - 1])));
    drawNew();
  };
  const kept = tasks.findIndex((t) => keyOf(t) === state.importance) + 1;
  const names = ["all tasks, by kind of decision", ...tasks.map((t) => taskLabel(data, t))];
  show(kept);
  return [
    paragraph("A decision is important if programs that differ in it also differ in their times. The share is the part of the variance " +
              "of the logarithms of the times that the decision explains, minus what chance explains. A search measures mostly " +
              "programs that it expects to be fast, so an important decision that it settled early can have a small share.", true),
    choice("choose-importance", "Decisions of:", names, kept, show), place,
  ];
}
