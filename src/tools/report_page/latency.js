// The gain of tuning: before and after, and in comparison with other engines.
function nameOf(model) {
  return model.name || model.directory;
}

function setupName(data, s) {
  const setup = data.setups[s];
  const threads = setup.threads + (setup.threads === 1 ? " thread" : " threads");
  return `${setup.description || setup.device}, ${threads}${setup.cold_caches ? ", cold caches" : ""}`;
}

const asSpeedup = { show: ratioText, unit: "" };

function latencySection(data) {
  const rows = gains(data);
  const known = rows.filter((row) => isKnown(row.before) || isKnown(row.after) || isKnown(row.now));
  const out = [];
  if (known.length === 0) out.push(paragraph("No latency is known yet."));
  if (known.length > 0) {
    const estimates = known.every((row) => row.word === "estimate"), gained = known.some((row) => isKnown(row.ratio));
    const title = estimates ? "Sum of the tasks' times before and after tuning"
                            : gained ? "Latency before and after tuning" : "Latency of the compiled model";
    const kinds = [["untuned", "before", 5], ["tuned", "after", 0], ["compiled model, timed for this page", "now", 2]];
    const used = kinds.filter(([, key]) => known.some((row) => isKnown(row[key])));
    const labels = shortNames(known.map((row) => row.name), rowRoom());
    const columns = [["model", asText], ["untuned", asSeconds], ["tuned", asSeconds], ["speed-up", asSpeedup], ["how", asText]];
    const cells = () => known.map((row) => [row.name, row.before, row.after, row.word === "speed-up" ? row.ratio : gainText(row),
                                            isKnown(row.now) ? `${seconds(row.now)}, ${row.how}` : row.how]);
    out.push(...warnings(known));
    out.push(plot("plot-latency", title,
                  known.map((row) => `${row.name}: ` + (isKnown(row.now) ? `${seconds(row.now)}, ${row.how}`
                                                        : `${seconds(row.before)} untuned, ${seconds(row.after)} tuned`)).join("; ") + ".",
                  70 + known.length * (used.length * 24 + 16), (colours) => ({
                    type: "bar", indexAxis: "y", labels,
                    datasets: used.map(([label, key, c]) => bars(label, colours.lines[c], known.map((row) => row[key]))),
                    scales: { x: valueAxis(estimates ? "sum of the tasks' times" : "time of a run", kTimeUnits,
                                           used.flatMap(([, key]) => known.map((row) => row[key])), { zero: true }),
                              y: nameAxis() },
                    tooltip: (item) => `${known[item.dataIndex].name}, ${item.dataset.label}: ${seconds(item.raw)}`,
                  }), { folded: false, table: { columns, rows: cells } }));
    out.push(table("table-latency", "Time of a run of each model", columns, cells()));
    if (gained && data.models.some((model) => model.run_seconds.length > 0))
      out.push(paragraph("The section One run shows later runs, which were made for this page; their times can differ.", true));
  }
  out.push(element("h3", {}, "Beside other engines"));
  if (data.peers.length === 0) {
    out.push(paragraph("Not measured. python -m tensorsmith.peers --json compares other engines with a compiled model; " +
                       "tensorsmith report --peers FILE shows the result here.", true));
    return out;
  }
  const label = (peer) => `${peer.model}, ${peer.threads} thread${peer.threads === 1 ? "" : "s"}, ${peer.peer}`;
  const columns = [["model", asText], ["threads", asCount], ["engine", asText], ["Tensorsmith", asSeconds],
                   ["time of the engine", asSeconds], ["ratio", asNumber], ["10th percentile", asNumber], ["90th percentile", asNumber]];
  const peerRows = () => data.peers.map((peer) => [peer.model, peer.threads, peer.peer, peer.seconds, peer.peer_seconds, peer.ratio,
                                                   peer.low, peer.high]);
  const labels = shortNames(data.peers.map(label), rowRoom());
  out.push(plot("plot-peers", "Time of other engines divided by Tensorsmith's",
                data.peers.map((peer) => `${label(peer)}: ${digits(peer.ratio)}`).join("; ") + ". Above 1: Tensorsmith is faster.",
                60 + data.peers.length * 28, (colours) => ({
                  type: "bar", indexAxis: "y", labels,
                  datasets: [bars("ratio", colours.lines[0], data.peers.map((peer) => peer.ratio))],
                  scales: { x: valueAxis("their time / Tensorsmith's time", kNoUnits, data.peers.map((peer) => peer.ratio), { zero: true }),
                            y: nameAxis() },
                  tooltip: (item) => `${label(data.peers[item.dataIndex])}: ${digits(item.raw)}`,
                  plugins: [markAt(1, colours.text)],
                }), { folded: false, table: { columns, rows: peerRows } }));
  out.push(table("table-peers", "Times beside other engines", columns, peerRows()));
  return out;
}
