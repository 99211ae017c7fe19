"""Checks one case: compares the runner's results with the expected ones."""

import dataclasses


from . import compare
from .runner import Crash

EXECUTIONS = (5, 40, 200)  # a difference counts if it remains after each of these numbers of disturbed executions


@dataclasses.dataclass
class Failure:
    kind: str  # "wrong", "crash", "refused", "error"
    where: str  # the run, or the stage
    text: str
    output: str = ""


def random_runs(rng, devices, variants):
    """Returns the untuned model on the best instruction set, then other ISAs, threads and random schedules."""
    runs = [{"device": devices[0], "threads": 1, "schedule": "default"}]
    for _ in range(variants):
        runs.append(
            {
                "device": str(rng.choice(devices)),
                "threads": int(rng.integers(1, 3)),
                "schedule": str(rng.choice(["default", "random", "random", "random"])),
                "seed": int(rng.integers(2**31)),
            }
        )
    if rng.random() < 0.1:
        runs.append({"device": devices[0], "threads": 1, "schedule": "interpreter"})
    return runs


def all_runs(devices, seeds=range(3)):
    """Returns every variant, for the analysis of a found case and for the verification of a fix."""
    runs = [{"device": devices[0], "threads": 1, "schedule": "interpreter"}]
    for device in devices:
        for threads in (1, 2):
            runs.append({"device": device, "threads": threads, "schedule": "default"})
            runs += [{"device": device, "threads": threads, "schedule": "random", "seed": s} for s in seeds]
    return runs


def describe(run):
    text = f"{run['device']}, {run['threads']} threads, {run['schedule']}"
    return text + (f" {run['seed']}" if run["schedule"] == "random" else "")


class Expected:
    """Expected outputs of a graph, with disturbed executions, which are made on demand."""

    def __init__(self, truth, outputs):
        self.truth, self.names = truth, outputs
        self.exact = [truth.values[n] for n in outputs]
        self.count = 0
        self.executions = []

    def disturbed(self, count):
        if self.count < count:
            self.executions = self.truth.disturbed(count, 1)
            self.count = count
        return self.executions

    def difference(self, i, got):
        """Returns None, or a text that describes the error in output i."""
        if compare.difference(got, self.exact[i]) is None:
            return None
        wrong = None
        for count in EXECUTIONS:
            wrong = compare.difference(got, self.exact[i], [e[self.names[i]] for e in self.disturbed(count)])
            if wrong is None:
                return None
        return wrong


def check(runner, model, inputs, expected, runs):
    """Returns the failures of the case; an empty list if all results are right."""
    try:
        answer = runner.run(model, inputs, runs)
    except Crash as error:
        return [Failure("crash", guilty(runner, model, inputs, runs), str(error))]
    if "stage" in answer:
        kind = "refused" if answer["stage"] == "import" and answer["code"] != "bug" else "error"
        return [Failure(kind, answer["stage"], answer["error"])]
    failures = []
    seen = {}
    for r, (run, asked) in enumerate(zip(answer["runs"], runs)):
        if "stage" in run:
            failures.append(Failure("error", describe(asked), f"{run['stage']}: {run['error']}"))
            continue
        if run["same_as"] in seen:
            for failure in seen[run["same_as"]]:
                failures.append(dataclasses.replace(failure, where=describe(asked)))
            continue
        own = []
        for i, got in enumerate(run["outputs"]):
            wrong = expected.difference(i, got)
            if wrong is not None:
                own.append(
                    Failure("wrong", describe(asked), f"output '{expected.names[i]}' {wrong}", expected.names[i])
                )
        seen[r] = own
        failures += own
    return failures


def guilty(runner, model, inputs, runs):
    """Returns the description of the run that crashes."""
    for run in runs:
        try:
            runner.run(model, inputs, [run])
        except Crash:
            return describe(run)
    return "one run after the other"
