"""The command behind scripts/fuzz_graphs."""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import sys
import time

from . import files, operators  # noqa: F401
from .accepted import AcceptedList
from .check import Expected, all_runs, check
from .operators import GENERATORS
from .oracles import NotComputed
from .pool import Pool
from .runner import Runner, devices as list_devices, operators as list_operators
from .truth import Conflict, Undefined
from .work import Settings, Tally, Worker, write

KEEP_OF_ONE_KIND = 3


class State:
    """Progress in OUTPUT/state.json, from which a stopped run continues."""

    def __init__(self, output, seed):
        self.path = pathlib.Path(output) / "state.json"
        self.tally, self.next, self.seed = Tally(), 0, seed
        self.done_above = set()
        self.kept = collections.Counter()
        if self.path.exists():
            data = json.loads(self.path.read_text())
            if data["seed"] != seed:
                raise SystemExit(f"fuzz_graphs: {self.path} has the seed {data['seed']}; give another --output")
            self.next = data["next"]
            self.done_above = set(data["done_above"])
            self.kept.update(data["kept"])
            for field in dataclasses.fields(Tally):
                value = data["tally"][field.name]
                setattr(self.tally, field.name, collections.Counter(value) if isinstance(value, dict) else value)

    def finish(self, numbers, tally):
        self.tally.add(tally)
        self.done_above.update(numbers)
        while self.next in self.done_above:
            self.done_above.remove(self.next)
            self.next += 1

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {
                "seed": self.seed,
                "next": self.next,
                "done_above": sorted(self.done_above),
                "kept": self.kept,
                "tally": vars(self.tally),
            },
            indent=1,
        )
        temporary = self.path.with_suffix(".new")
        temporary.write_text(text)
        temporary.replace(self.path)


def summary(tally, known):
    lines = [
        f"{tally.cases} graphs, {tally.nodes} operators, {tally.runs} runs, {tally.elements} output elements, "
        f"{tally.seconds / max(tally.cases, 1) * 1e3:.0f} ms a graph and process"
    ]
    covered = [o for o in known if tally.operators[o]]
    lines.append(
        f"operators covered: {len(covered)} of {len(known)}"
        + (f"; not: {' '.join(o for o in known if not tally.operators[o])}" if len(covered) < len(known) else "")
    )
    lines.append("decided by: " + ", ".join(f"{k} {v}" for k, v in tally.sources.most_common()))
    for title, counter in (
        ("accepted", tally.accepted),
        ("refused imports", tally.refused),
        ("nodes that no oracle computes", tally.no_oracle),
        ("OPEN: oracles differ and accepted.txt says nothing", tally.conflicts),
        ("FAILURES", tally.failures),
    ):
        if counter:
            lines.append(f"{title}: {sum(counter.values())}")
            lines += [f"  {count:6} {text}" for text, count in counter.most_common()]
    return "\n".join(lines)


def check_generators(known):
    missing = sorted(set(known) - set(GENERATORS))
    if missing:
        raise SystemExit(
            "fuzz_graphs: operators without a generator (tests/oracle/graphs/operators): " + " ".join(missing)
        )


def fuzz(options, settings):
    state = State(options.output, options.seed)
    numbers = [
        n for n in range(state.next, options.first + options.cases) if n not in state.done_above and n >= options.first
    ]
    if options.first and not state.next:
        state.next = options.first
    started = last = time.monotonic()
    deadline = started + options.seconds if options.seconds else None
    at_start = state.tally.cases
    try:
        for own, tally, found in Pool(settings, options.jobs).run(numbers, deadline):
            state.finish(own, tally)
            for one in found:
                state.kept[one[0]] += 1
                if one[1] is not None and state.kept[one[0]] <= KEEP_OF_ONE_KIND:
                    folder = pathlib.Path(options.output) / f"case_{one[1][3]['case']}"
                    write(folder, one)
                    print(f"{folder}: {one[0]}\n    {one[1][3]['failures'][0]}", flush=True)
            state.save()
            now = time.monotonic()
            if now - last > 10:
                last = now
                print(
                    f"{state.tally.cases} graphs, {sum(state.tally.failures.values())} failures, "
                    f"{sum(state.tally.conflicts.values())} open, {(state.tally.cases - at_start) / (now - started):.1f}/s",
                    file=sys.stderr,
                    flush=True,
                )
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
    histogram = pathlib.Path(options.output) / "operators.txt"
    state.save()
    histogram.write_text("".join(f"{n:8} {o}\n" for o, n in state.tally.operators.most_common()))
    print(summary(state.tally, settings.operators))
    return 1 if state.tally.failures or state.tally.conflicts else 0


def replay(options, settings):
    """Checks saved cases in every variant."""
    runner = Runner(settings.program)
    accepted = AcceptedList()
    failed = 0
    folders = [
        f
        for given in options.replay
        for f in (
            [pathlib.Path(given)]
            if (pathlib.Path(given) / "model.onnx").exists()
            else sorted(pathlib.Path(given).iterdir())
        )
    ]
    for folder in folders:
        if not (folder / "model.onnx").exists():
            continue
        model, inputs, facts = files.load(folder)
        try:
            truth = files.evaluate(model, inputs, accepted)
        except (Undefined, Conflict, NotComputed) as error:
            print(f"{folder}: the oracles do not decide the result: {error}")
            continue
        runs = list(facts.get("runs", [])) + all_runs(settings.devices)
        failures = check(runner, model, inputs, Expected(truth, [o.name for o in model.graph.output]), runs)
        failed += bool(failures)
        print(
            f"{folder}: "
            + (
                "right"
                if not failures
                else f"{failures[0].kind}, {failures[0].where}: {failures[0].text}"
                + (f" (and {len(failures) - 1} more)" if len(failures) > 1 else "")
            ),
            flush=True,
        )
    runner.close()
    return 1 if failed else 0


def keep(options, settings):
    """Saves a case as a regression graph, with the outputs that the oracles give today."""
    source, name = options.keep
    model, inputs, _ = files.load(source)
    truth = files.evaluate(model, inputs, AcceptedList())
    expected = {o.name: truth.values[o.name] for o in model.graph.output}
    folder = pathlib.Path(__file__).resolve().parents[2] / "data" / "graphs" / name
    files.save(folder, model, inputs, expected)
    print(f"{folder}: {sum(f.stat().st_size for f in folder.rglob('*') if f.is_file())} bytes")
    return 0


def one_case(options, settings):
    worker = Worker(settings, AcceptedList())
    tally, found = worker.run(options.case)
    worker.close()
    for one in (f for f in found if f[1] is not None):
        folder = pathlib.Path(options.output) / f"case_{options.case}"
        write(folder, one)
        print(f"{folder}: {one[0]}")
        print("\n".join("    " + f for f in one[1][3]["failures"]))
    print(summary(tally, []))
    return 1 if found or tally.conflicts else 0


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/fuzz_graphs",
        description="Random ONNX graphs, compared with ONNX Runtime and "
        "the ONNX reference evaluator (docs/fuzzing.md).",
    )
    parser.add_argument("--cases", type=int, default=1000, help="number of graphs (1000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the graphs and runs (1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first graph (0)")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--case", type=int, help="number of a single graph to check")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (all cores)")
    parser.add_argument("--variants", type=int, default=2, help="runs besides the untuned one (2)")
    parser.add_argument("--output", default="build/fuzz_graphs", help="folder for failing cases and the state")
    parser.add_argument("--only", nargs="+", metavar="OP", help="make graphs of these operators")
    parser.add_argument(
        "--devices", nargs="+", metavar="DEVICE", help="devices to compile for (every ISA of this machine)"
    )
    parser.add_argument("--no-shrink", action="store_true", help="keep failing graphs as they are")
    parser.add_argument("--replay", nargs="+", metavar="FOLDER", help="check saved cases again, in every variant")
    parser.add_argument(
        "--keep",
        nargs=2,
        metavar=("FOLDER", "NAME"),
        help="make a saved case a regression graph (tests/data/graphs/NAME)",
    )
    parser.add_argument("--runner", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = list_operators(options.runner)
    check_generators(known)
    settings = Settings(
        options.seed,
        options.runner,
        options.devices or list_devices(options.runner),
        known,
        options.output,
        options.variants,
        options.only,
        not options.no_shrink,
    )
    if options.replay:
        return replay(options, settings)
    if options.keep:
        return keep(options, settings)
    if options.case is not None:
        return one_case(options, settings)
    return fuzz(options, settings)
