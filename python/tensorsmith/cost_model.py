"""Cost models of your own: they rank the candidates of a search.

    def cost_model(programs):                  # a function, for `tune(..., cost_model=cost_model)`
        seconds = ["seconds." in name for name in programs.feature_names]
        return -numpy.log(programs.features[:, seconds].sum(axis=1) + 1e-9)

A `CostModel` also learns from the measurements. `serve` makes a program of either, for `tensorsmith compare` and all
other commands with `--cost-model "command:python3 FILE"`.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from . import errors


@dataclass(frozen=True)
class Task:
    """A tensor program to find schedules for."""

    name: str
    key: str
    flops: float  #: operations of a call
    workload: str  #: what it computes, as text


@dataclass(frozen=True, repr=False)
class Programs:
    """A batch of programs. Arrays have an element or a row for each program; the model may keep and change them.
    Parts that are not among the `inputs` of the model are None.
    """

    device: dict[str, Any]  #: properties of the device
    tasks: Sequence[Task]  #: all tasks so far
    task_of: np.ndarray  #: number of each program's task
    feature_names: Sequence[str]
    store_names: Sequence[str]
    features: np.ndarray | None = None  #: float32; see `tensorsmith dataset schema cpu-nests`
    stores: np.ndarray | None = None  #: float32: rows of all programs; see `tensorsmith dataset schema per-store`
    store_counts: np.ndarray | None = None  #: number of each program's rows in `stores`
    decisions: Sequence[Sequence[int]] | None = None  #: number of the sketch, then its decisions; empty: not known
    traces: Sequence[str] | None = None  #: steps of the schedule
    programs: Sequence[str] | None = None  #: loops

    def __len__(self) -> int:
        return len(self.task_of)

    def __repr__(self) -> str:
        return f"<Programs: {len(self)} of {len(self.tasks)} tasks>"


class CostModel:
    """Base class of cost models that learn, or that read something else than features."""

    inputs: Sequence[str] = ("features",)  #: of "features", "stores", "decisions", "traces" and "programs"
    #: Standard deviation of the scores' error. The smaller it is, the more the scores count beside the estimate of
    #: the design space. 0: they count more with each measurement.
    sigma: float = 0

    def predict(self, programs: Programs) -> Any:
        """Returns a score for each program: minus the logarithm of its expected seconds. A constant may be added to
        all programs of a task. Higher is faster; -inf: the program cannot run."""
        raise NotImplementedError

    def update(self, programs: Programs, seconds: np.ndarray) -> None:
        """Learns from all measurements of the search so far; inf stands for a program that failed."""


Scorer = CostModel | Callable[[Programs], Any]


class Adapter:
    """Calls a model with arrays; for the native module and for `serve`."""

    def __init__(self, model: Scorer) -> None:
        is_model = callable(getattr(model, "predict", None))
        if isinstance(model, type) or not (is_model or callable(model)):
            raise errors.InvalidArgument(
                f"{model!r} is neither a function nor an object with predict(programs)", "cost_model"
            )
        self._predict = model.predict if is_model else model
        update = getattr(model, "update", None) if is_model else None
        self._update = update
        self.learns = callable(update) and getattr(type(model), "update", None) is not CostModel.update
        inputs = getattr(model, "inputs", CostModel.inputs)
        self.inputs = [inputs] if isinstance(inputs, str) else [str(name) for name in inputs]
        self.sigma = float(getattr(model, "sigma", CostModel.sigma))
        name = getattr(model, "__qualname__", None) or type(model).__qualname__
        self.name = f"python:{name}"
        self._tasks: list[Task] = []
        self._device: dict[str, Any] = {}
        self._names: tuple[Sequence[str], Sequence[str]] = ((), ())

    def begin(self, device: str, feature_names: Sequence[str], store_names: Sequence[str]) -> None:
        self._tasks = []
        self._device = json.loads(device)
        self._names = (tuple(feature_names), tuple(store_names))

    def add_task(self, name: str, key: str, flops: float, workload: str) -> None:
        self._tasks.append(Task(name, key, flops, workload))

    def predict(self, **arrays: Any) -> np.ndarray:
        scores = np.ascontiguousarray(self._predict(self._programs(arrays)), dtype=np.float64)
        count = len(arrays["task_of"])
        if scores.shape != (count,):
            raise errors.Mismatch(f"returned scores of shape {scores.shape} for {count} programs", self.name)
        return scores

    def update(self, seconds: np.ndarray, **arrays: Any) -> None:
        if self._update is not None:
            self._update(self._programs(arrays), seconds)

    def line_of(self, error: BaseException) -> str:
        """Returns one line about an exception."""
        return " ".join(traceback.format_exception_only(type(error), error)[-1].split())

    def _programs(self, arrays: dict[str, Any]) -> Programs:
        features, stores = self._names
        return Programs(self._device, self._tasks, feature_names=features, store_names=stores, **arrays)


def serve(model: Scorer) -> None:
    """Answers a command of Tensorsmith that runs this program as its `--cost-model command:PROGRAM`, until it ends.
    What the program prints goes to standard error.
    """
    adapter = Adapter(model)
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def answer(fields: dict[str, Any], data: bytes = b"") -> None:
        answers.write(json.dumps(fields).encode() + b"\n" + data)
        answers.flush()

    for line in questions:
        message = json.loads(line)
        try:
            if "protocol" in message:
                names = message["feature_names"], message["store_names"]
                adapter.begin(json.dumps(message["device"]), *names)
                traits = {"inputs": adapter.inputs, "update": adapter.learns, "sigma": adapter.sigma}
                answer({"protocol": 1, "format": "binary", "timeout": 3600, **traits})
            elif "task" in message:
                adapter.add_task(message["name"], message["key"], message["flops"], message["workload"])
            else:
                arrays = _arrays_of(message, questions)
                if "update" in message:
                    adapter.update(**arrays)
                    answer({"id": message["id"]})
                else:
                    scores = adapter.predict(**arrays).astype(np.float32)
                    answer({"id": message["id"], "scores": len(scores)}, scores.tobytes())
        except Exception as error:
            traceback.print_exc()
            answer({"error": adapter.line_of(error)})


_TEXTS = ("decisions", "traces", "programs")


def _arrays_of(message: dict[str, Any], stream: BinaryIO) -> dict[str, Any]:
    """Returns the parts of a batch: texts from the message, and the arrays that follow it."""
    parts: dict[str, Any] = {name: message[name] for name in _TEXTS if name in message}
    for name, shape in message["arrays"].items():
        dtype = np.int32 if name in ("tasks", "store_counts") else np.float32
        array = np.empty(shape, dtype)
        view = memoryview(array).cast("B") if array.size else memoryview(b"")
        while len(view):
            view = view[stream.readinto(view) or _ended() :]
        parts["task_of" if name == "tasks" else name] = array
    return parts


def _ended() -> int:
    raise EOFError("the stream ended within a batch")
