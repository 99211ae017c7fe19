"""The compiled models of one ONNX model for the different shapes of its inputs. They are in memory, in the cache on
disk, or being compiled; meanwhile ONNX Runtime, if it is installed, runs the model."""

from __future__ import annotations

import functools
import logging
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from . import errors
from .background import BackgroundCalls, in_low_priority
from .compiled_cache import CompiledCache, build_once
from .model import Model, load
from .model_key import model_key
from .onnx_runtime import MeanwhileModel, Run, run_of_onnx_runtime
from .partition import PartitionedModel
from .sources import ModelSource, model_file
from .work import compile_cancellable

_log = logging.getLogger("tensorsmith")

_MOST_FAILURES = 256  # combinations of shapes that are known not to compile

Shapes = Mapping[str, tuple[int, ...]]
Key = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class SessionStatistics:
    """Counts of a session's compilations and runs."""

    compiled: int = 0  #: models that it compiled; each part of a model counts
    from_cache: int = 0  #: models that it loaded from the cache on disk
    compiling: int = 0  #: combinations of shapes that are being compiled or wait for it
    onnx_runtime_runs: int = 0  #: runs that ONNX Runtime executed, since the compiled model was not ready


@dataclass(frozen=True)
class CompileSettings:
    """Settings of a session's compilations."""

    threads: int
    device: str
    database: str
    keep: int  #: number of models in memory
    cache: CompiledCache | None
    in_background: bool
    is_one: bool  #: all runs have the same shapes


class CompiledShapes:
    """Provides a model that can run with given shapes of the inputs. Thread-safe.

    Args:
        source: the model.
        name: name of the model in messages.
        fixed: shapes of the inputs without dimensions to choose.
        settings: how models are compiled and kept.
    """

    def __init__(self, source: ModelSource, name: str, fixed: Shapes, settings: CompileSettings) -> None:
        self._source = source
        self._name = name
        self._fixed = fixed
        self._settings = settings
        self._models: dict[Key, Model | PartitionedModel] = {}
        self._failed: dict[Key, Exception] = {}
        self._statistics = SessionStatistics()
        self._told = False
        self._theirs: Run | None = None  # runs the model by ONNX Runtime
        self._asked_for_theirs = False
        self._making_theirs = threading.Lock()
        self._calls = BackgroundCalls()
        self._lock = threading.Lock()
        self._compiling = threading.Lock()  # one model at a time, since a compilation uses all processors
        _live.add(self)

    def statistics(self) -> SessionStatistics:
        """Returns the counts until now."""
        with self._lock:
            return replace(self._statistics, compiling=self._calls.waiting())

    def choices(self) -> list[Key]:
        """Returns the shapes whose compiled models are in memory, the most recently used last."""
        with self._lock:
            return list(self._models)

    def ready(self) -> list[Model | PartitionedModel]:
        """Returns the compiled models in memory, the most recently used last."""
        with self._lock:
            return list(self._models.values())

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until nothing is being compiled. Returns False after `timeout` seconds."""
        return self._calls.wait_for_all(timeout)

    def model_for(self, shapes: Shapes) -> Model | PartitionedModel | MeanwhileModel:
        """Returns a model that can run now with these shapes of the inputs that have dimensions to choose."""
        key: Key = tuple(shapes.items())
        model = self._known(key)
        if model is not None:
            return model
        if self._settings.in_background:
            if not self._calls.has(key) and key not in self._failed:
                model = self._from_cache(key)
                if model is not None:
                    return model
            theirs = self._by_onnx_runtime()
            if theirs is not None:
                if key not in self._failed and self._calls.add(
                    key, functools.partial(self._compile_for, key), self._settings.keep
                ):
                    self._tell_background(key)
                return MeanwhileModel(theirs, self._count_meanwhile, functools.partial(self._wait_for, key))
        return self._compiled_for(key)

    def _wait_for(self, key: Key) -> Model | PartitionedModel:
        """Returns the compiled model, when it is ready."""
        self._calls.wait_for(key)
        return self._compiled_for(key)

    def _compiled_for(self, key: Key) -> Model | PartitionedModel:
        with self._compiling:
            model = self._known(key)
            if model is not None:
                return model
            if key in self._failed:
                raise self._failed[key]
            if not self._settings.in_background:
                model = self._from_cache(key)
                if model is not None:
                    return model
            self._tell_compiling(key)
            return self._keep(key, self._compile(dict(key), low_priority=False))

    def _compile_for(self, key: Key) -> None:
        """Compiles in the background."""
        with self._compiling:
            if self._known(key) is not None:
                return
            try:
                self._keep(key, self._compile(dict(key), low_priority=True))
            except errors.Cancelled:
                return
            except Exception as error:  # includes an InternalError of the native code
                # The caller's arguments are wrong, so the run raises the error.
                level = logging.DEBUG if isinstance(error, errors.InvalidArgument) else logging.WARNING
                _log.log(level, "%s cannot be compiled%s; ONNX Runtime runs it: %s", self._name, _text(key), error)
                with self._lock:
                    while len(self._failed) >= _MOST_FAILURES:
                        del self._failed[next(iter(self._failed))]
                    self._failed[key] = error
                return
            _log.info("%s is compiled%s; from now on the compiled model runs", self._name, _text(key))
            if self._settings.is_one:  # frees its memory
                with self._making_theirs:
                    self._theirs = None

    def _known(self, key: Key) -> Model | PartitionedModel | None:
        with self._lock:
            if key not in self._models:
                return None
            self._models[key] = self._models.pop(key)  # the least recently used one is removed first
            return self._models[key]

    def _keep(self, key: Key, model: Model | PartitionedModel) -> Model | PartitionedModel:
        with self._lock:
            while len(self._models) >= max(self._settings.keep, 1):
                del self._models[next(iter(self._models))]
            self._models[key] = model
        return model

    def _count(self, **more: int) -> None:
        with self._lock:
            now = {name: getattr(self._statistics, name) + n for name, n in more.items()}
            self._statistics = replace(self._statistics, **now)

    def _count_meanwhile(self) -> None:
        self._count(onnx_runtime_runs=1)

    def _by_onnx_runtime(self) -> Run | None:
        """Returns a function that runs the model with ONNX Runtime; None if ONNX Runtime cannot."""
        with self._making_theirs:
            if not self._asked_for_theirs:
                if self._settings.device == "local" and not _is_zoo(self._source):
                    self._theirs = run_of_onnx_runtime(self._source, self._settings.threads)
                self._asked_for_theirs = True
            return self._theirs

    # Messages.

    def _tell_background(self, key: Key) -> None:
        level = logging.INFO if self._told else logging.WARNING
        self._told = True
        _log.log(
            level,
            "%s is being compiled%s, which can take seconds; ONNX Runtime answers meanwhile, and its results may "
            "differ in the last digits%s. SessionOptions(compile_in_background=False) waits instead.",
            self._name,
            _text(key),
            self._kept(),
        )

    def _tell_compiling(self, key: Key) -> None:
        several = not self._settings.is_one
        level = logging.WARNING if several and not self._told else logging.INFO
        self._told = self._told or several
        _log.log(level, "%s is being compiled%s, which can take seconds%s", self._name, _text(key), self._kept())

    def _kept(self) -> str:
        cache = self._settings.cache
        return f". The compiled model is kept in {cache.folder}" if cache is not None else ""

    # Compiling.

    def _compile(self, shapes: Shapes, low_priority: bool) -> Model | PartitionedModel:
        try:
            return self._compile_whole(self._source, shapes, low_priority)
        except errors.Unsupported as error:
            if self._settings.device != "local" or _is_zoo(self._source):
                raise
            with model_file(self._source) as path:
                try:
                    import onnx
                except ImportError:
                    raise error from None
                proto = onnx.load(path)
            return PartitionedModel(
                proto,
                {**self._fixed, **shapes},
                lambda part: self._compile_whole(part, {}, low_priority),
                self._settings.threads,
                because=error,
            )

    def _from_cache(self, key: Key) -> Model | None:
        """Loads the whole model from the cache on disk; returns None if the cache does not have it."""
        cache = self._settings.cache
        if cache is None:
            return None
        with model_file(self._source) as path:
            found = cache.find(self._key(path, dict(key)), self._load)
        if found is None:
            return None
        self._count(from_cache=1)
        self._keep(key, found)
        return found

    def _compile_whole(self, model: ModelSource, shapes: Shapes, low_priority: bool) -> Model:
        cache = self._settings.cache
        with model_file(model) as path:
            key = self._key(path, shapes) if cache is not None else ""

            def compile_into(folder: Path) -> bool:
                def work() -> None:
                    compile_cancellable(
                        path,
                        folder,
                        shapes=shapes,
                        device=self._settings.device,
                        threads=0 if self._settings.device != "local" else self._settings.threads,
                        database=self._settings.database,
                        cancel=self._calls.cancel if low_priority else None,  # otherwise Ctrl-C ends it
                    )

                in_low_priority(work) if low_priority else work()
                self._count(compiled=1)
                return cache is None or self._key(path, shapes) == key  # the file may have changed meanwhile

            if cache is None:
                return build_once(compile_into, self._load)
            about = {"model": self._name, "shapes": {name: list(shape) for name, shape in shapes.items()}}
            found, by_other = cache.build(key, about, compile_into, self._load)
        if by_other:
            self._count(from_cache=1)
        return found

    def _key(self, path: str, shapes: Shapes) -> str:
        s = self._settings
        return model_key(path, shapes, s.device, s.threads, s.database)

    def _load(self, folder: Path) -> Model:
        device = self._settings.device
        return load(folder, self._settings.threads, "" if device == "local" else device)

    def _after_fork(self) -> None:
        """Resets the object in a forked child, which has none of the parent's threads."""
        self._lock = threading.Lock()
        self._compiling = threading.Lock()
        self._calls = BackgroundCalls()
        self._making_theirs = threading.Lock()
        self._theirs = None  # its threads exist only in the parent
        self._asked_for_theirs = False


def _is_zoo(model: ModelSource) -> bool:
    return isinstance(model, (str, os.PathLike)) and os.fspath(model).startswith("zoo:")


def _text(key: Key) -> str:
    return " for " + ", ".join(f"{name}={shape}" for name, shape in key) if key else ""


_live: weakref.WeakSet[CompiledShapes] = weakref.WeakSet()


def _after_fork() -> None:
    for shapes in list(_live):
        shapes._after_fork()


os.register_at_fork(after_in_child=_after_fork)
