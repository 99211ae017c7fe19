// What was gained: before and after, and beside other engines.
function nameOf(model) {
  return model.name || model.directory;
}

function setupName(data, s) {
  const setup = data.setups[s];
  const threads = setup.threads + (setup.threads === 1 ? " thread" : " threads");
  return `${setup.description || setup.device}, ${threads}${setup.cold_caches ? ", cold caches" : ""}`;
}

function latencySection(data) {
  const rows = gains(data);
  const known = rows.filter((row) => isKnown(row.before) || isKnown(row.after) || isKnown(row.now));
  const out = [];
  if (known.length === 0) out.push(paragraph("No latency is known yet."));
  if (known.length > 0) {
    const estimates = known.every((row) => row.word === "estimate"), gained = known.some((row) => isKnown(row.ratio));
    const title = estimates ? "Sum of the tasks' times before and after tuning"
                            : gained ? "Latency before and after tuning" : "Latency of the compiled model";
    const bars = [["untuned", "before", 5], ["tuned", "after", 0], ["compiled model, timed for this page", "now", 2]];
    const used = bars.filter(([, key]) => known.some((row) => isKnown(row[key])));
    out.push(...warnings(known));
    out.push(plot("plot-latency", title,
                  known.map((row) => `${row.name}: ` + (isKnown(row.now) ? `${seconds(row.now)}, ${row.how}`
                                                        : `${seconds(row.before)} untuned, ${seconds(row.after)} tuned`)).join("; ") + ".",
                  60 + known.length * used.length * 34, (colours) => ({
                    type: "bar", indexAxis: "y", labels: known.map((row) => short(row.name, rowRoom())),
                    datasets: used.map(([label, key, c]) => ({ label, data: known.map((row) => row[key]),
                                                               backgroundColor: colours.lines[c], borderColor: colours.lines[c] })),
                    scales: { x: axis(estimates ? "sum of the tasks' times" : "time of a run", { beginAtZero: true, tick: (value) => seconds(value) }), y: axis("") },
                    tooltip: (item) => `${known[item.dataIndex].name}, ${item.dataset.label}: ${seconds(item.raw)}`,
                  })));
    out.push(table("Time of a run of each model", [["model", false], ["untuned", true], ["tuned", true], ["speed-up", true],
                               ["how", false]],
                   known.map((row) => [row.name, seconds(row.before), seconds(row.after), gainText(row),
                                       isKnown(row.now) ? `${seconds(row.now)}, ${row.how}` : row.how])));
    if (gained && data.models.some((model) => model.run_seconds.length > 0))
      out.push(paragraph("The section One run shows other runs, which were made for this page at another time; their times can differ.", true));
  }
  out.push(element("h3", {}, "Beside other engines"));
  if (data.peers.length === 0) {
    out.push(paragraph("Not measured. bench/peers/models.py --json times other engines beside a compiled model; " +
                       "tensorsmith report --peers FILE shows it here.", true));
    return out;
  }
  const label = (peer) => `${peer.model}, ${peer.threads} thread${peer.threads === 1 ? "" : "s"}, ${peer.peer}`;
  out.push(plot("plot-peers", "Time of other engines over ours",
                data.peers.map((peer) => `${label(peer)}: ${digits(peer.ratio)}`).join("; ") + ". Above 1: Tensorsmith is faster.",
                60 + data.peers.length * 26, (colours) => ({
                  type: "bar", indexAxis: "y", labels: data.peers.map((peer) => short(label(peer), rowRoom() + 6)),
                  datasets: [{ label: "ratio", data: data.peers.map((peer) => peer.ratio), backgroundColor: colours.lines[0],
                               borderColor: colours.lines[0] }],
                  scales: { x: axis("above 1: Tensorsmith is faster", { beginAtZero: true }), y: axis("") },
                  tooltip: (item) => `${label(data.peers[item.dataIndex])}: ${digits(item.raw)}`,
                })));
  out.push(table("Times beside other engines", [["model", false], ["threads", true], ["engine", false], ["Tensorsmith", true],
                                          ["engine's time", true], ["ratio", true], ["10 to 90 %", true]],
                 data.peers.map((peer) => [peer.model, String(peer.threads), peer.peer, seconds(peer.seconds),
                                           seconds(peer.peer_seconds), digits(peer.ratio),
                                           `${digits(peer.low)} to ${digits(peer.high)}`])));
  return out;
}
