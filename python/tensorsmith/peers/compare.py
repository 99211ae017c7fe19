"""Latency of a compiled model and of other engines that run in turns.

In each round every engine runs for a slice of time, one after the other. A round's ratio is the quotient of two median
latencies of that round. Before any timing the outputs are compared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .engines import PEERS, EngineCannot, first_line


class OurModel(Protocol):
    """A compiled model whose inputs and outputs stay in place."""

    inputs: Mapping[str, np.ndarray]  #: by name, in the model's order
    outputs: Sequence[np.ndarray]

    def run(self) -> None:
        """Runs the model on `inputs` and writes `outputs`."""


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison of engines."""

    rounds: int = 15
    slice_seconds: float = 0.1  #: seconds that an engine runs in each round
    pause_seconds: float = 0.02  #: pause between two engines, since threads of some engines spin for a while
    seed: int = 0  #: seed of the inputs
    rtol: float = 1e-3
    atol: float = 1e-4


@dataclass(frozen=True)
class EngineComparison:
    """A comparison of a compiled model with another engine. If the engine was not timed, `problem` gives the reason and
    the times are None."""

    engine: str  #: name and version, such as "ONNX Runtime 1.31.1"
    problem: str | None = None  #: reason why the two were not compared
    outputs_differ: bool = False  #: whether the problem is that outputs differ
    tensorsmith_seconds: float | None = None  #: seconds of a run, median of the rounds
    engine_seconds: float | None = None
    ratio: float | None = None  #: median of the rounds' ratios; above 1 Tensorsmith is faster
    ratio_p10: float | None = None  #: the tenth and ninetieth percentile of the rounds' ratios
    ratio_p90: float | None = None


def fill(inputs: Mapping[str, np.ndarray], seed: int) -> None:
    """Fills the inputs: normally distributed floats; bytes of all values, so that saturating sums are noticed; other
    integers are 0 or 1, since they may be indices."""
    random = np.random.default_rng(seed)
    for array in inputs.values():
        if np.issubdtype(array.dtype, np.floating):
            array[...] = random.standard_normal(array.shape).astype(array.dtype)
        else:
            is_byte = array.dtype in (np.uint8, np.int8)
            low, high = (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max) if is_byte else (0, 1)
            array[...] = random.integers(low, high + 1, array.shape)


def compare(
    ours: OurModel, onnx_file: str, engines: Sequence[str], threads: int, settings: Settings
) -> list[EngineComparison]:
    """Returns a comparison for each engine, in their order. Engines prepare for the shapes of the compiled model.

    Args:
        engines: names of PEERS.
        threads: number of threads of every engine, at least 1; `ours` must have the same number.
    """
    fill(ours.inputs, settings.seed)
    ours.run()
    found: dict[str, EngineComparison] = {}
    prepared: dict[str, Any] = {}
    for name in dict.fromkeys(engines):
        try:
            engine = PEERS[name](onnx_file, threads, ours.inputs)
            outputs = engine.run(ours.inputs)
        except ImportError as error:
            problem = f"{error}; pip install {PEERS[name].packages}"
            found[name] = EngineComparison(name, problem)
            continue
        except EngineCannot as why:
            found[name] = EngineComparison(name, str(why))
            continue
        except Exception as error:  # ONNX Runtime and OpenVINO have no common exception type for rejected models
            found[name] = EngineComparison(name, first_line(error))
            continue
        problem = _difference(ours.outputs, outputs, settings)
        if problem:
            found[name] = EngineComparison(engine.version, problem, outputs_differ=True)
        else:
            prepared[name] = engine
    own_times: list[float] = []
    times: dict[str, list[float]] = {name: [] for name in prepared}
    for _ in range(settings.rounds if prepared else 0):
        own_times.append(slice_of_runs(ours.run, settings.slice_seconds))
        time.sleep(settings.pause_seconds)
        for name, engine in prepared.items():
            times[name].append(slice_of_runs(lambda engine=engine: engine.run(ours.inputs), settings.slice_seconds))
            time.sleep(settings.pause_seconds)
    for name, engine in prepared.items():
        ratios = [theirs / own for theirs, own in zip(times[name], own_times)]
        found[name] = EngineComparison(
            engine.version,
            tensorsmith_seconds=statistics.median(own_times),
            engine_seconds=statistics.median(times[name]),
            ratio=statistics.median(ratios),
            ratio_p10=float(np.percentile(ratios, 10)),
            ratio_p90=float(np.percentile(ratios, 90)),
        )
    return [found[name] for name in engines]


def slice_of_runs(run: Callable[[], Any], seconds: float) -> float:
    """Returns the median latency of the runs that fit into `seconds`, at least two, after a warm-up run."""
    run()
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < stop:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _difference(outputs: Sequence[np.ndarray], wanted: Sequence[Any], settings: Settings) -> str:
    """Returns a text with the difference of the outputs; empty if they agree."""
    worst = 0.0
    agree = len(outputs) == len(wanted)
    for got, want in zip(outputs, wanted):
        want = np.asarray(want)
        if got.shape != want.shape:
            return f"an output has the shape {want.shape} there and {got.shape} here"
        worst = max(worst, float(np.max(np.abs(got.astype(np.float64) - want.astype(np.float64)), initial=0)))
        agree = agree and np.allclose(got, want, rtol=settings.rtol, atol=settings.atol)
    return "" if agree else f"the outputs differ by up to {worst:g}"
