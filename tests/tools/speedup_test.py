#!/usr/bin/env python3
"""Checks that a run has the same speed-up wherever it is shown.

    speedup_test.py TENSORSMITH MODEL.onnx [--runs N] [--busy] [--trials N] [--threads N] [--python INTERPRETER]

Tunes the model with a served page, which is polled like in a browser. Compares the text of the command line or its
--json, the report page, the last data of the served page, the report made from the files afterwards, the compiled
model's manifest, and, with --python (an interpreter that has the package), the result in Python. With --busy another
program keeps a processor busy.
"""
import argparse
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

POLL_SECONDS = 0.5
THREADS = "1"
PYTHON = """
import json, sys, tensorsmith
tuned = tensorsmith.tune(sys.argv[1], "python", database="python.db", trials=int(sys.argv[2]), threads=int(sys.argv[4]), seed=int(sys.argv[3]))
print(json.dumps({"speedup": tuned.speedup, "warning": tuned.warning, "spread": tuned.spread, "repr": repr(tuned)}))
"""


def expect(good, what):
    if not good:
        sys.exit("FAILED: " + what)


def read(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


def follow(link):
    """Returns the last data of a page that stays open and polls them as its script does."""
    data = data_of(read(link))
    while data["live"]["running"]:
        time.sleep(POLL_SECONDS)
        try:
            data = json.loads(read(link.split("?")[0] + data["live"]["url"]))
        except urllib.error.URLError as error:
            sys.exit(f"FAILED: the page was no longer served before it had the final result: {error}")
    return data


@contextlib.contextmanager
def busy_processor(wanted):
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if other:
            other.kill()
            other.wait()


def check_warning(told, text, where):
    """Checks that there is a warning if the runs differ by more than a tenth, and none otherwise."""
    expect(told["busy"] == (told["spread"] > 0.10), f"{where}: busy {told['busy']} at a spread of {told['spread']}")
    expect((told["warning"] is not None) == told["busy"], f"{where}: warning {told['warning']}")
    if text is not None:
        expect(("warning: " in text) == told["busy"], f"{where}: the text warns otherwise than --json: {text}")
        expect(not told["busy"] or told["warning"] in text, f"{where}: another warning in the text: {text}")


def check_tasks(tasks):
    """Checks that an untuned task has one time, and that all others are faster in the tuned model than untuned."""
    for task in tasks:
        untuned, tuned = task["in_model_untuned_seconds"], task["in_model_tuned_seconds"]
        if task["kept"]:
            expect(untuned == tuned, f"{task['name']} is kept and has two times, {untuned} and {tuned}")
        elif untuned is not None:
            expect(tuned <= untuned, f"{task['name']} is tuned and slower: {tuned}, untuned {untuned}")


def check_command(program, model, folder, seed, trials, as_json):
    out = f"out{seed}"
    command = [program, "tune", model, "-o", out, "--db", "a.db", "--trials", trials, "--threads", THREADS, "--seed", seed,
               "--report", f"run{seed}.html", "--serve", "0", *(["--json"] if as_json else [])]
    run = subprocess.Popen(list(map(str, command)), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    link = None
    for line in run.stderr:
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]+", line)
        if found:
            link = found.group()
            break
    expect(link, "the run printed no link")
    # Drains the run's progress output, since a full pipe would stop the run.
    drain = subprocess.Popen(["cat"], stdin=run.stderr, stdout=subprocess.DEVNULL)
    live = follow(link)
    text = run.stdout.read()
    expect(run.wait() == 0, f"the run ended with {run.returncode}")
    drain.wait()
    state = live["live"]["state"]
    expect("ended" in state and out in state and f"run{seed}.html" in state, f"the page says at its end: {state}")
    told = live["models"][0]["end_to_end"]
    page = data_of((folder / f"run{seed}.html").read_text(encoding="utf-8"))["models"][0]
    words = [program, "report", "a.db", out, "--json", "--cost-model", "none"]
    later = json.loads(subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout)["models"][0]
    manifest = json.loads((folder / out / "manifest.json").read_text(encoding="utf-8"))
    expect(page["end_to_end"] == told, f"the page has {page['end_to_end']}, the served one {told}")
    expect(later["end_to_end"] == told, f"the report has {later['end_to_end']}, the run {told}")
    expect(later["estimate"] == page["estimate"], f"the report estimates {later['estimate']}, the run {page['estimate']}")
    expect(manifest["end_to_end"]["tuned_seconds"] == told["tuned_seconds"], "the manifest has other seconds")
    if as_json:
        report = json.loads(text)
        expect(report["end_to_end"] == told, f"--json has {report['end_to_end']}, the page {told}")
        check_tasks(report["tasks"])
        check_warning(told, None, f"seed {seed}")
    else:
        found = re.search(r"^speed-up: +([0-9.]+)x, end to end: .*; the runs differ by ([0-9.]+) %$", text, re.M)
        expect(found, f"no speed-up in the text:\n{text}")
        expect(found.group(1) == f"{told['speedup']:.2f}", f"the text has {found.group(1)}x, the page {told['speedup']}")
        expect(found.group(2) == f"{100 * told['spread']:.1f}", f"the text has {found.group(2)} %, the page {told['spread']}")
        slower = [word for word in re.findall(r"\b([0-9]+\.[0-9]+)x", text) if float(word) < 1]
        expect(not slower, f"a task became slower, {slower}:\n{text}")
        check_warning(told, text, f"seed {seed}")
    return told


def check_estimate(program, model, folder):
    """Checks that nothing is called a speed-up without the comparison of whole models."""
    words = ["tune", model, "-o", "unrun", "--db", "b.db", "--trials", "12", "--threads", THREADS, "--skip-end-to-end", "--quiet"]
    text = subprocess.run([program, *words, "--report", "unrun.html"], cwd=folder, check=True, capture_output=True, text=True).stdout
    page = data_of((folder / "unrun.html").read_text(encoding="utf-8"))["models"][0]
    later = json.loads(subprocess.run([program, "report", "b.db", "unrun", "--json", "--cost-model", "none", "--no-run"], cwd=folder,
                                      check=True, capture_output=True, text=True).stdout)["models"][0]
    found = re.search(r"^estimate: +([0-9.]+)x: ", text, re.M)
    expect(found and "speed-up: " not in text, f"no estimate, or a speed-up:\n{text}")
    for model_data in (page, later):
        expect(model_data["end_to_end"] is None, "a model that was not run has a speed-up")
        expect(f"{model_data['estimate']['ratio']:.2f}" == found.group(1), f"the text has {found.group(1)}x, not {model_data['estimate']}")


def check_python(interpreter, program, model, folder, seed, trials):
    words = [interpreter, "-c", PYTHON, model, str(trials), str(seed), THREADS]
    told = json.loads(subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    words = [program, "report", "python.db", "python", "--json", "--cost-model", "none"]
    report = json.loads(subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout)["models"][0]
    for key in ("speedup", "warning", "spread"):
        expect(told[key] == report["end_to_end"][key], f"Python has {key} {told[key]}, the report {report['end_to_end'][key]}")
    expect(f"{told['speedup']:.2f}x" in told["repr"], f"repr: {told['repr']}")
    expect(told["warning"] is None or told["warning"] in told["repr"], f"repr without the warning: {told['repr']}")


def main():
    global THREADS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tensorsmith", type=pathlib.Path)
    parser.add_argument("model", help="an ONNX file, or zoo:NAME")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--threads", default=THREADS, help="0: all processors")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--python")
    args = parser.parse_args()
    THREADS = args.threads
    program = str(args.tensorsmith.resolve())
    model = args.model if args.model.startswith("zoo:") else str(pathlib.Path(args.model).resolve())
    with tempfile.TemporaryDirectory() as folder, busy_processor(args.busy):
        folder = pathlib.Path(folder)
        for seed in range(args.runs):
            told = check_command(program, model, folder, seed, args.trials, as_json=seed % 2 == 0)
            print(f"seed {seed}: {told['speedup']:.2f}x everywhere, the runs differ by {100 * told['spread']:.1f} %", flush=True)
            if args.python:
                check_python(args.python, program, model, folder, seed, args.trials)
        check_estimate(program, model, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
