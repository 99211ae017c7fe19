#!/usr/bin/env python3
"""Checks the report page in a real browser, Chromium without a window.

    check.py TENSORSMITH MODEL.onnx [--screenshots DIR]

Tunes the model for some seconds and checks its page: there is no script error and no request; each section exists;
plots are not empty or clipped and have numbers on their axes; names beside bars differ; nothing is wider than a
phone; axe finds no violation in light and dark colours. It also checks keyboard use, sorting, filters, zoom, saved
files, two runs side by side, print, hostile names, 10,000 records within a second of processor time, and the page of
a running search. Needs the packages of scripts/install_browser: TENSORSMITH_BROWSER_PYTHON names its interpreter.
Exits with 77 without it, unless TENSORSMITH_REQUIRE_BROWSER is set.
"""
import argparse
import base64
import csv
import io
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

CHROMIUM = os.environ.get("TENSORSMITH_CHROMIUM") or shutil.which("chromium")
INTERPRETER = os.environ.get("TENSORSMITH_BROWSER_PYTHON")


def skip(why):
    print(why)
    sys.exit(1 if os.environ.get("TENSORSMITH_REQUIRE_BROWSER") else 77)


try:
    import axe_playwright_python
    from playwright.sync_api import sync_playwright
except ImportError:
    if INTERPRETER and not os.environ.get("TENSORSMITH_BROWSER_STARTED"):
        os.environ["TENSORSMITH_BROWSER_STARTED"] = "1"
        os.execv(INTERPRETER, [INTERPRETER, *sys.argv])
    skip("Playwright is not there: scripts/install_browser")
if not CHROMIUM:
    skip("Chromium is not there: scripts/install_dependencies test")

AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "src/tools/report_page"
SECTIONS = ["summary", "latency", "search", "decisions", "compare", "run", "roofline", "predictions", "tasks", "failures", "settings"]
SMALL, PHONE, DESKTOP = {"width": 375, "height": 812}, {"width": 400, "height": 860}, {"width": 1280, "height": 900}
HOSTILE = "</script><script>window.injected=1</script><img src=x onerror=window.injected=2>"
SECONDS = 1.0  # most seconds of the main thread for a page of 10,000 records

failures = []


def check(good, what):
    if not good:
        print("FAILED:", what)
        failures.append(what)


# Records the bounding boxes of the texts of plots, by plot.
RECORD_TEXTS = """
window.texts = new Map();
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
  const measured = this.measureText(text), matrix = this.getTransform();
  const corners = [[-measured.actualBoundingBoxLeft, -measured.actualBoundingBoxAscent],
                   [measured.actualBoundingBoxRight, measured.actualBoundingBoxDescent]]
    .map(([dx, dy]) => matrix.transformPoint({x: x + dx, y: y + dy}));
  if (!window.texts.has(this.canvas)) window.texts.set(this.canvas, []);
  window.texts.get(this.canvas).push({text: String(text), xs: corners.map((p) => p.x), ys: corners.map((p) => p.y)});
  fillText.call(this, text, x, y, ...rest);
};
"""


class Reader:
    """A page, with its error messages and its network requests."""

    def __init__(self, browser, url, size=DESKTOP, scheme="light"):
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.add_init_script(RECORD_TEXTS)
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.name = f"{url.rsplit('/', 1)[-1].split('?')[0]} {size['width']} px {scheme}"
        self.page.goto(url)

    def close(self):
        check(not self.errors, f"{self.name}: {self.errors}")
        self.context.close()

    def evaluate(self, script):
        return self.page.evaluate(script)

    def data(self):
        return json.loads(self.evaluate("document.getElementById('data').textContent"))

    def saved(self, button):
        """Returns the name and the bytes of the file that a button saves."""
        self.page.wait_for_timeout(150)  # Chromium allows some ten downloads of a page per second
        with self.page.expect_download() as waiting:
            self.page.locator("#" + button).click()
        return waiting.value.suggested_filename, pathlib.Path(waiting.value.path()).read_bytes()

    def scale(self, plot, axis):
        return self.evaluate(f"(({{min, max, type}}) => [min, max, type])(Chart.getChart('{plot}').scales.{axis})")

    def check_plots(self, zoomed=False):
        """Checks that texts are inside of plots, names differ, axes have numbers, and points are inside unless
        zoomed."""
        clipped = self.evaluate("""[...window.texts].filter(([canvas]) => canvas.isConnected && canvas.id)
            .flatMap(([canvas, texts]) => texts.slice(-400).filter(({xs, ys}) => Math.min(...xs) < -2 || Math.max(...xs) > canvas.width + 2
                || Math.min(...ys) < -2 || Math.max(...ys) > canvas.height + 2).map(({text}) => canvas.id + ': ' + text))""")
        check(not clipped, f"{self.name}: clipped texts {clipped[:5]}")
        axes = self.evaluate("""[...document.querySelectorAll("canvas")].flatMap((canvas) => {
            const chart = Chart.getChart(canvas);
            return Object.values(chart.scales).map((scale) => ({plot: canvas.id, axis: scale.axis, type: scale.type,
                 labels: scale.ticks.map((tick) => tick.label).filter((label) => label !== ""),
                 names: scale.type === "category" ? scale.getLabels() : []}));
        })""")
        for axis in axes:
            where = f"{self.name}: {axis['plot']}, {axis['axis']}: {axis['labels']}"
            check(len(set(axis["names"])) == len(axis["names"]), f"{where}: names read the same")
            if axis["type"] != "category":
                check(3 <= len(axis["labels"]) <= 12, f"{where}: ticks")
                check(len(set(axis["labels"])) == len(axis["labels"]), f"{where}: ticks read the same")
            else:
                check(len(axis["labels"]) == len(axis["names"]), f"{where}: bars without a name")
        outside = self.evaluate("""[...document.querySelectorAll("canvas")].filter((canvas) => {
            const chart = Chart.getChart(canvas), {left, right, top, bottom} = chart.chartArea;
            return chart.data.datasets.some((set, s) => set.type === "scatter" && chart.getDatasetMeta(s).data.some((point) => {
                const radius = point.options.pointStyle === "line" ? 0 : point.options.radius;
                return point.x - radius < left || point.x + radius > right || point.y - radius < top || point.y + radius > bottom; }));
        }).map((canvas) => canvas.id).filter((id) => id !== "plot-task-curve")""")
        check(zoomed or not outside, f"{self.name}: points that are cut off in {outside}")
        cut = self.evaluate("""[...document.querySelectorAll("body *")].filter((e) => e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1
            && ["hidden", "clip"].includes(getComputedStyle(e).overflowX)).map((e) => e.tagName + " " + e.id + e.className)""")
        check(not cut, f"{self.name}: text that is cut off in {cut}")

    def structure(self):
        return self.evaluate("""() => [...document.querySelectorAll("h1, h2, h3, canvas, details, table caption, select")]
            .map((e) => e.tagName + " " + (e.id || e.textContent))""")

    def check_layout(self):
        widths = self.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        check(widths[0] <= widths[1], f"{self.name}: {widths[0]} px wide")
        blank = self.evaluate("""() => [...document.querySelectorAll("canvas")].filter((canvas) => {
            if (canvas.width === 0 || canvas.height === 0) return true;
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
            copy.drawImage(canvas, 0, 0);
            const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
            const colours = new Set();
            for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 0) colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
            return colours.size < 3;  // axes and something else
        }).map((canvas) => canvas.id)""")
        check(not blank, f"{self.name}: empty plots {blank}")
        unnamed = self.evaluate("""[...document.querySelectorAll("canvas")].filter((c) => c.getAttribute("role") !== "img"
            || !(c.getAttribute("aria-label") || "").includes(".")).map((c) => c.id)""")
        check(not unnamed, f"{self.name}: plots without a description {unnamed}")

    def check_accessibility(self):
        self.evaluate(AXE + ";0")
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for violation in found["violations"]:
            nodes = "; ".join(node["html"][:120] + " " + (node["any"][0]["message"] if node["any"] else "")
                              for node in violation["nodes"][:3])
            check(False, f"{self.name}: axe: {violation['id']}: {nodes}")

    def wait_for(self, script, seconds):
        """Waits until the expression is true. (Playwright's own function evaluates text in the page, which forbids
        that.)"""
        end = time.monotonic() + seconds
        while not self.evaluate(script):
            if time.monotonic() > end:
                check(False, f"{self.name}: not within {seconds} s: {script}")
                return
            self.page.wait_for_timeout(200)

    def open_all(self):
        self.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        self.page.wait_for_timeout(200)


def check_page(browser, url, screenshots):
    structures = {}
    for size in (SMALL, PHONE, DESKTOP):
        for scheme in ("light", "dark"):
            reader = Reader(browser, url, size, scheme)
            sections = reader.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)")
            check(sections == SECTIONS, f"{reader.name}: sections {sections}")
            thin = reader.evaluate("[...document.querySelectorAll('main > section')].filter((s) => s.children.length < 2).map((s) => s.id)")
            check(not thin, f"{reader.name}: sections without content {thin}")
            reader.check_layout()
            reader.check_plots()
            reader.check_accessibility()
            structures[reader.name] = reader.structure()
            if screenshots and size is not SMALL:
                reader.page.screenshot(path=screenshots / f"report_{size['width']}_{scheme}.png", full_page=True)
            reader.open_all()
            reader.check_layout()
            reader.check_accessibility()
            check(reader.requests == [url], f"{reader.name}: asked for {reader.requests}")
            reader.close()
    first = next(iter(structures.values()))
    check(len(first) > 20, f"the page is short: {first}")
    for name, structure in structures.items():
        check(structure == first, f"{name}: another structure than the others")


def check_colours(browser, url):
    """Checks that plots are drawn again when the colours change."""
    reader = Reader(browser, url)
    text = "document.getElementById('plot-model-curve').toDataURL()"
    light = reader.evaluate(text)
    reader.page.emulate_media(color_scheme="dark")
    reader.page.wait_for_timeout(300)
    check(reader.evaluate(text) != light, "plots do not follow the colour scheme")
    reader.close()


def check_keyboard(browser, url):
    reader = Reader(browser, url)
    press = reader.page.keyboard.press
    focused = "((e) => e.id || e.className || e.parentNode.id)(document.activeElement)"
    press("Tab")
    check(reader.evaluate(focused) == "skip", "the first stop is not the link past the contents")
    press("Enter")
    check(reader.evaluate(focused) == "main", "the link does not lead to the report")
    reached = []
    for _ in range(200):
        press("Tab")
        reached.append(reader.evaluate(focused))
        if reached[-1].startswith("schedule-"):
            break
    check("choose-task" in reached, f"the choice of tasks is not reached: {reached}")
    check(reached[-1].startswith("schedule-"), f"schedules are not reached: {reached}")
    positions = reader.evaluate("""[...document.querySelectorAll('main [id], main summary')].filter((e) => e.tabIndex > 0).length""")
    check(positions == 0, "something jumps ahead in the order of focus")
    reader.page.focus("#choose-task")
    before = reader.evaluate("document.getElementById('plot-task-curve').getAttribute('aria-label')")
    press("ArrowDown")
    after = reader.evaluate("document.getElementById('plot-task-curve').getAttribute('aria-label')")
    check(before != after, "another task shows the same plot")
    reader.page.focus("details[id^=schedule-] summary")
    press("Enter")
    reader.page.wait_for_selector("details[id^=schedule-][open] pre")
    check("for " in reader.evaluate("document.querySelector('details[id^=schedule-] pre').textContent"), "no loops")
    reader.check_layout()
    reader.close()


def check_labels(browser):
    """Checks names shortened in the middle: they are short enough, differ if the names do, and keep beginning and
    end."""
    seed = random.randrange(1 << 32)
    numbers = random.Random(seed)
    context = browser.new_context()
    page = context.new_page()
    shorten = (SCRIPTS / "labels.js").read_text(encoding="utf-8") + "\n; window.shortNames = shortNames; 0"
    page.evaluate(shorten)
    for _ in range(300):
        most = numbers.randrange(8, 40)
        parts = ["".join(numbers.choices("ab_1é", k=numbers.randrange(0, 30))) for _ in range(4)]
        names = ["".join(numbers.choices(parts, k=numbers.randrange(1, 5))) + numbers.choice(["", "_x", "_y"]) for _ in range(30)]
        labels = page.evaluate("([names, most]) => window.shortNames(names, most)", [names, most])
        what = f"seed {seed}, at most {most}: "
        check(all(len(label) <= most for label in labels), what + "a label is too long")
        check(len(set(labels)) == len(set(names)), what + "different names have one label")
        check(len(set(zip(names, labels))) == len(set(names)), what + "one name has two labels")
        for name, label in zip(names, labels):
            if label == name:
                continue
            check(len(name) > most or label in names, what + f"{name} is shortened without need")
            head, tail = label.split("…")
            check(name.startswith(head) and (name.endswith(tail) or "#" in tail), what + f"{name} is called {label}")
    context.close()


def check_tables(browser, url):
    """Checks that mouse and keys sort and filter rows, and that the CSV file has the numbers of the data."""
    reader = Reader(browser, url)
    data = reader.data()
    cells = lambda column: reader.evaluate(
        f"[...document.querySelectorAll('#table-tasks tbody tr')].map((row) => row.children[{column}].textContent)")
    names = [task["name"] for task in data["tasks"]]
    check(sorted(cells(0)) == sorted(names), f"rows of the tasks: {cells(0)}")
    best = {task["name"]: task["best_seconds"] for task in data["tasks"]}
    by_time = sorted(names, key=lambda name: best[name])
    first = cells(0)
    head = reader.page.locator("#table-tasks th", has=reader.page.locator("#table-tasks-sort-4"))
    reader.page.focus("#table-tasks-sort-4")
    for state, order in (("descending", by_time[::-1]), ("ascending", by_time), (None, first)):
        reader.page.keyboard.press("Enter")
        check(head.get_attribute("aria-sort") == state, f"sorted {head.get_attribute('aria-sort')}, wanted {state}")
        check([best[name] for name in cells(0)] == [best[name] for name in order], f"{state}: {cells(0)}")
    reader.page.click("#table-tasks-sort-0")
    natural = lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name.lower())]
    check(cells(0) == sorted(names, key=natural), f"by name: {cells(0)}")
    # The table shows exactly the rows with all words, in any order and case.
    if len(names) >= 8:
        word = names[0].split("_")[0]
        reader.page.fill("#table-tasks-filter", word.upper())
        texts = [name for name in names if word in name]
        check(set(cells(0)) >= set(texts) and len(cells(0)) < len(names) + 1, f"filtered by {word}: {cells(0)}")
        reader.page.fill("#table-tasks-filter", "no such words")
        check(reader.evaluate("document.querySelector('#table-tasks .count').textContent").startswith("0 of"), "rows without the words")
        reader.page.fill("#table-tasks-filter", "")
    name, content = reader.saved("table-tasks-csv")
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    check(name == "tensorsmith-tasks.csv" and len(rows) == len(names) + 1, f"{name} has {len(rows)} rows")
    check("best (s)" in rows[0], f"columns {rows[0]}")
    check({row[0]: float(row[rows[0].index("best (s)")]) for row in rows[1:]} == best, "times in the CSV file")
    check(not reader.evaluate("[...document.querySelectorAll('thead th')].some((th) => !th.querySelector('button'))"), "headings that do not sort")
    reader.close()


def check_figures(browser, url):
    """Checks that each plot can be saved as a picture and as numbers."""
    reader = Reader(browser, url)
    plots = reader.evaluate("[...document.querySelectorAll('figure canvas')].map((c) => [c.id, c.clientWidth, c.clientHeight])")
    check(len(plots) >= 7, f"plots {plots}")
    for plot, width, height in plots:
        name, picture = reader.saved(plot + "-png")
        size = struct.unpack(">II", picture[16:24]) if picture[:8] == b"\x89PNG\r\n\x1a\n" else (0, 0)
        check(name.endswith(".png") and size[0] >= 2 * width and size[1] >= 2 * height, f"{name}: {size}, the plot has {width} x {height}")
        colours = reader.page.evaluate("""async (url) => {
            const image = new Image();
            image.src = url;
            await image.decode();
            const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
            pen.drawImage(image, 0, 0);
            const pixels = pen.getImageData(0, 0, image.width, image.height).data, seen = new Set();
            for (let i = 0; i < pixels.length; i += 4) seen.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
            return [seen.size, pixels[3]];
        }""", "data:image/png;base64," + base64.b64encode(picture).decode())
        check(colours[0] > 8 and colours[1] == 255, f"{name}: {colours}")
        name, content = reader.saved(plot + "-csv")
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
        check(name.endswith(".csv") and len(rows) >= 2, f"{name} has {len(rows)} rows")
        check(all(len(row) == len(rows[0]) for row in rows), f"{name}: rows of different lengths")
    # Checks the curve of the model digit by digit.
    data = reader.data()
    curve = data["models"][0]["best_so_far"] if data["models"] else data["best_so_far"][0]
    _, content = reader.saved("plot-model-curve-csv")
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))[1:]
    check([(float(a), float(s)) for _, a, s in rows] == list(zip(curve["at"], curve["seconds"])), "the curve in the CSV file")
    check([asked for asked in reader.requests if not asked.startswith(("blob:", "data:"))] == [url], f"asked for {set(reader.requests)}")
    reader.close()


def check_zoom(browser, url):
    reader = Reader(browser, url)
    for plot, axes in (("plot-model-curve", "xy"), ("plot-timeline-0", "x"), ("plot-roofline-0", "xy")):
        if not reader.evaluate(f"document.getElementById('{plot}') !== null"):
            continue
        reader.page.locator("#" + plot).scroll_into_view_if_needed()
        whole = {axis: reader.scale(plot, axis) for axis in axes}
        check(reader.page.is_disabled(f"#{plot}-reset"), f"{plot}: nothing to reset")
        box = reader.page.locator("#" + plot).bounding_box()
        area = reader.evaluate(f"(({{left, right, top, bottom}}) => ({{left, right, top, bottom}}))(Chart.getChart('{plot}').chartArea)")
        at = lambda x, y: (box["x"] + area["left"] + x * (area["right"] - area["left"]), box["y"] + area["top"] + y * (area["bottom"] - area["top"]))
        reader.page.mouse.move(*at(.25, .2))
        reader.page.mouse.down()
        reader.page.mouse.move(*at(.5, .5), steps=4)
        reader.page.mouse.up()
        for axis in axes:
            low, high, kind = whole[axis]
            # Returns the value at a share of the axis, measured from its low end.
            value = lambda share: low * (high / low) ** share if kind == "logarithmic" else low + share * (high - low)
            wanted = (value(.25), value(.5)) if axis == "x" else (value(.5), value(.8))
            found = reader.scale(plot, axis)
            near = 0.02 * (wanted[1] - wanted[0])
            check(all(abs(f - w) <= near for f, w in zip(found, wanted)), f"{plot}: {axis} shows {found}, wanted {wanted}")
        reader.check_plots(zoomed=True)
        reader.page.focus(f"#{plot}-reset")
        reader.page.keyboard.press("Enter")
        check({axis: reader.scale(plot, axis) for axis in axes} == whole, f"{plot}: not as before")
        check(reader.evaluate("document.activeElement.id") == plot + "-in", "the focus is lost")
        reader.page.keyboard.press("Enter")
        check(all(reader.scale(plot, axis)[:2] != whole[axis][:2] for axis in axes), f"{plot}: the button does not zoom")
        # The plot keeps its range when it is drawn again in other colours.
        zoomed = reader.scale(plot, "x")
        reader.page.emulate_media(color_scheme="dark")
        reader.page.wait_for_timeout(200)
        check(reader.scale(plot, "x") == zoomed, f"{plot}: other colours forget the zoom")
        reader.page.emulate_media(color_scheme="light")
        reader.page.click(f"#{plot}-out")
        check({axis: reader.scale(plot, axis) for axis in axes} == whole, f"{plot}: not zoomed out")
    reader.close()


def fastest_sum(report, others):
    """Returns the sum of calls times the fastest program's time, over the tasks that `others` also has."""
    keys = {task["key"] for task in others["tasks"] if task["best_seconds"]}
    calls = {}
    for source in (report, others):
        own = {}
        for model in source["models"]:
            for part in model["tasks"]:
                key = source["tasks"][part["task"]]["key"]
                own[key] = own.get(key, 0) + part["calls"]
        for key, count in own.items():
            calls[key] = max(calls.get(key, 1), count)
    return sum(calls.get(t["key"], 1) * t["best_seconds"] for t in report["tasks"] if t["key"] in keys and t["best_seconds"])


def check_beside(browser, url):
    """Checks two runs side by side, in both orders."""
    reader = Reader(browser, url)
    data = reader.data()
    value = lambda: float(reader.evaluate("document.querySelector('#compare .strong dd').textContent").rstrip("×"))
    wanted = fastest_sum(data, data["beside"]) / fastest_sum(data["beside"], data)
    check(abs(value() / wanted - 1) < .01, f"{value()} times as fast, wanted {wanted}")
    reader.page.select_option("#choose-run-a", "1")
    reader.page.select_option("#choose-run-b", "0")
    check(abs(value() * wanted - 1) < .01, f"the other way round {value()}, wanted {1 / wanted}")
    reader.page.select_option("#choose-run-a", "0")
    check(value() == 1, f"a run is {value()} times as fast as itself")
    reader.check_layout()
    reader.check_plots()
    reader.check_accessibility()
    check(reader.requests == [url], f"asked for {reader.requests}")
    reader.close()


def check_runs(browser, url, runs):
    """Checks that each run in a database can be chosen."""
    reader = Reader(browser, url)
    names = reader.evaluate("[...document.querySelectorAll('#choose-run-a option')].map((o) => o.textContent)")
    check(len(names) == runs + 1, f"runs: {names}")
    measured = "[...document.querySelectorAll('#compare .figures div')].find((d) => d.textContent.startsWith('programs'))"
    data = reader.data()
    count = lambda run: sum(task["records"]["run"].count(run) for task in data["tasks"])
    reader.page.select_option("#choose-run-a", "1")
    reader.page.select_option("#choose-run-b", "2")
    texts = reader.evaluate(f"{measured} && {measured}.lastChild.textContent")
    check(texts is not None and all(0 < int(n) <= count(r) for r, n in enumerate(texts.split(" and "))), f"programs: {texts}")
    reader.check_layout()
    reader.close()


def check_decisions(browser, url):
    reader = Reader(browser, url)
    tasks = [task for task in reader.data()["tasks"] if task["importance"]]
    check(bool(tasks), "no task whose decisions are judged")
    names = reader.evaluate("[...document.querySelectorAll('#choose-importance option')].length")
    check(names == len(tasks) + 1, f"{names} choices for {len(tasks)} tasks")
    reader.page.select_option("#choose-importance", "1")
    check("of the spread" in reader.page.text_content("#decisions figcaption").lower().replace("share of the spread", "of the spread"),
          "no plot of the decisions")
    reader.open_all()
    reader.check_layout()
    reader.check_plots()
    reader.check_accessibility()
    reader.close()


def check_print(browser, url):
    reader = Reader(browser, url, DESKTOP, "dark")
    reader.evaluate("""addEventListener("beforeprint", () => { setTimeout(() => 0); window.printed = {
        page: getComputedStyle(document.documentElement).getPropertyValue("--page").trim(),
        tables: document.querySelectorAll("details.behind[open] table").length }; })""")
    pdf = reader.page.pdf(format="A4")
    check(pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2, "no PDF of some pages")
    printed = reader.evaluate("window.printed")
    check(bool(printed) and printed["page"] == "#ffffff", f"printed on {printed}")
    check(bool(printed) and printed["tables"] >= 4, f"tables in print: {printed}")
    check(reader.evaluate("document.documentElement.dataset.print") is None, "stays as printed")
    # Nothing is cut off at the edge of the paper, with the tables behind the plots open.
    paper = Reader(browser, url, {"width": 720, "height": 1000})
    paper.page.emulate_media(media="print")
    paper.evaluate("dispatchEvent(new Event('beforeprint'))")
    paper.page.wait_for_timeout(200)
    paper.check_layout()
    paper.close()
    reader.close()


def check_large(browser, url, records):
    reader = Reader(browser, "about:blank")
    session = reader.context.new_cdp_session(reader.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    reader.page.goto(url)
    metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    taken = metrics["TaskDuration"]
    print(f"{records} records: {taken:.2f} s of the main thread, {metrics['ScriptDuration']:.2f} s of them scripts")
    check(taken < SECONDS, f"{records} records take {taken:.2f} s")
    shown = reader.evaluate("JSON.parse(document.getElementById('data').textContent).tasks.reduce((n, t) => n + t.records.at.length, 0)")
    check(shown == records, f"{shown} of {records} records")
    reader.check_layout()
    # The reader chooses the largest task, and all of its records are shown.
    before = time.monotonic()
    reader.page.select_option("#choose-task", "1")
    reader.open_all()
    print(f"all tables opened in {time.monotonic() - before:.2f} s")
    reader.check_layout()
    reader.close()


def check_hostile(browser, url):
    reader = Reader(browser, url)
    reader.open_all()
    check(reader.evaluate("window.injected") is None, "a name ran as a script")
    check(reader.evaluate("document.querySelectorAll('img').length") == 0, "a name became an element")
    check(HOSTILE in reader.evaluate("document.getElementById('tasks').textContent"), "the name is not shown as it is")
    check(reader.requests == [url], f"asked for {reader.requests}")
    reader.close()


def check_live(browser, tensorsmith, model, folder):
    command = [tensorsmith, "tune", model, "-o", "live", "--db", "live.db", "--threads", "1", "--seconds", "300", "--serve", "0"]
    run = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    url = None
    for line in run.stderr:
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]+", line)
        if found:
            url = found.group()
            break
    reader = Reader(browser, url)
    measured = "[...document.querySelectorAll('.figures div')].find((d) => d.textContent.startsWith('programs measured'))"
    try:
        reader.wait_for(f"{measured} && parseInt({measured}.lastChild.textContent) > 0", 200)
        first = int(reader.evaluate(f"{measured}.lastChild.textContent"))
        # The reader's choices survive newer data: order of rows, range of a plot, open tables, focus.
        reader.page.click("#table-tasks-sort-4")
        reader.page.click("#plot-model-curve-in")
        reader.evaluate("document.getElementById('table-model-curve').open = true")
        chosen = """[document.querySelector('#table-tasks-sort-4').parentNode.getAttribute('aria-sort'),
            document.getElementById('plot-model-curve-reset').disabled, document.getElementById('table-model-curve').open]"""
        before, zoomed = reader.evaluate(chosen), reader.scale("plot-model-curve", "x")
        check(before == ["descending", False, True], f"chosen: {before}")
        reader.page.focus("#choose-task")
        reader.wait_for(f"parseInt({measured}.lastChild.textContent) > {first}", 200)
        check(reader.evaluate("document.activeElement.id") == "choose-task", "newer data take the focus away")
        check(reader.evaluate(chosen) == before, f"newer data forget what was chosen: {reader.evaluate(chosen)}")
        check(reader.scale("plot-model-curve", "x") == zoomed, "newer data forget the zoom")
        bar = reader.evaluate("(({value, position}) => [value, position])(document.querySelector('#progress progress'))")
        check(0 < bar[0] < 1 and 0 < bar[1] < 1, f"the bar stands at {bar}")
        check(re.fullmatch(r"\d+:\d\d so far, \d+:\d\d left", reader.page.text_content("#progress .left")) is not None,
              f"time: {reader.page.text_content('#progress .left')}")
        check("measuring" in reader.page.text_content("#progress .phase"), f"phase: {reader.page.text_content('#progress .phase')}")
        check("trials" in reader.page.text_content("#live"), f"state: {reader.page.text_content('#live')}")
        check(all(asked.startswith(url.split("?")[0]) for asked in reader.requests), f"asked for {set(reader.requests)}")
        reader.check_layout()
        reader.check_accessibility()
    finally:
        run.terminate()
        run.stderr.read()
        check(run.wait() == 130, f"the run ended with {run.returncode}")
    # The page gets the last data before the run ends, so none of its requests is refused.
    said = "document.getElementById('live').textContent"
    check(reader.evaluate(f"{said}.includes('interrupted') && {said}.includes('model: live')"), f"at the end: {reader.evaluate(said)}")
    reader.close()


def check_end(browser, tensorsmith, model, folder):
    """Checks that the page shows the final speed-up, as the command prints it, and the place of the results."""
    command = [tensorsmith, "tune", model, "-o", "whole", "--db", "whole.db", "--threads", "1", "--trials", "60", "--serve", "0",
               "--report", "whole.html", "--json"]
    run = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    url = next(found.group() for line in run.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]+", line)))
    reader = Reader(browser, url)
    said = "document.getElementById('live').textContent"
    reader.wait_for(f"{said}.includes('The run has ended')", 200)
    whole = json.loads(run.stdout.read())["end_to_end"]
    run.stderr.read()
    check(run.wait() == 0, f"the run ended with {run.returncode}")
    check(reader.evaluate(f"{said}.includes('model: whole.') && {said}.includes('whole.html')"), f"at the end: {reader.evaluate(said)}")
    check_speedup(reader, whole)
    reader.close()
    reader = Reader(browser, (folder / "whole.html").as_uri())
    check_speedup(reader, whole)
    reader.close()


def check_speedup(reader, whole):
    """Checks the speed-up and both bars of the latency plot. whole: the comparison in the output of `tune --json`."""
    text = reader.evaluate("document.querySelector('#summary').textContent")
    check(f"{whole['speedup']:.2f}×" in text, f"{reader.name}: {whole['speedup']} is not in {text}")
    check((whole["warning"] or "") in text and ("Warning" in text) == whole["busy"], f"{reader.name}: {whole['warning']} in {text}")
    bars = reader.evaluate("""Chart.getChart("plot-latency").data.datasets.map((set) => [set.label, ...set.data])""")
    check(bars == [["untuned", whole["untuned_seconds"]], ["tuned", whole["tuned_seconds"]]], f"{reader.name}: bars {bars}")


def add_records(path, count):
    """Copies records until the database has `count` of them."""
    database = sqlite3.connect(path)
    columns = [row[1] for row in database.execute("PRAGMA table_info(record)") if row[1] not in ("id", "key", "unix_ms")]
    listed = ", ".join(columns)
    rows = database.execute(f"SELECT {listed} FROM record").fetchall()
    there = len(rows)
    last = database.execute("SELECT max(unix_ms) FROM record").fetchone()[0]
    database.executemany(
        f"INSERT INTO record(key, unix_ms, {listed}) VALUES ({', '.join('?' * (len(columns) + 2))})",
        [(f"{n:032x}", last + 300 * n, *rows[n % there]) for n in range(1, count - there + 1)])
    database.commit()
    database.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tensorsmith", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    args = parser.parse_args()
    tensorsmith, model = str(args.tensorsmith.resolve()), str(args.model.resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def run(*words):
            subprocess.run([tensorsmith, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        run("tune", model, "-o", "tuned", "--db", "a.db", "--trials", "160", "--threads", "1", "--quiet", "--report", "run.html")
        run("report", "a.db", "-o", "records.html")
        run("tune", model, "-o", "other", "--db", "b.db", "--trials", "30", "--threads", "1", "--seed", "9", "--quiet", "--report", "other.html")
        run("report", "a.db", "tuned", "--beside", "other.html", "-o", "beside.html")
        # Names that differ only in some letters in the middle, half of the records made an hour later, and a processor with
        # a long name: a choice of runs shows it, and it must not be wider than a phone.
        shutil.copy(folder / "a.db", folder / "runs.db")
        database = sqlite3.connect(folder / "runs.db")
        middle = "'the_beginning_that_all_names_have_'"
        database.execute(f"UPDATE task SET name = {middle} || rowid || '_and_the_end_that_all_names_have'")
        database.execute("UPDATE device SET json = json_set(json, '$.description', ?)", ("Intel(R) Xeon(R) Platinum 8581C CPU @ 2.10GHz " * 2,))
        half = database.execute("SELECT unix_ms FROM record ORDER BY unix_ms LIMIT 1 OFFSET (SELECT count(*) / 2 FROM record)").fetchone()[0]
        database.execute("UPDATE record SET unix_ms = unix_ms + 3600000 WHERE unix_ms > ?", (half,))
        database.commit()
        database.close()
        run("report", "runs.db", "-o", "runs.html")
        shutil.copy(folder / "a.db", folder / "large.db")
        add_records(folder / "large.db", 10_000)
        run("report", "large.db", "tuned", "-o", "large.html")
        shutil.copy(folder / "a.db", folder / "hostile.db")
        database = sqlite3.connect(folder / "hostile.db")
        database.execute("UPDATE task SET name = ?", (HOSTILE,))
        database.execute("UPDATE record SET outcome = 'crash', reason = ?, best_seconds = NULL WHERE why <> 'default'", (HOSTILE,))
        database.commit()
        database.close()
        run("report", "hostile.db", "-o", "hostile.html", "--title", HOSTILE, "--cost-model", "none")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            of = lambda name: (folder / name).as_uri()
            for name in ("run.html", "records.html"):
                check_page(browser, of(name), args.screenshots if name == "run.html" else None)
            check_page(browser, of("beside.html"), None)
            check_page(browser, of("runs.html"), None)
            check_labels(browser)
            check_tables(browser, of("run.html"))
            check_figures(browser, of("beside.html"))
            check_zoom(browser, of("run.html"))
            check_beside(browser, of("beside.html"))
            check_runs(browser, of("runs.html"), 2)
            check_decisions(browser, of("run.html"))
            check_colours(browser, of("run.html"))
            check_keyboard(browser, of("run.html"))
            check_print(browser, of("run.html"))
            check_large(browser, of("large.html"), 10_000)
            check_hostile(browser, of("hostile.html"))
            check_live(browser, tensorsmith, model, folder)
            check_end(browser, tensorsmith, model, folder)
            print(f"Chromium {browser.version}: {len(failures)} failures")
            browser.close()
    # Again at the end, since a record of CI keeps only the last lines of a test.
    for what in failures:
        print("FAILED:", what[:300])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
