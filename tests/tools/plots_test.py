#!/usr/bin/env python3
"""Checks that every picture of the program, and every SVG file of the documentation, is valid XML that a browser can
draw.

    plots_test.py TENSORSMITH REPOSITORY MODEL.onnx

Parses each file with expat. If TENSORSMITH_BROWSER_PYTHON names the interpreter of scripts/install_browser, Chromium
opens each one: it must report no error, draw something, and cut no text at an edge. Without a browser only the XML is
checked; if TENSORSMITH_REQUIRE_BROWSER is set, that is a failure.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

CHROMIUM = os.environ.get("TENSORSMITH_CHROMIUM") or shutil.which("chromium")
INTERPRETER = os.environ.get("TENSORSMITH_BROWSER_PYTHON")

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    if INTERPRETER and not os.environ.get("TENSORSMITH_BROWSER_STARTED"):
        os.environ["TENSORSMITH_BROWSER_STARTED"] = "1"
        os.execv(INTERPRETER, [INTERPRETER, *sys.argv])
    sync_playwright = None

failures = []


def fail(text):
    print("FAILED:", text)
    failures.append(text)


def make_plots(tensorsmith, model, folder):
    """Makes a picture with each option that draws one."""

    def run(*words):
        subprocess.run([tensorsmith, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("dataset", "collect", "--networks", model, "--device", "local:threads=1", "-o", "r.db", "--per-task", "40",
        "--store", "r.store", "--quiet")
    run("dataset", "split", "r.store", "--kind", "within-task", "-o", "r.split", "--test", "0.3")
    run("train", "--model", "xgboost", "--store", "r.store", "--split", "r.split", "-o", "r.model", "--param", "rounds=20",
        "--quiet")
    run("eval", "--model", "r.model", "--store", "r.store", "--split", "r.split", "--plot", "eval.svg")
    run("eval", "--rounds", "2", "--batch", "8", "--seeds", "1", "--model", "r.model", "--store", "r.store", "--split",
        "r.split", "--part", "train", "--plot", "rounds.svg")
    run("compare", "--store", "r.store", "--strategy", "random", "--strategy", "descent", "--cost-model", "none",
        "--trials", "4", "--seeds", "2", "--least-programs", "5", "--plot", "trials.svg", "--time-plot", "seconds.svg", "--quiet")
    run("profile", "r.db", "--device", "local:threads=1", "--profiler", "simulation", "--quiet")
    run("explain", "r.db", "--task", "conv_relu_1x16", "--plot", "explain.svg")
    commands = {"eval.svg": "eval", "rounds.svg": "eval", "trials.svg": "compare", "seconds.svg": "compare",
                "explain.svg": "explain"}
    for name, command in commands.items():
        if f"<!-- plot by tensorsmith {command} -->" not in (folder / name).read_text():
            fail(f"{name} does not name the command that drew it, {command}")
    return [folder / name for name in commands]


def check_xml(path):
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        fail(f"{path} is no XML: {error}")
        return
    if root.tag != "{http://www.w3.org/2000/svg}svg":
        fail(f"{path} has the root {root.tag}")


def check_drawing(browser, path):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(path.as_uri())
    if complaints:
        fail(f"{path}: the browser says {complaints}")
    if page.evaluate("document.documentElement.nodeName") != "svg" or page.evaluate("!!document.querySelector('parsererror')"):
        fail(f"{path} is not drawn")
        page.close()
        return
    # Half a pixel of tolerance: the boxes of texts come from the font and are a little larger than the letters.
    cut = page.evaluate("""() => {
        const whole = document.documentElement.getBoundingClientRect();
        return [...document.querySelectorAll("text")].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.left < whole.left - .5 || box.right > whole.right + .5 || box.top < whole.top - .5 || box.bottom > whole.bottom + .5;
        }).map((text) => text.textContent);
    }""")
    if cut:
        fail(f"{path}: texts are cut at the edge: {cut}")
    marks = page.evaluate("""() => [...document.querySelectorAll("path, rect, circle, line, polyline, polygon")].filter((e) => {
        const box = e.getBoundingClientRect();
        return box.width + box.height > 0;
    }).length""")
    if marks < 3:
        fail(f"{path} shows {marks} marks")
    page.close()


def main():
    tensorsmith, repository, model = [str(pathlib.Path(word).resolve()) for word in sys.argv[1:4]]
    with tempfile.TemporaryDirectory() as folder:
        plots = make_plots(tensorsmith, model, pathlib.Path(folder))
        standing = sorted(pathlib.Path(repository, "docs").rglob("*.svg"))
        if len(standing) < 3:
            fail(f"the documentation has {len(standing)} pictures")
        for path in plots + standing:
            check_xml(path)
        if sync_playwright and CHROMIUM:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                for path in plots + standing:
                    check_drawing(browser, path)
                print(f"drawn by Chromium {browser.version}")
                browser.close()
        elif os.environ.get("TENSORSMITH_REQUIRE_BROWSER"):
            fail("there is no browser: scripts/install_dependencies test, scripts/install_browser")
        else:
            print("not drawn: Chromium or Playwright is not there (scripts/install_browser)")
        print(f"{len(plots)} pictures made here and {len(standing)} of the documentation: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
