"""Measured records."""

from __future__ import annotations

import os
from typing import Any

from . import _native


class Database:
    """The records that `tune` keeps, in one file. Can be used in a `with` statement.

    Args:
        path: the file; it is made if it does not exist, unless `read_only`.
        read_only: opens the file for reading only.

    Raises:
        errors.Corrupt, errors.Mismatch: the file is no database of Tensorsmith, is damaged, or has a later version.
    """

    def __init__(self, path: str | os.PathLike[str] = "tensorsmith.db", read_only: bool = False) -> None:
        self._native = _native.Database(os.fspath(path), read_only)

    def tasks(self) -> list[dict[str, Any]]:
        """Returns the tensor programs as dicts: key, name, text, flops (of one run)."""
        return self._native.tasks()

    def devices(self) -> list[dict[str, Any]]:
        """Returns the devices as dicts with their key and their properties."""
        return self._native.devices()

    def records(self, task: str = "", device: str = "") -> list[dict[str, Any]]:
        """Returns the records of the current version in the order of their creation, filtered by the keys of a task
        and a device if these are given. A record has key, task, device, threads, flush_cache, trace (the schedule),
        outcome ("ok", ...), reason, seconds (of each repeat), best_estimate (their median; inf after a failure),
        unix_ms."""
        return self._native.records(task, device)

    def best(self, task: str, device: str, threads: int = 1, flush_cache: bool = False) -> dict[str, Any] | None:
        """Returns the fastest successful record; None if there is none."""
        return self._native.best(task, device, threads, flush_cache)

    def export_jsonl(self, path: str | os.PathLike[str], fastest: int = 0) -> None:
        """Writes JSON lines. `fastest` limits the records of each task, device and settings; 0: all."""
        self._native.export_jsonl(os.fspath(path), fastest)

    def import_jsonl(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Adds records that the database does not have. Returns their numbers, and the lines that cannot be read."""
        return self._native.import_jsonl(os.fspath(path))

    def check(self) -> None:
        """Reads the whole database. Raises errors.Corrupt if something is damaged."""
        self._native.check()

    def close(self) -> None:
        """Closes the file. The object cannot be used afterwards."""
        self._native.close()

    def __len__(self) -> int:
        return self._native.record_count()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
