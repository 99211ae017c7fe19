"""Cost models of users: functions, classes, and programs that `serve` them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorsmith
from tensorsmith.cost_model import Adapter

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cost_model" / "own_cost_model.py"
SMALL = {"threads": 1, "seed": 1, "end_to_end": False, "warm_start": False}


def test_a_function_ranks_the_candidates(mnist):
    batches = []

    def flat(programs):
        batches.append(programs)
        return np.zeros(len(programs))

    result = tensorsmith.tune(mnist, trials=40, batch=8, cost_model=flat, **SMALL)
    assert result.trials == 40
    assert max(len(batch) for batch in batches) > 100
    largest = max(batches, key=len)
    assert largest.features.shape == (len(largest), len(largest.feature_names))
    assert largest.features.dtype == np.float32
    assert largest.features.flags.writeable
    assert not largest.features.flags.owndata  # a view of the memory that the search filled
    assert np.isfinite(largest.features).all()
    assert len(np.unique(largest.features, axis=0)) > len(largest) / 2
    assert "seconds.loads" in largest.feature_names
    assert set(largest.task_of) <= set(range(len(largest.tasks)))
    assert largest.tasks[0].flops > 0
    assert largest.device["name"]
    assert (largest.stores, largest.decisions, largest.traces, largest.programs) == (None,) * 4
    # The batches stay valid after the search.
    assert all(np.isfinite(batch.features).all() for batch in batches)


class Reader(tensorsmith.CostModel):
    """Reads everything, and learns."""

    inputs = ("features", "stores", "decisions", "traces", "programs")
    sigma = 0.1

    def __init__(self):
        self.seen = []
        self.updates = []

    def predict(self, programs):
        assert self.updates, "a model that learns is not asked before it has learned"
        self.seen.append(programs)
        return -programs.features[:, 0]

    def update(self, programs, seconds):
        self.updates.append((programs, seconds))


def test_a_class_reads_all_and_learns(mnist):
    model = Reader()
    tensorsmith.tune(mnist, trials=24, batch=8, cost_model=model, **SMALL)
    sizes = [len(programs) for programs, _ in model.updates]
    assert sizes == sorted(sizes)
    for programs, seconds in model.updates:
        assert seconds.shape == (len(programs),)
        assert (seconds > 0).all()
    programs = model.seen[-1]
    assert programs.stores.shape == (programs.store_counts.sum(), len(programs.store_names))
    assert len(programs.decisions) == len(programs.traces) == len(programs.programs) == len(programs)
    assert all(len(decisions) > 1 for decisions in programs.decisions)
    assert all("stage=" in trace for trace in programs.traces if trace)
    assert any("for" in text for text in programs.programs)


def test_a_frozen_model_does_not_learn(mnist):
    class Static(Reader):
        def predict(self, programs):
            self.seen.append(programs)
            return np.zeros(len(programs), np.float32)

    model = Static()
    tensorsmith.tune(mnist, trials=24, batch=8, cost_model=model, frozen=True, **SMALL)
    assert model.seen
    assert not model.updates


def test_the_scores_steer_the_search(mnist):
    """A model that is trusted and prefers few decisions of one kind gets them."""

    class Prefers(tensorsmith.CostModel):
        inputs = ("decisions",)
        sigma = 1e-3

        def __init__(self, sign):
            self.sign, self.asked = sign, []

        def predict(self, programs):
            sums = np.array([float(np.log1p(np.abs(d[1:])).sum()) for d in programs.decisions])
            self.asked.append(sums.mean())
            return self.sign * 5 * sums

    means = {}
    for sign in (1, -1):
        model = Prefers(sign)
        tensorsmith.tune(mnist, trials=60, batch=16, cost_model=model, database=f"{sign}.db", **SMALL)
        means[sign] = np.mean(model.asked)
    assert means[1] > means[-1]


@pytest.mark.parametrize(
    ("model", "error", "text"),
    [
        (lambda programs: programs.nothing, AttributeError, "nothing"),
        (lambda programs: np.zeros(3), tensorsmith.errors.Mismatch, "scores of shape"),
        (lambda programs: np.full(len(programs), np.nan), tensorsmith.Error, "returned NaN as score 1 of"),
        (lambda programs: ["a"] * len(programs), ValueError, "could not convert"),
        (Reader, tensorsmith.errors.InvalidArgument, "neither a function nor an object"),
        (3, tensorsmith.errors.InvalidArgument, "3 is neither"),
    ],
)
def test_errors_of_models_end_the_search(mnist, model, error, text):
    with pytest.raises(error, match=text):
        tensorsmith.tune(mnist, trials=40, batch=8, cost_model=model, **SMALL)


def test_unknown_inputs(mnist):
    class Wrong(Reader):
        inputs = "loops"

    with pytest.raises(tensorsmith.Error, match="unknown input 'loops'"):
        tensorsmith.tune(mnist, trials=10, cost_model=Wrong(), **SMALL)


def test_without_measuring(mnist):
    asked = []

    def flat(programs):
        asked.append(len(programs))
        return np.zeros(len(programs))

    tensorsmith.compile_unmeasured(mnist, "unmeasured", cost_model=flat, warm_start=False, threads=1)
    assert sum(asked) > 0


def test_names():
    assert Adapter(Reader()).name == "python:Reader"
    assert Adapter(Reader()).learns
    assert not Adapter(tensorsmith.CostModel()).learns
    assert Adapter(test_names).name == "python:test_names"
    assert Adapter(test_names).inputs == ["features"]


def served(text, lines):
    """Runs a program that serves a model, and returns its answers to the lines."""
    Path("served.py").write_text(f"import numpy as np\nimport tensorsmith\n{text}\n")
    done = subprocess.run([sys.executable, "served.py"], input=b"".join(lines), capture_output=True, check=True)
    return done.stdout, done.stderr.decode()


def test_serve_speaks_the_protocol():
    first = {"protocol": 1, "device": {"name": "d"}, "inputs": [], "feature_names": ["a", "b"], "store_names": []}
    features = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    tasks = np.zeros(3, np.int32)
    shapes = {"tasks": [3], "features": [3, 2]}
    lines = [
        json.dumps(first).encode() + b"\n",
        b'{"task": 0, "name": "conv", "key": "k", "flops": 1.0, "workload": ""}\n',
        json.dumps({"id": 1, "update": 3, "arrays": {**shapes, "seconds": [3]}}).encode() + b"\n",
        tasks.tobytes() + features.tobytes() + np.ones(3, np.float32).tobytes(),
        json.dumps({"id": 2, "predict": 3, "arrays": shapes}).encode() + b"\n",
        tasks.tobytes() + features.tobytes(),
        json.dumps({"id": 3, "predict": 0, "arrays": {"tasks": [0], "features": [0, 2]}}).encode() + b"\n",
    ]
    model = """
class Sum(tensorsmith.CostModel):
    def predict(self, programs):
        print("prints do not disturb", programs.tasks[0].name)
        assert len(programs), "no programs"
        return programs.features.sum(axis=1)
    def update(self, programs, seconds):
        assert seconds.tolist() == [1, 1, 1]
tensorsmith.serve(Sum())"""
    out, err = served(model, lines)
    begin, learned, rest = out.split(b"\n", 2)
    assert json.loads(begin)["inputs"] == ["features"]
    assert json.loads(begin)["update"] is True
    assert json.loads(learned) == {"id": 1}
    scores, rest = rest.split(b"\n", 1)
    assert json.loads(scores) == {"id": 2, "scores": 3}
    assert np.frombuffer(rest[:12], np.float32).tolist() == [3, 7, 11]
    assert json.loads(rest[12:]) == {"error": "AssertionError: no programs"}
    assert "prints do not disturb conv" in err


def test_the_example_is_compared_with_ours(mnist):
    words = [
        "compare",
        str(mnist),
        "--heaviest",
        "1",
        "--trials",
        "24",
        "--batch",
        "8",
        "--seeds",
        "1",
        "--threads",
        "1",
    ]
    words += ["--cost-model", "xgboost", "--cost-model", f"command:{sys.executable} '{EXAMPLE}'", "--json"]
    methods = json.loads(tensorsmith.run_command(*words, quiet=True).splitlines()[-1])["methods"]
    assert [method["model"] for method in methods] == ["xgboost", f"command:{sys.executable} '{EXAMPLE}'"]
    for method in methods:
        assert method["tasks"] == 1
        assert method["runs"][0]["trials"] == 24
        assert method["gain_over_untuned"] > 0


def test_the_page(mnist):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own_cost_model.md").read_text(), re.DOTALL)
    os.symlink(mnist, "model.onnx")
    names = {}
    exec(compile(block.replace("seconds=60", "seconds=4"), "own_cost_model.md", "exec"), names)
    assert names["tuned"].trials > 0
