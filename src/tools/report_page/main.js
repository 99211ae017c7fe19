// The page: sections of the data, redrawn for other colours, for print, and during a run.
const kSections = [
  ["summary", "Summary", summarySection],
  ["latency", "Latency", latencySection],
  ["search", "Search", searchSection],
  ["decisions", "Decisions", importanceSection],
  ["compare", "Two runs", compareSection],
  ["run", "One run", runSection],
  ["roofline", "Roofline", rooflineSection],
  ["predictions", "Predictions", predictionSection],
  ["tasks", "Tasks and schedules", tasksSection],
  ["failures", "Failures", failureSection],
  ["settings", "Settings", settingsSection],
];
const kPollMilliseconds = 2000;

function summarySection(data) {
  const pairs = [], all = gains(data);
  for (const gain of all) {
    if (isKnown(gain.ratio))
      pairs.push([gain.name, `${seconds(gain.before)} → ${seconds(gain.after)}`], [gain.word, ratioText(gain.ratio), "strong"]);
    else if (isKnown(gain.now)) pairs.push([gain.name, seconds(gain.now)]);
  }
  const measured = data.tasks.reduce((sum, task) => sum + task.records.at.length, 0);
  const failed = data.tasks.reduce((sum, task) => sum + failuresOf(task), 0);
  if (data.tasks.length > 0)
    pairs.push(["tasks", String(data.tasks.length)], ["programs measured", String(measured)], ["failed", String(failed)],
               ["time of the search", duration(lastMoment(data))]);
  return [pairs.length > 0 ? figures(pairs) : paragraph("Nothing was measured yet."), ...warnings(all)];
}

// The line below the title: where and when.
function about(data) {
  const made = data.settings.find(([name]) => name === "made");
  const setups = data.setups.map((_, s) => setupName(data, s));
  return [...setups.slice(0, 3), ...(setups.length > 3 ? [`${setups.length - 3} other setups`] : []), ...(made ? [made[1]] : [])].join(" · ");
}

const state = {};  // the reader's choices, kept when the page is redrawn

function showLive(live) {
  const line = document.getElementById("live");
  line.hidden = !live;
  if (live && line.textContent !== live.state) line.textContent = live.state;
  showProgress(live);
}

function render(data) {
  const main = document.getElementById("main");
  const open = new Set([...main.querySelectorAll("details[open]")].map((details) => details.id));
  const scrolled = new Map([...main.querySelectorAll(".table[id] .scroll")].map((part) => [part.parentNode.id, [part.scrollLeft, part.scrollTop]]));
  const active = document.activeElement, focused = active ? active.id : "";
  const selection = active && active.type === "search" ? [active.selectionStart, active.selectionEnd] : null;
  document.title = data.title;
  document.getElementById("title").textContent = data.title;
  document.getElementById("about").textContent = about(data);
  document.getElementById("contents").replaceChildren(
    ...kSections.map(([id, title]) => element("li", {}, element("a", { href: "#" + id }, title))));
  unopened.clear();
  const sections = kSections.map(([id, title, make]) =>
    element("section", { id, "aria-labelledby": "heading-" + id }, element("h2", { id: "heading-" + id }, title),
            ...make(data, state)));
  main.replaceChildren(...sections);
  drawAll();
  for (const details of main.querySelectorAll("details"))
    if (open.has(details.id)) {
      fill(details);
      details.open = true;
    }
  for (const [id, [left, top]] of scrolled) {
    const part = document.getElementById(id);
    if (part) part.querySelector(".scroll").scrollTo(left, top);
  }
  const again = focused && document.getElementById(focused);
  if (again) {
    again.focus({ preventScroll: true });
    if (selection) again.setSelectionRange(...selection);
  }
  showLive(data.live);
  markCurrent();
}

// Marks the link of the section that is being read.
let watched = null;
function markCurrent() {
  if (watched) watched.disconnect();
  const links = new Map([...document.querySelectorAll("#contents a")].map((link) => [link.getAttribute("href").slice(1), link]));
  watched = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const [id, link] of links) {
        if (id === entry.target.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-15% 0px -80% 0px" });
  for (const section of document.querySelectorAll("main > section")) watched.observe(section);
}

function follow(data) {
  if (!data.live || !data.live.running) return;
  const again = (then) => setTimeout(() => follow(then), kPollMilliseconds);
  fetch(data.live.url, { cache: "no-store" })
    .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText))))
    .then((newer) => {
      const changed = JSON.stringify({ ...newer, live: null }) !== JSON.stringify({ ...data, live: null });
      if (changed) render(newer);
      showLive(newer.live);
      again(newer);
    })
    .catch(() => showLive({ state: "The run does not respond any more: it has ended or was stopped. " + data.live.result }));
}

// For print: dark on white, with each plot's numbers.
function print(on) {
  const root = document.documentElement;
  if (on) {
    root.dataset.print = "";
    for (const details of document.querySelectorAll("details.behind")) {
      fill(details);
      details.dataset.was = details.open ? "open" : "";
      details.open = true;
    }
  } else {
    delete root.dataset.print;
    for (const details of document.querySelectorAll("details.behind")) details.open = details.dataset.was === "open";
  }
  drawAll();
}

const data = JSON.parse(document.getElementById("data").textContent);
render(data);
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
follow(data);
