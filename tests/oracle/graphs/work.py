"""A worker: makes cases, checks them and shrinks those that fail."""

import collections
import dataclasses
import pathlib
import re
import time

import numpy as np

from . import files
from .check import Expected, Failure, check, random_runs
from .generator import make_case
from .oracles import NotComputed
from .runner import Runner
from .shrink import Shrinker
from .truth import Conflict, Undefined

SHRINK_SECONDS = 40
SHRUNK_OF_ONE_LOOK = 5
REFUSED_AGAIN = 4  # how often refused nodes are removed from a graph, which is then checked again


@dataclasses.dataclass
class Settings:
    seed: int
    program: str
    devices: list
    operators: list
    output: str
    variants: int = 2
    only: list = None
    shrink: bool = True
    opset: int = None


@dataclasses.dataclass
class Tally:
    """Statistics of a number of cases."""

    cases: int = 0
    nodes: int = 0
    empty: int = 0
    seconds: float = 0
    runs: int = 0
    elements: int = 0
    operators: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    accepted: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # reason -> nodes
    sources: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # oracle -> nodes
    conflicts: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # operator, case -> nodes
    no_oracle: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    refused: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # reason -> cases
    failures: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # signature -> cases

    def add(self, other):
        for field in dataclasses.fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if isinstance(mine, collections.Counter):
                mine.update(theirs)
            else:
                setattr(self, field.name, mine + theirs)


def normalized(text):
    """Returns a message without the parts that differ between cases."""
    text = re.sub(r"^.*?model\.onnx: ", "", text)
    text = re.sub(r"'[^']*'", "''", text)
    text = re.sub(r"\b(n|v|x|w|c)\d+\b", "_", text)
    text = re.sub(r"\[[^\]]*\]", "[]", text)
    text = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", text)
    return text[:160]


class Worker:
    def __init__(self, settings, accepted):
        self.settings, self.accepted = settings, accepted
        self.runner = Runner(settings.program)
        self.seen = collections.Counter()  # failures, by their signature before shrinking

    def close(self):
        self.runner.close()

    def run(self, number):
        """Returns a Tally, and a list of (signature, content of the case's files)."""
        s = self.settings
        tally = Tally(cases=1)
        found = []
        started = time.monotonic()
        case = make_case(s.seed, number, self.accepted, set(s.operators), s.only)
        if case is None:
            tally.empty += 1
            return tally, found
        tally.nodes += len(case.operators)
        tally.operators.update(case.operators)
        for kind, op, text in case.notes:
            if kind == "undefined":
                tally.accepted[f"undefined: {op}: {text}"] += 1
            elif kind == "conflict":
                tally.conflicts[f"{op} (case {number}): {text[:160]}"] += 1
            else:
                tally.no_oracle[op] += 1
        for truth in case.truth.nodes:
            tally.sources[
                truth.source + ("" if truth.by_reference is None or truth.by_runtime is None else " and both")
            ] += 1
            if truth.rule is not None:
                tally.accepted[f"{truth.rule.verdict}: {truth.node.op_type}: {truth.rule.reason}"] += 1
        rng = np.random.default_rng([s.seed, number, 1])
        runs = random_runs(rng, s.devices, s.variants)
        model, inputs, expected = case.model, case.inputs, Expected(case.truth, case.outputs)
        failures = check(self.runner, model, inputs, expected, runs)
        for _ in range(REFUSED_AGAIN):
            if not failures or failures[0].kind != "refused":
                break
            tally.refused[normalized(failures[0].text)] += 1
            smaller = without_refused(model, inputs, failures[0].text)
            if smaller is None:
                break
            model, inputs = smaller
            expected = Expected(case.truth, [o.name for o in model.graph.output])
            failures = check(self.runner, model, inputs, expected, runs)
        if failures and failures[0].kind == "wrong":
            failures = self.with_other_draws(model, inputs, runs, failures)
        tally.runs += len(runs)
        tally.elements += sum(int(x.size) for x in expected.exact)
        if failures and failures[0].kind != "refused":
            found.append(self.found(number, model, inputs, case, failures, runs))
            tally.failures[found[-1][0]] += 1
        tally.seconds = time.monotonic() - started
        return tally, found

    def with_other_draws(self, model, inputs, runs, failures):
        """Returns the failures; none if the results are within the tolerance for other random numbers."""
        for seed in (1, 2, 3):
            try:
                truth = files.evaluate(model, inputs, self.accepted, seed)
            except (Undefined, Conflict, NotComputed):
                return failures
            again = check(self.runner, model, inputs, Expected(truth, [o.name for o in model.graph.output]), runs)
            if not again:
                return []
            failures = again
        return failures

    def found(self, number, model, inputs, case, failures, runs):
        first = failures[0]
        failing = [r for r in runs if any(f.where == describe_run(r) for f in failures)] or runs
        known = case.truth.values
        producer = next((n.op_type for n in model.graph.node if first.output in n.output), "") if first.output else ""
        look = f"{first.kind} {producer}: {normalized(first.text) if first.kind != 'wrong' else ''}"
        self.seen[look] += 1
        if self.seen[look] > SHRUNK_OF_ONE_LOOK:
            return f"again {look}", None
        if self.settings.shrink:
            model, inputs = self.shrunk(model, inputs, known, first, failing)
            truth = files.evaluate(model, inputs, self.accepted)
            again = check(
                self.runner, model, inputs, Expected(truth, [o.name for o in model.graph.output]), wider(failing)
            )
            failures = [f for f in again if f.kind == first.kind] or failures
        else:
            truth = case.truth
        ops = sorted({n.op_type for n in model.graph.node if n.op_type != "Constant"})
        signature = f"{failures[0].kind} {' '.join(ops)[:80]}: " + (
            normalized(failures[0].text) if failures[0].kind != "wrong" else ""
        )
        facts = {
            "seed": self.settings.seed,
            "case": number,
            "signature": signature,
            "kind": failures[0].kind,
            "failures": [f"{f.where}: {f.text}" for f in failures],
            "runs": wider(failing),
            "again": f"scripts/fuzz_graphs --seed {self.settings.seed} --case {number}",
        }
        return signature, (model, inputs, {o.name: truth.values[o.name] for o in model.graph.output}, facts)

    def shrunk(self, model, inputs, values, first, failing):
        def fails(m, x):
            try:
                truth = files.evaluate(m, x, self.accepted)
            except (Undefined, Conflict, NotComputed):
                return False
            result = check(self.runner, m, x, Expected(truth, [o.name for o in m.graph.output]), wider(failing))
            return any(
                f.kind == first.kind and (f.kind == "wrong" or normalized(f.text) == normalized(first.text))
                for f in result
            )

        try:
            if not fails(model, inputs):
                return model, inputs
            return Shrinker(fails, values, SHRINK_SECONDS).shrink(model, inputs)
        except Exception:  # the unshrunk case is better than none
            return model, inputs


def describe_run(run):
    from .check import describe

    return describe(run)


def wider(runs):
    """Returns the runs with more seeds: random schedules differ from graph to graph, so a shrunk graph needs
    several."""
    out = []
    for run in runs[:3]:
        out.append(run)
        if run["schedule"] == "random":
            out += [{**run, "seed": s} for s in range(4)]
    return out


def without_refused(model, inputs, text):
    """Returns the graph without the node that the message names and the nodes that need it; None if nothing is
    left."""
    import copy

    from .shrink import cleaned

    match = re.search(r"model\.onnx: (?:node ')?(n\d+)\b", text)
    if not match:
        return None
    gone, kept = set(), []
    for node in model.graph.node:
        if node.name == match.group(1) or any(i in gone for i in node.input):
            gone.update(o for o in node.output if o)
        else:
            kept.append(node)
    outputs = [o for o in model.graph.output if o.name not in gone]
    if not outputs:
        produced = [o for n in kept if n.op_type != "Constant" for o in n.output if o]
        if not produced:
            return None
        return None
    m = copy.deepcopy(model)
    del m.graph.node[:]
    m.graph.node.extend(kept)
    del m.graph.output[:]
    m.graph.output.extend(outputs)
    return cleaned(m, inputs)


def write(folder, found):
    signature, (model, inputs, values, facts) = found
    files.save(pathlib.Path(folder), model, inputs, values, facts)


__all__ = ["Failure", "Settings", "Tally", "Worker", "write"]
