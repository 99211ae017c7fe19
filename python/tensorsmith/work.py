"""Tuning, compiling and predicting."""

from __future__ import annotations

import json
import math
import operator
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _native, errors
from .commands import command_path
from .cost_model import Adapter, Scorer
from .model import Model, load
from .progress import TuneProgressBar
from .sources import ModelSource, model_file, model_name

PathLike = str | os.PathLike[str]
Shapes = Mapping[str, Sequence[int]]
Dims = Mapping[str, int]
Constants = Mapping[str, Any]


@dataclass(frozen=True)
class TaskReport:
    """Result of tuning one tensor program. Seconds are those of one call; None: not known."""

    name: str
    calls: float
    trials: int
    failures: int
    kept: bool  #: whether the untuned schedule is used
    untuned_seconds: float | None
    tuned_seconds: float | None  #: schedule of the compiled model, measured alone


@dataclass(frozen=True)
class Estimate:
    """Sum of the kernels' times, each measured alone. Its ratio is not the speed-up of the model."""

    untuned_seconds: float
    tuned_seconds: float
    ratio: float  #: untuned time divided by tuned time


@dataclass(frozen=True, repr=False)
class TuneResult:
    """Result of `tune`."""

    directory: str  #: folder of the compiled model
    database: str  #: database with the records
    untuned_seconds: float | None  #: a run of the whole untuned model; None: the whole model was not run
    tuned_seconds: float | None  #: a run of the whole compiled model, alternating with the untuned one
    speedup: float | None  #: untuned time divided by tuned time; None: the whole model was not run
    spread: float | None  #: distance of the runs' quartiles divided by the lower quartile
    warning: str | None  #: why the speed-up is uncertain, if other programs disturbed the runs
    estimate: Estimate | None  #: result without running the whole model
    trials: int  #: number of measurements in this run
    resumed: int  #: number of records that existed already
    elapsed_seconds: float
    tasks: tuple[TaskReport, ...]
    notes: tuple[str, ...]
    report: dict[str, Any] = field(repr=False)  #: everything that `tensorsmith tune --json` prints

    def load(self, threads: int = 0) -> Model:
        """Loads the compiled model."""
        return load(self.directory, threads)

    def __repr__(self) -> str:
        if self.speedup is not None and self.spread is not None:
            gain = f"{self.speedup:.2f}x, the runs differ by {100 * self.spread:.1f} %"
        elif self.estimate is not None:
            gain = f"estimate {self.estimate.ratio:.2f}x, the whole model was not run"
        else:
            gain = "not known"
        warning = f", warning: {self.warning}" if self.warning else ""
        return f"<TuneResult {self.directory!r}, {self.trials} trials, speed-up: {gain}{warning}>"


@dataclass(frozen=True)
class CompiledModel:
    """Result of `compile`."""

    directory: str
    kernels: int
    tasks: int
    tuned_tasks: int  #: number of tasks with schedules from the database
    notes: tuple[str, ...]

    def load(self, threads: int = 0, device: str = "") -> Model:
        """Loads the compiled model."""
        return load(self.directory, threads, device)


@dataclass(frozen=True)
class TaskChoice:
    """The schedule that was chosen for a tensor program without measuring."""

    name: str
    calls: int
    chosen: str  #: "untuned", "record", "fast elsewhere" or "predicted"
    expected_gain: float  #: expected untuned time divided by expected time
    source: dict[str, Any] | None = None  #: the program that was fast elsewhere


@dataclass(frozen=True)
class UnmeasuredModel:
    """Result of `compile_unmeasured`."""

    directory: str
    tasks: tuple[TaskChoice, ...]
    notes: tuple[str, ...]

    def load(self, threads: int = 0, device: str = "") -> Model:
        """Loads the compiled model."""
        return load(self.directory, threads, device)


@dataclass(frozen=True)
class TaskPrediction:
    """Predicted time of one tensor program, in seconds of one call."""

    name: str
    calls: int
    seconds: float
    least_seconds: float  #: lower bound from the device's limits


@dataclass(frozen=True)
class Prediction:
    """A predicted latency."""

    seconds: float
    low_seconds: float | None  #: lower end of the interval that contains 90 %; None: not known
    high_seconds: float | None
    least_seconds: float  #: lower bound from the device's limits
    predictor: str  #: what made the prediction
    tasks: tuple[TaskPrediction, ...]
    notes: tuple[str, ...]
    report: dict[str, Any] = field(repr=False)  #: everything that `tensorsmith predict --json` prints


def tune(
    model: ModelSource,
    output: PathLike | None = None,
    *,
    seconds: float = 0,
    trials: int = 0,
    until_gain: float = 0,
    objective: str = "latency",
    progress: bool | Callable[[dict[str, Any]], None] = False,
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    absent: Sequence[str] = (),
    constants: Constants | None = None,
    bounded: bool = False,
    tf32: bool = False,
    device: str = "local",
    threads: int = 0,
    database: PathLike = "tensorsmith.db",
    sources: Sequence[PathLike] = (),
    warm_start: bool = True,
    cost_model: PathLike | Scorer = "",
    frozen: bool = False,
    strategy: str = "",
    language_model: PathLike = "",
    epsilon: float = 0.03,
    batch: int = 16,
    seed: int = 0,
    flush_cache: bool = False,
    end_to_end: bool = True,
    winograd: bool = True,
    fleet: bool = False,
) -> TuneResult:
    """Searches fast schedules for a model on this machine by measuring, and compiles the model with them.

    Measurements are kept in the database: a run continues an earlier one, and Ctrl-C loses nothing. Ctrl-C ends the
    search and compiles the best schedules so far; then KeyboardInterrupt is raised.

    Args:
        model: an ONNX file, "zoo:NAME", an onnx.ModelProto or its bytes, or the result of `from_torch`.
        output: folder of the compiled model; default: the model's name with ".tensorsmith", in the current folder. A
            compiled model there is replaced; anything else is kept, and is an error.
        seconds: time limit for everything until the model is written. Give `seconds`, `trials` (number of
            measurements) or `until_gain` (stops when as much time again is expected to gain less than this share).
        objective: the cost that each task's schedule minimizes: "latency" (seconds), "memory" (bytes of temporary
            tensors), "energy" (joules of a run), or a formula such as "latency * (1 + memory / 1e6)".
        progress: True shows a bar. A function is called with each event, a dict: phase, and after each measurement
            elapsed_seconds, trials, failures, resumed, task, estimate (untuned_seconds, tuned_seconds, ratio). After
            the comparison of whole models the dict has end_to_end, as in the report.
        shapes: shapes of inputs by name, for inputs with symbolic dimensions or instead of fixed shapes.
        dims: lengths of symbolic dimensions by name, in all inputs that have them: {"batch": 1}.
        absent: optional inputs that are not given.
        constants: contents of inputs by name, numbers or arrays, {"sr": 16000}; these inputs become constants of
            the compiled model.
        bounded: results whose number of rows depends on the data get their largest shape, padded.
        tf32: computes products of f32 on tensor cores, with factors rounded to TF32 (10 bits of fraction instead of
            23).
        device: "local", a variant such as "local:isa=avx2", or a GPU: "cuda", "opencl:1".
        threads: number of threads of the kernels; 0: all cores.
        sources: databases or exports with records to start from, and models whose tasks' records are used; default:
            the records that come with the package.
        warm_start: False starts without schedules of other models, machines and runs.
        cost_model: a file of `train`, the name of a kind that learns during the search, "command:PROGRAM", or a
            model of your own: a `CostModel`, or a function from `Programs` to scores. Default: the model that comes
            with the package.
        frozen: the cost model does not learn from this run.
        strategy, language_model, epsilon, batch, seed, fleet: see `tensorsmith tune --help`.
        flush_cache: measures with cold caches.
        end_to_end: False chooses schedules by the kernels' own times, without running the whole model.
        winograd: False: 3x3 convolutions do not use Winograd filtering.

    Raises:
        errors.Error: tells the problem and what to do; nothing is written then.
    """
    if not (seconds or trials or until_gain):
        raise errors.InvalidArgument("say how long to search: seconds=60, trials=1000 or until_gain=0.01", "tune")
    _not_negative(seconds=seconds, trials=trials, until_gain=until_gain, epsilon=epsilon, threads=threads, seed=seed)
    own = None if isinstance(cost_model, (str, os.PathLike)) else Adapter(cost_model)
    settings = _settings(
        seconds=float(seconds),
        trials=operator.index(trials),
        until_gain=float(until_gain),
        epsilon=float(epsilon),
        batch=operator.index(batch),
        seed=operator.index(seed),
        objective=objective,
        flush_cache=flush_cache,
        end_to_end=end_to_end,
        winograd=winograd,
        fleet=fleet,
        cost_model=own.name if own else os.fspath(cost_model),
        frozen=frozen,
        sources=[os.fspath(source) for source in sources],
        warm_start=warm_start,
        language_model=os.fspath(language_model),
    )
    bar = TuneProgressBar(seconds, trials) if progress is True else None
    told = bar or (progress if callable(progress) else None)
    try:
        report = _compiled(
            _native.tune,
            model,
            output,
            import_of(shapes, dims, absent, constants, bounded, tf32),
            device=device,
            threads=threads,
            database=os.fspath(database),
            strategy=strategy,
            settings=settings,
            worker=command_path(),
            progress=None if told is None else lambda event: told(json.loads(event)),
            cost_model=own,
        )
    finally:
        if bar is not None:
            bar.close()
    return _tune_result(report)


def _tune_result(report: dict[str, Any]) -> TuneResult:
    whole = report.get("end_to_end") or {}
    return TuneResult(
        directory=report["directory"],
        database=report["database"],
        untuned_seconds=whole.get("untuned_seconds"),
        tuned_seconds=whole.get("tuned_seconds"),
        speedup=whole.get("speedup"),
        spread=whole.get("spread"),
        warning=whole.get("warning"),
        estimate=Estimate(**report["estimate"]) if report["estimate"] else None,
        trials=report["trials"],
        resumed=report["resumed"],
        elapsed_seconds=report["elapsed_seconds"],
        tasks=tuple(
            TaskReport(
                name=task["name"],
                calls=task["weight"],
                trials=task["trials"],
                failures=task["failures"],
                kept=task["kept"],
                untuned_seconds=task["default_seconds"],
                tuned_seconds=task["default_seconds"] if task["kept"] else _of_a_call(task),
            )
            for task in report["tasks"]
        ),
        notes=_notes(report),
        report=report,
    )


def _of_a_call(task: dict[str, Any]) -> float | None:
    return task["alone_seconds"] / task["weight"] if "alone_seconds" in task else None


def compile(
    model: ModelSource,
    output: PathLike | None = None,
    *,
    untuned: bool = False,
    database: PathLike = "tensorsmith.db",
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    absent: Sequence[str] = (),
    constants: Constants | None = None,
    bounded: bool = False,
    tf32: bool = False,
    device: str = "local",
    threads: int = 0,
    winograd: bool = True,
    objective: str = "latency",
) -> CompiledModel:
    """Compiles a model without measuring, with the best schedules in the database. Untuned schedules are used where
    it has none, or if there is no database.

    Args: as for `tune`; `untuned` ignores the database.

    Raises:
        errors.Error: tells the problem and what to do; nothing is written then.
    """
    _not_negative(threads=threads)
    report = _compiled(
        _native.compile,
        model,
        output,
        import_of(shapes, dims, absent, constants, bounded, tf32),
        device=device,
        threads=threads,
        database="" if untuned else known_database(database),
        winograd=winograd,
        objective=objective,
        cancel=None,
    )
    report["notes"] = _notes(report)
    return CompiledModel(**report)


def compile_unmeasured(
    model: ModelSource,
    output: PathLike | None = None,
    *,
    database: PathLike = "tensorsmith.db",
    sources: Sequence[PathLike] = (),
    warm_start: bool = True,
    cost_model: PathLike | Scorer = "",
    seed: int = 0,
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    absent: Sequence[str] = (),
    constants: Constants | None = None,
    bounded: bool = False,
    tf32: bool = False,
    device: str = "local",
    threads: int = 0,
    winograd: bool = True,
) -> UnmeasuredModel:
    """Compiles a model without measuring, for any device, even one that is not on this machine. Schedules are chosen
    by the records of the database and of `sources`, a cost model, and the estimate of the design space.

    Args:
        cost_model: a file of `train`, "none", or one of your own, as for `tune`; default: the cost model that comes
            with the package.
        others: as for `tune`.

    Raises:
        errors.Error: tells the problem and what to do; nothing is written then.
    """
    _not_negative(threads=threads, seed=seed)
    own = None if isinstance(cost_model, (str, os.PathLike)) else Adapter(cost_model)
    settings = _settings(
        seed=operator.index(seed),
        winograd=winograd,
        sources=[os.fspath(source) for source in sources],
        warm_start=warm_start,
        cost_model=own.name if own else os.fspath(cost_model),
    )
    report = _compiled(
        _native.compile_unmeasured,
        model,
        output,
        import_of(shapes, dims, absent, constants, bounded, tf32),
        device=device,
        threads=threads,
        database=os.fspath(database),
        settings=settings,
        cost_model=own,
    )
    choices = tuple(TaskChoice(**task) for task in report["tasks"])
    return UnmeasuredModel(directory=report["directory"], tasks=choices, notes=_notes(report))


def compile_cancellable(
    path: str, directory: PathLike, *, shapes: Shapes, device: str, threads: int, database: PathLike, cancel: Any
) -> None:
    """Runs `compile` for a file. Raises errors.Cancelled soon after another thread has set `cancel`, a
    _native.Cancel."""
    _native.compile(
        path,
        import_of(shapes),
        os.fspath(directory),
        os.path.basename(path),
        device=device,
        threads=threads,
        database=known_database(database),
        winograd=True,
        cancel=cancel,
    )


def predict(
    model: ModelSource,
    device: str = "local",
    *,
    cost_model: PathLike = "",
    roofline: bool = False,
    untuned: bool = False,
    database: PathLike = "tensorsmith.db",
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    absent: Sequence[str] = (),
    constants: Constants | None = None,
    bounded: bool = False,
    tf32: bool = False,
    threads: int = 0,
    winograd: bool = True,
) -> Prediction:
    """Predicts the time of a run of the model on a device, without running the model and without the device.

    Args:
        device: "local", a known device (`tensorsmith devices list`) or a device file.
        cost_model: a file of `train`; default: the cost model that comes with the package.
        roofline: returns the lower bound from the device's limits instead.
        untuned: predicts untuned schedules; otherwise those in the database, if there is one.
        others: as for `tune`.
    """
    _not_negative(threads=threads)
    with model_file(model) as path:
        report = json.loads(
            _native.predict(
                path,
                import_of(shapes, dims, absent, constants, bounded, tf32),
                device=device,
                threads=threads,
                latency_model=os.fspath(cost_model),
                roofline=roofline,
                database="" if untuned else known_database(database),
                untuned=untuned,
                winograd=winograd,
            )
        )
    for text in report["warnings"]:
        warnings.warn(text, stacklevel=2)
    return Prediction(
        seconds=report["seconds"],
        low_seconds=report["low_seconds"],
        high_seconds=report["high_seconds"],
        least_seconds=report["least_seconds"],
        predictor=report["predictor"],
        tasks=tuple(
            TaskPrediction(task["name"], task["calls"], task["seconds"], task["least_seconds"])
            for task in report["tasks"]
        ),
        notes=_notes(report),
        report=report,
    )


def tasks(
    model: ModelSource,
    *,
    device: str = "local",
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    absent: Sequence[str] = (),
    constants: Constants | None = None,
    bounded: bool = False,
    tf32: bool = False,
) -> list[dict[str, Any]]:
    """Returns the distinct tensor programs of the model as dicts: name, key, calls (of a run)."""
    with model_file(model) as path:
        text = _native.tasks(path, import_of(shapes, dims, absent, constants, bounded, tf32), device=device)
    return json.loads(text)["tasks"]


def device(name: str = "local", threads: int = 0) -> dict[str, Any]:
    """Returns the properties of a device."""
    _not_negative(threads=threads)
    return json.loads(_native.device(name, threads))


def _compiled(
    native: Callable[..., str], model: ModelSource, output: PathLike | None, source: _native.Import, **options: Any
) -> dict[str, Any]:
    """Calls a function of the native module that writes a compiled model, and returns its report."""
    directory = os.fspath(output) if output is not None else model_name(model) + ".tensorsmith"
    with model_file(model) as path:
        return json.loads(native(path, source, directory, _file_name(model, path), **options))


def _file_name(model: ModelSource, path: str) -> str:
    """Returns the name of the compiled model: the name of its file, or of its graph if the model is in memory."""
    return os.path.basename(path) if isinstance(model, (str, os.PathLike)) else model_name(model)


_DATABASE = "tensorsmith.db"


def _notes(report: dict[str, Any]) -> tuple[str, ...]:
    return tuple(errors.in_python(note) for note in report["notes"])


def known_database(database: PathLike) -> str:
    """Returns the database to read, or "" if it is the default database and does not exist; a named one must
    exist."""
    path = os.fspath(database)
    return "" if path == _DATABASE and not os.path.exists(path) else path


def import_of(
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    absent: Sequence[str] = (),
    constants: Constants | None = None,
    bounded: bool = False,
    tf32: bool = False,
) -> _native.Import:
    """Returns the options for reading a model."""
    given = {name: [int(length) for length in shape] for name, shape in (shapes or {}).items()}
    for name, shape in given.items():
        if any(length <= 0 for length in shape):
            raise errors.InvalidArgument(f"{tuple(shape)} is no shape: lengths are at least 1", f"shapes['{name}']")
    lengths = {name: int(length) for name, length in (dims or {}).items()}
    for name, length in lengths.items():
        if length <= 0:
            raise errors.InvalidArgument(f"{length} is no length: lengths are at least 1", f"dims['{name}']")
    texts = {}
    for name, value in (constants or {}).items():
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or array.size == 0:
            raise errors.InvalidArgument(f"{value!r} is no number or array of numbers", f"constants['{name}']")
        words = {True: "true", False: "false"} if array.dtype.kind == "b" else {}
        texts[name] = ",".join(words.get(x) or repr(x) for x in array.ravel().tolist())
        if array.ndim > 0:
            given[name] = list(array.shape)
    return _native.Import(shapes=given, dims=lengths, absent=list(absent), constants=texts, bounded=bounded, tf32=tf32)


def _settings(**values: Any) -> str:
    """Returns the settings of a search as JSON for the native module. An empty text stands for the default."""
    return json.dumps({name: value for name, value in values.items() if value != ""})


def _not_negative(**numbers: float) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise errors.InvalidArgument(f"{number} is less than 0", name)
        if not math.isfinite(number):
            raise errors.InvalidArgument(f"{number} is not finite", name)
