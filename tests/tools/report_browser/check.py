#!/usr/bin/env python3
"""The report page in a real browser: Chromium without a window.

    check.py TENSORSMITH MODEL.onnx [--screenshots DIR]

Tunes the model for some seconds and checks its page: no script error, no request, each section there, plots that are not
empty, nothing wider than a phone, no violation that axe finds in light and dark, keyboard, print, hostile names, 10,000
records within a second of the processor's time, and the page of a run while it goes on. Needs what scripts/install_browser installs:
TENSORSMITH_BROWSER_PYTHON names its interpreter. Exits with 77 without it, unless TENSORSMITH_REQUIRE_BROWSER is set.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import sqlite3
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
SECTIONS = ["summary", "latency", "search", "run", "roofline", "predictions", "tasks", "failures", "settings"]
PHONE, DESKTOP = {"width": 375, "height": 812}, {"width": 1280, "height": 900}
HOSTILE = "</script><script>window.injected=1</script><img src=x onerror=window.injected=2>"
SECONDS = 1.0  # of the main thread, for a page of 10,000 records

failures = []


def check(good, what):
    if not good:
        print("FAILED:", what)
        failures.append(what)


class Reader:
    """A page, with what it complains about and what it asks of the network."""

    def __init__(self, browser, url, size=DESKTOP, scheme="light"):
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
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
        """Until the expression is true. (Playwright's own way evaluates text in the page, which the page forbids.)"""
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
    for size in (PHONE, DESKTOP):
        for scheme in ("light", "dark"):
            reader = Reader(browser, url, size, scheme)
            sections = reader.evaluate("[...document.querySelectorAll('main > section')].map((s) => s.id)")
            check(sections == SECTIONS, f"{reader.name}: sections {sections}")
            thin = reader.evaluate("[...document.querySelectorAll('main > section')].filter((s) => s.children.length < 2).map((s) => s.id)")
            check(not thin, f"{reader.name}: sections without content {thin}")
            reader.check_layout()
            reader.check_accessibility()
            structures[reader.name] = reader.structure()
            if screenshots:
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
    """Plots are drawn anew when the colours change."""
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
    focused = "document.activeElement.id || document.activeElement.className"
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
    check(reached[-1].startswith("schedule-") or "SUMMARY" in reader.evaluate("document.activeElement.tagName"),
          "schedules are not reached")
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
    # Every record of the largest task, which somebody chooses.
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
        reader.page.focus("#choose-task")
        reader.wait_for(f"parseInt({measured}.lastChild.textContent) > {first}", 200)
        check(reader.evaluate("document.activeElement.id") == "choose-task", "newer data take the focus away")
        check("trials" in reader.page.text_content("#live"), f"state: {reader.page.text_content('#live')}")
        check(all(asked.startswith(url.split("?")[0]) for asked in reader.requests), f"asked for {set(reader.requests)}")
        reader.check_layout()
        reader.check_accessibility()
    finally:
        run.terminate()
        run.stderr.read()
        check(run.wait() == 130, f"the run ended with {run.returncode}")
    # The page has the last data before the run ends, so nothing that it asks for is refused.
    said = "document.getElementById('live').textContent"
    check(reader.evaluate(f"{said}.includes('interrupted') && {said}.includes('model: live')"), f"at the end: {reader.evaluate(said)}")
    reader.close()


def check_end(browser, tensorsmith, model, folder):
    """The page shows the final speed-up, as the command prints it, and where the results are."""
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
    """whole: as `tune --json` tells it. Both bars are of it, and no other."""
    text = reader.evaluate("document.querySelector('#summary').textContent")
    check(f"{whole['speedup']:.2f}×" in text, f"{reader.name}: {whole['speedup']} is not in {text}")
    check((whole["warning"] or "") in text and ("Warning" in text) == whole["busy"], f"{reader.name}: {whole['warning']} in {text}")
    bars = reader.evaluate("""Chart.getChart("plot-latency").data.datasets.map((set) => [set.label, ...set.data])""")
    check(bars == [["untuned", whole["untuned_seconds"]], ["tuned", whole["tuned_seconds"]]], f"{reader.name}: bars {bars}")


def add_records(path, count):
    """Copies records until the database has so many."""
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

        run("tune", model, "-o", "tuned", "--db", "a.db", "--trials", "40", "--threads", "1", "--quiet", "--report", "run.html")
        run("report", "a.db", "-o", "records.html")
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
            check_colours(browser, of("run.html"))
            check_keyboard(browser, of("run.html"))
            check_print(browser, of("run.html"))
            check_large(browser, of("large.html"), 10_000)
            check_hostile(browser, of("hostile.html"))
            check_live(browser, tensorsmith, model, folder)
            check_end(browser, tensorsmith, model, folder)
            print(f"Chromium {browser.version}: {len(failures)} failures")
            browser.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
