"""Tuning, compiling and predicting."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _native, errors
from .commands import command_path
from .model import Model, load
from .progress import TuneProgressBar
from .sources import ModelSource, model_file, model_name

PathLike = str | os.PathLike[str]
Shapes = Mapping[str, Sequence[int]]
Dims = Mapping[str, int]


@dataclass(frozen=True)
class TaskReport:
    """What became of one tensor program. Seconds are those of one call; None: not known."""

    name: str
    calls: float
    trials: int
    failures: int
    kept: bool  #: it runs the untuned schedule
    untuned_seconds: float | None
    tuned_seconds: float | None  #: of the compiled model's schedule, measured alone


@dataclass(frozen=True)
class Estimate:
    """The sum of the kernels' times, each measured alone. It is not the speed-up of the model."""

    untuned_seconds: float
    tuned_seconds: float
    ratio: float  #: untuned time divided by tuned time


@dataclass(frozen=True, repr=False)
class TuneResult:
    """What `tune` did."""

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
        """The compiled model, ready to run."""
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
    """What `compile` did."""

    directory: str
    kernels: int
    tasks: int
    tuned_tasks: int  #: number of tasks with schedules from the database
    notes: tuple[str, ...]

    def load(self, threads: int = 0, device: str = "") -> Model:
        """The compiled model, ready to run."""
        return load(self.directory, threads, device)


@dataclass(frozen=True)
class TaskPrediction:
    """What one tensor program is predicted to take; seconds of one call."""

    name: str
    calls: int
    seconds: float
    least_seconds: float  #: lower bound from the device's limits


@dataclass(frozen=True)
class Prediction:
    """A latency that nobody measured."""

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
    progress: bool | Callable[[dict[str, Any]], None] = False,
    shapes: Shapes | None = None,
    dims: Dims | None = None,
    absent: Sequence[str] = (),
    bounded: bool = False,
    tf32: bool = False,
    device: str = "local",
    threads: int = 0,
    database: PathLike = "tensorsmith.db",
    sources: Sequence[PathLike] = (),
    warm_start: bool = True,
    cost_model: PathLike = "",
    frozen: bool = False,
    strategy: str = "",
    language_model: PathLike = "",
    batch: int = 16,
    seed: int = 0,
    flush_cache: bool = False,
    end_to_end: bool = True,
    winograd: bool = True,
) -> TuneResult:
    """Searches fast schedules for a model on this machine by measuring, and compiles it with them.

    Measurements are kept in the database: a run goes on where an earlier one was, and Ctrl-C loses nothing. It ends the
    search, the best so far is compiled, then KeyboardInterrupt is raised.

    Args:
        model: an ONNX file, "zoo:NAME", an onnx.ModelProto or its bytes, or what `from_torch` makes.
        output: the folder of the compiled model; by default the model's name with ".tensorsmith", here. A compiled
            model that is there is replaced, anything else stays and is an error.
        seconds: for everything until the model is written. Give it, or `trials` (measurements), or `until_gain` (stop
            where going on as long again is expected to gain less than this share).
        progress: True shows a bar; a function is called with each event, a dict: phase, and after each measurement
            elapsed_seconds, trials, failures, resumed, task, estimate (untuned_seconds, tuned_seconds, ratio). After
            the comparison of whole models it has end_to_end, as in the report.
        shapes: of inputs by name, for symbolic dimensions or in place of fixed ones.
        dims: lengths of symbolic dimensions by name, in all inputs that have them: {"batch": 1}.
        absent: optional inputs that are not given.
        bounded: results whose number of rows depends on the data have their largest shape, padded.
        tf32: products of f32 on tensor cores, of factors that are rounded to TF32 (10 bits of fraction instead of 23).
        device: "local", a variant as "local:isa=avx2", or a GPU: "cuda", "opencl:1".
        threads: that kernels run on; 0: all cores.
        sources: databases or exports of records to begin with, and models whose tasks' records are meant; by default
            the records that come with the package.
        warm_start: False begins from nothing.
        cost_model: a file of `train`, or the name of a kind that learns as it goes.
        frozen: the cost model does not learn from this run.
        strategy, language_model, batch, seed: see `tensorsmith tune --help`.
        flush_cache: measure with cold caches.
        end_to_end: False chooses by the kernels' own times, without running the whole model.
        winograd: False: no Winograd filtering of 3x3 convolutions.

    Raises:
        errors.Error: what is wrong and what to do; nothing is written then.
    """
    if not (seconds or trials or until_gain):
        raise errors.InvalidArgument("say how long to search: seconds=60, trials=1000 or until_gain=0.01", "tune")
    _not_negative(seconds=seconds, trials=trials, until_gain=until_gain, threads=threads, seed=seed)
    directory = os.fspath(output) if output is not None else model_name(model) + ".tensorsmith"
    bar = TuneProgressBar(seconds, trials) if progress is True else None
    told = bar or (progress if callable(progress) else None)
    try:
        with model_file(model) as path:
            text = _native.tune(
                path,
                directory,
                _file_name(model, path),
                **_import_options(shapes, dims, absent, bounded, tf32),
                device=device,
                threads=threads,
                database=os.fspath(database),
                seconds=seconds,
                trials=trials,
                until_gain=until_gain,
                strategy=strategy,
                batch=batch,
                seed=seed,
                flush_cache=flush_cache,
                end_to_end=end_to_end,
                winograd=winograd,
                cost_model=os.fspath(cost_model),
                frozen=frozen,
                sources=[os.fspath(source) for source in sources],
                warm_start=warm_start,
                language_model=os.fspath(language_model),
                worker=command_path(),
                progress=None if told is None else lambda event: told(json.loads(event)),
            )
    finally:
        if bar is not None:
            bar.close()
    return _tune_result(json.loads(text))


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
    bounded: bool = False,
    tf32: bool = False,
    device: str = "local",
    threads: int = 0,
    winograd: bool = True,
) -> CompiledModel:
    """Compiles a model with the best schedules that the database knows, without measuring; untuned ones where it knows
    none, or where there is no database.

    Args: as of `tune`; `untuned` looks into no database.

    Raises:
        errors.Error: what is wrong and what to do; nothing is written then.
    """
    _not_negative(threads=threads)
    directory = os.fspath(output) if output is not None else model_name(model) + ".tensorsmith"
    with model_file(model) as path:
        report = json.loads(
            _native.compile(
                path,
                directory,
                _file_name(model, path),
                **_import_options(shapes, dims, absent, bounded, tf32),
                device=device,
                threads=threads,
                database="" if untuned else known_database(database),
                winograd=winograd,
                cancel=None,
            )
        )
    report["notes"] = _notes(report)
    return CompiledModel(**report)


def compile_cancellable(
    path: str, directory: PathLike, *, shapes: Shapes, device: str, threads: int, database: PathLike, cancel: Any
) -> None:
    """`compile` of a file, which ends with errors.Cancelled soon after another thread has set `cancel`, a
    _native.Cancel."""
    _native.compile(
        path,
        os.fspath(directory),
        os.path.basename(path),
        **_import_options(shapes, None, (), False, False),
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
    bounded: bool = False,
    tf32: bool = False,
    threads: int = 0,
    winograd: bool = True,
) -> Prediction:
    """How long a run of the model takes on a device, without running or having it.

    Args:
        device: "local", a known device (`tensorsmith devices list`) or a device file.
        cost_model: a file of `train`; by default the one that comes with the package.
        roofline: the least time that the device allows, instead.
        untuned: of untuned schedules; else those of the database, where there is one.
        others: as of `tune`.
    """
    _not_negative(threads=threads)
    with model_file(model) as path:
        report = json.loads(
            _native.predict(
                path,
                **_import_options(shapes, dims, absent, bounded, tf32),
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
    bounded: bool = False,
    tf32: bool = False,
) -> list[dict[str, Any]]:
    """The tensor programs that the model is made of, each once: name, key, calls (of a run)."""
    with model_file(model) as path:
        return json.loads(_native.tasks(path, **_import_options(shapes, dims, absent, bounded, tf32), device=device))[
            "tasks"
        ]


def device(name: str = "local", threads: int = 0) -> dict[str, Any]:
    """What is known of a device."""
    _not_negative(threads=threads)
    return json.loads(_native.device(name, threads))


def _file_name(model: ModelSource, path: str) -> str:
    """The compiled model's own name: that of its file; of a model in memory the graph's."""
    return os.path.basename(path) if isinstance(model, (str, os.PathLike)) else model_name(model)


_DATABASE = "tensorsmith.db"


def _notes(report: dict[str, Any]) -> tuple[str, ...]:
    return tuple(errors.in_python(note) for note in report["notes"])


def known_database(database: PathLike) -> str:
    """The database to read, or "": the default one need not be there, one that was named must."""
    path = os.fspath(database)
    return "" if path == _DATABASE and not os.path.exists(path) else path


def _import_options(
    shapes: Shapes | None, dims: Dims | None, absent: Sequence[str], bounded: bool, tf32: bool
) -> dict[str, Any]:
    given = {name: [int(length) for length in shape] for name, shape in (shapes or {}).items()}
    for name, shape in given.items():
        if any(length <= 0 for length in shape):
            raise errors.InvalidArgument(f"{tuple(shape)} is no shape: lengths are at least 1", f"shapes['{name}']")
    lengths = {name: int(length) for name, length in (dims or {}).items()}
    for name, length in lengths.items():
        if length <= 0:
            raise errors.InvalidArgument(f"{length} is no length: lengths are at least 1", f"dims['{name}']")
    return {"shapes": given, "dims": lengths, "absent": list(absent), "bounded": bounded, "tf32": tf32}


def _not_negative(**numbers: float) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise errors.InvalidArgument(f"{number} is less than 0", name)
