#!/usr/bin/env python3
"""Tests scripts/benchmark_models with one of our kinds and with another program, on the records of tests/data. A
second run keeps the results of the first.

    benchmark_models_test.py SOURCE_DIR TENSORSMITH
"""

import json
import os
import re
import subprocess
import sys
import tempfile

THEIRS = """
import json, statistics, sys
train, test, output = sys.argv[1:]
seconds = [row["seconds"][0] for row in map(json.loads, open(train)) if row["error_no"] == 0]
with open(output, "w") as out:
    for row in map(json.loads, open(test)):
        assert "seconds" not in row and "error_no" not in row and row["features"] and row["steps"], row.keys()
        print(statistics.median(seconds), file=out)
"""


def main():
    source, tensorsmith = sys.argv[1:]
    data = os.path.join(source, "tests", "data", "ansor")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "theirs.py")
        with open(program, "w", encoding="utf-8") as out:
            out.write(THEIRS)
        command = [os.path.join(source, "scripts", "benchmark_models"), os.path.join(folder, "work"), os.path.join(data, "workloads.json"),
                   *(os.path.join(data, f"{device}.jsonl.zst") for device in ("v100", "k80", "mi50")), "--tables", "by-task,device", "--seeds", "0",
                   "--threads", "1", "--tensorsmith", tensorsmith, "--entry", "ours=roofline", "--entry",
                   f"theirs=command:{sys.executable} {program}"]
        first = subprocess.run(command, capture_output=True, text=True, check=False)
        assert first.returncode == 0, first.stderr
        # By workload: devices, mean, ranks. Left-out device: one error each, and intervals if the entry has them.
        for entry in ("ours", "theirs"):
            assert re.search(rf"^\| {entry} (?:\| [\d.]+ \([\d.]+\) ){{3}}\| [\d.]+ \| ", first.stdout, re.M), first.stdout
        assert re.search(r"^\| ours \| k80 \| [\d.]+ \([\d.]+\) \| .* \| \d+, \d+, \d+ \|$", first.stdout, re.M), first.stdout
        assert re.search(r"^\| theirs \| v100 \| [\d.]+ \([\d.]+\) \| .* \|  \|$", first.stdout, re.M), first.stdout
        os.remove(program)  # its predictions are stored
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        assert again.stdout == first.stdout, again.stdout
        # Tasks are chosen by the model, in batches: one row each, and no task twice.
        chosen = subprocess.run([*command[:6], "--tables", "few", "--profile-tasks", "1,2", "--choose", "next", "--seeds", "0", "--threads", "1",
                                 "--tensorsmith", tensorsmith, "--entry", "small=tensorsmith:rounds=5,hold_out=false"],
                                capture_output=True, text=True, check=False)
        assert chosen.returncode == 0, chosen.stderr
        for tasks in (1, 2):
            assert re.search(rf"^\| small \| {tasks} (?:\| [\d.]+ \([\d.]+\) ){{3}}\| [\d.]+ \|$", chosen.stdout, re.M), chosen.stdout
        splits = os.path.join(folder, "work", "splits")
        lists = [json.load(open(os.path.join(splits, name), encoding="utf-8")) for name in os.listdir(splits) if name.endswith(".keys")]
        assert sorted(len(keys) for keys in lists) == [1, 1, 1, 2, 2, 2] and all(len(set(keys)) == len(keys) for keys in lists), lists
        # Distillation from one of our models: scores without teacher, taught, after the tasks, and of the teacher.
        small = "tensorsmith:rounds=5,hold_out=false"
        taught = subprocess.run([*command[:6], "--tables", "distilled", "--profile-tasks", "2", "--seeds", "0", "--threads", "1", "--tensorsmith",
                                 tensorsmith, "--teacher", small, "--entry", "pupil=xgboost:rounds=5"],
                                capture_output=True, text=True, check=False)
        assert taught.returncode == 0, taught.stderr
        assert re.search(r"^\| pupil \| 2 (?:\| [\d.]+(?: ± [\d.]+)? \([\d.]+\) ){4}\|$", taught.stdout, re.M), taught.stdout
        refused = subprocess.run([*command, "--tables", "unseen"], capture_output=True, text=True, check=False)
        assert refused.returncode != 0 and "needs --unseen" in refused.stderr, refused.stderr


if __name__ == "__main__":
    main()
