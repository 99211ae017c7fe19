"""Measured records."""

from __future__ import annotations

import os
from typing import Any

from . import _native


class Database:
    """The records that `tune` keeps, one file. Usable in a `with` statement.

    Args:
        path: the file; it is made where it is not there, unless it is opened for reading only.
        read_only: nothing is changed.

    Raises:
        errors.Corrupt, errors.Mismatch: no database of Tensorsmith, a damaged one, or one of a later version.
    """

    def __init__(self, path: str | os.PathLike[str] = "tensorsmith.db", read_only: bool = False) -> None:
        self._native = _native.Database(os.fspath(path), read_only)

    def tasks(self) -> list[dict[str, Any]]:
        """The tensor programs: key, name, text, flops (of one run)."""
        return self._native.tasks()

    def devices(self) -> list[dict[str, Any]]:
        """The devices: key, and what is known of each."""
        return self._native.devices()

    def records(self, task: str = "", device: str = "") -> list[dict[str, Any]]:
        """Records of the present version in the order they were made, of one task and device where their keys are
        given: key, task, device, threads, flush_cache, trace (the schedule), outcome ("ok", ...), reason, seconds (of
        each repeat), best_estimate (their median; inf where it failed), unix_ms."""
        return self._native.records(task, device)

    def best(self, task: str, device: str, threads: int = 1, flush_cache: bool = False) -> dict[str, Any] | None:
        """The fastest record that succeeded."""
        return self._native.best(task, device, threads, flush_cache)

    def export_jsonl(self, path: str | os.PathLike[str], fastest: int = 0) -> None:
        """Writes JSON lines; `fastest`: only so many of each task, device and settings."""
        self._native.export_jsonl(os.fspath(path), fastest)

    def import_jsonl(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Adds what is not there yet; how much there was, and the lines that could not be read."""
        return self._native.import_jsonl(os.fspath(path))

    def check(self) -> None:
        """Reads all of it. Raises errors.Corrupt where something is damaged."""
        self._native.check()

    def close(self) -> None:
        """Closes the file; the object is of no use afterwards."""
        self._native.close()

    def __len__(self) -> int:
        return self._native.record_count()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
