"""Keys of compiled models: equal if compiling gives equal models."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from .compiled_cache import content_key
from .database import Database
from .work import known_database

_SETTLED = 2_000_000_000  # nanoseconds; a file that changed more recently may change again without a new time stamp
_MOST_FILES = 64


def declared(path: str) -> dict[str, Any]:
    """Returns the declared inputs and outputs of the ONNX file, and the names of its files of weights."""
    return _Files.of(path, "declared", lambda: json.loads(_native.declared(path)))


def model_key(model: str, shapes: Mapping[str, Sequence[int]], device: str, threads: int, database: str) -> str:
    """Returns a key for the result of a session's compilation: a hash of the contents of all files of the model, the
    shapes, the device, the threads, the records, and the library.

    Args:
        model: an ONNX file, or "zoo:NAME".
    """
    return content_key(
        {
            "library": _library(),
            "model": model if model.startswith("zoo:") else _contents(model),
            "shapes": {name: list(shape) for name, shape in shapes.items()},
            "device": json.loads(_native.device(device, threads if device == "local" else 0)),
            "threads": threads,
            "records": _records(known_database(database)),
        }
    )


@functools.cache
def _library() -> list[Any]:
    """Returns the version and the files of the native library."""
    package = Path(__file__).parent
    files = [Path(_native.__file__), *sorted((package / "lib").glob("libtensorsmith_core*"))]
    stats = [file.stat() for file in files]
    return [_native.__version__, _native.backend_version(), [[s.st_size, s.st_mtime_ns] for s in stats]]


def _contents(path: str) -> dict[str, str]:
    folder = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    files = {"": _digest(path)}
    for location in declared(path)["external"]:
        file = os.path.realpath(os.path.join(folder, location))
        # The import rejects files elsewhere: the names come with the model and are not trusted.
        files[location] = _digest(file) if os.path.commonpath([folder, file]) == folder else ""
    return files


def _digest(path: str) -> str:
    if not os.path.isfile(path):
        return ""

    def digest() -> str:
        hasher = hashlib.blake2b(digest_size=20)
        with open(path, "rb") as file:
            while block := file.read(1 << 22):
                hasher.update(block)
        return hasher.hexdigest()

    return _Files.of(path, "digest", digest)


def _records(database: str) -> list[Any]:
    """Returns the state of the database that determines the schedules."""
    if "://" in database:
        with Database(database, read_only=True) as records:
            return [database, len(records)]
    return [_signature(path) for path in (database, database + "-wal") if database and os.path.exists(path)]


def _signature(path: str) -> tuple[int, ...]:
    info = os.stat(path)
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


class _Files:
    """Results computed from files, which are reused as long as the files do not change."""

    _known: dict[tuple[str, str], tuple[tuple[int, ...], Any]] = {}

    @classmethod
    def of(cls, path: str, what: str, find: Any) -> Any:
        if not os.path.isfile(path):
            return find()
        key = (os.path.abspath(path), what)
        signature = _signature(path)
        known = cls._known.get(key)
        if known is not None and known[0] == signature:
            return known[1]
        found = find()
        if time.time_ns() - signature[-1] > _SETTLED and _signature(path) == signature:
            if len(cls._known) >= _MOST_FILES:
                cls._known.clear()
            cls._known[key] = (signature, found)
        return found
