"""Compiled models on disk, so that a later process need not compile them again.

    FOLDER/compiled-1/KEY/entry.json        description of the entry, and the hash of its manifest
    FOLDER/compiled-1/KEY/model/            the compiled model
    FOLDER/compiled-1/new-KEY/              an entry being written; it is renamed when it is complete
    FOLDER/compiled-1/old-KEY-NUMBER/       an entry being removed
    FOLDER/compiled-1/locks/                files that a process locks while it writes

A process may be killed at any time: an incomplete entry never has the name of an entry, and is removed later. The
time at which an entry's folder was modified is the time of its last use.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from . import errors

_log = logging.getLogger("tensorsmith")

Loaded = TypeVar("Loaded")

DEFAULT_BYTES = 4 << 30
_VARIABLE = "TENSORSMITH_CACHE"
_FORMAT = "compiled-1"
_PATIENCE = 120.0  # seconds that a process waits while another one compiles the same model
_POLL = 0.05  # seconds between two attempts to get a lock

# Errors that a damaged entry can raise; any other error is not caused by the entry.
_DAMAGED = (
    errors.Corrupt,
    errors.Mismatch,
    errors.Unsupported,
    OSError,  # includes NotFound and Io
    json.JSONDecodeError,
    UnicodeDecodeError,
    KeyError,
    TypeError,
)


def cache_folder(given: str | os.PathLike[str] | None) -> Path | None:
    """Returns `given`, or the folder of the variable TENSORSMITH_CACHE, or $XDG_CACHE_HOME/tensorsmith, which is
    ~/.cache/tensorsmith by default. Returns None if the name is empty: nothing is kept on disk then."""
    if given is None:
        given = os.environ.get(_VARIABLE)
    if given is None:
        given = os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "tensorsmith")
    if not os.fspath(given):
        return None
    try:
        return Path(given).expanduser().absolute()
    except RuntimeError:  # there is no home directory
        return None


def content_key(parts: dict[str, Any]) -> str:
    """Returns a hash of the parts; equal parts have equal keys."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=20).hexdigest()


class CompiledCache:
    """The cache in one folder. Processes and threads can use it concurrently.

    Args:
        folder: folder of the cache; it is made if it does not exist.
        max_bytes: size limit of all entries together; the least recently used entries are removed first.
    """

    def __init__(self, folder: Path, max_bytes: int = DEFAULT_BYTES) -> None:
        self.folder = folder
        self._root = folder / _FORMAT
        self._max_bytes = max_bytes
        self._refused = False

    def find(self, key: str, load: Callable[[Path], Loaded]) -> Loaded | None:
        """Returns the result of `load` for the entry's compiled model; None if there is no such entry. Removes a
        damaged entry."""
        entry = self._root / key
        if not self._is_ours():
            return None
        try:
            text = (entry / "entry.json").read_bytes()
        except OSError:
            return None
        try:
            if _hash(entry / "model" / "manifest.json") != json.loads(text)["manifest"]:
                raise errors.Corrupt("manifest.json was changed after it was written", str(entry))
            loaded = load(entry / "model")
        except _DAMAGED as error:
            if not (entry / "entry.json").exists():  # another process has removed it meanwhile
                return None
            _log.warning("a compiled model of the cache is damaged and is compiled again: %s", error)
            self._remove(entry)
            return None
        with contextlib.suppress(OSError):  # fails on a read-only file system
            os.utime(entry)
        return loaded

    def build(
        self,
        key: str,
        about: dict[str, Any],
        compile_into: Callable[[Path], bool],
        load: Callable[[Path], Loaded],
    ) -> tuple[Loaded, bool]:
        """Compiles a model, keeps it as the entry `key` and loads it.

        Args:
            about: description of the entry for people, which is stored with it.
            compile_into: writes the compiled model into a folder. Returns False if the model does not match the key
                and must not be kept.
            load: loads a compiled model from a folder.

        Returns:
            The result of `load`, and whether another process had compiled the model meanwhile.
        """
        with self._lock(key[:2], _PATIENCE) as locked:
            if locked:
                found = self.find(key, load)
                if found is not None:
                    return found, True
                try:
                    loaded = self._build_locked(key, about, compile_into, load)
                except OSError as error:
                    if isinstance(error, errors.Error) and not isinstance(error, errors.Io):
                        raise
                    self._refuse(str(error))  # the disk may be full
                    locked = False
        if locked:
            self._keep_bound(key)
            return loaded, False
        return build_once(compile_into, load), False

    def _build_locked(
        self,
        key: str,
        about: dict[str, Any],
        compile_into: Callable[[Path], bool],
        load: Callable[[Path], Loaded],
    ) -> Loaded:
        new = self._root / f"new-{key}"
        shutil.rmtree(new, ignore_errors=True)  # left by a killed process
        new.mkdir(mode=0o700)
        try:
            keep = compile_into(new / "model")
            loaded = load(new / "model")  # does not need the files afterwards
            if keep:
                manifest = _hash(new / "model" / "manifest.json")
                (new / "entry.json").write_text(json.dumps({"manifest": manifest, **about}, indent=1))
                with contextlib.suppress(OSError):  # a damaged entry that could not be removed
                    os.rename(new, self._root / key)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        return loaded

    def _keep_bound(self, newest: str) -> None:
        """Removes the least recently used entries until the limit is met, and leftovers of killed processes."""
        with self._lock("bound", _PATIENCE) as locked:
            if not locked:
                return
            entries: list[tuple[float, int, Path]] = []
            for path in self._root.iterdir():
                if path.name.startswith("old-"):
                    shutil.rmtree(path, ignore_errors=True)
                elif path.name.startswith("new-"):
                    with self._lock(path.name[4:6], 0) as nobody_writes:
                        if nobody_writes:
                            shutil.rmtree(path, ignore_errors=True)
                elif path.name != "locks":
                    with contextlib.suppress(OSError):  # another process has removed it meanwhile
                        used = float("inf") if path.name == newest else path.stat().st_mtime
                        entries.append((used, _bytes_of(path), path))
            total = sum(size for _, size, _ in entries)
            for _, size, path in sorted(entries):
                if total <= self._max_bytes:
                    break
                _log.info("%s is removed from the cache, which holds at most %d MB", path.name, self._max_bytes >> 20)
                self._remove(path)
                total -= size

    def _remove(self, entry: Path) -> None:
        """Removes an entry. The rename makes this atomic for others: nobody finds half of an entry."""
        old = entry.with_name(f"old-{entry.name}-{time.monotonic_ns()}")
        try:
            os.rename(entry, old)
        except OSError:
            return
        shutil.rmtree(old, ignore_errors=True)

    def _is_ours(self) -> bool:
        """Returns whether entries may be read. They are programs, so nobody else may be able to write them."""
        try:
            (self._root / "locks").mkdir(mode=0o700, parents=True, exist_ok=True)
            info = self._root.stat()
        except OSError as error:
            self._refuse(str(error))
            return False
        if info.st_uid != os.geteuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            self._refuse(f"{self._root} belongs to another user, or others may write it")
            return False
        return True

    def _refuse(self, why: str) -> None:
        if not self._refused:
            _log.warning("compiled models are not kept on disk: %s; set %s to another folder", why, _VARIABLE)
        self._refused = True

    @contextlib.contextmanager
    def _lock(self, name: str, patience: float) -> Iterator[bool]:
        """Yields whether this thread got the lock, which is exclusive and ends with the process at the latest."""
        if not self._is_ours():
            yield False
            return
        try:
            descriptor = os.open(self._root / "locks" / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._refuse(str(error))
            yield False
            return
        try:
            yield _locked(descriptor, patience)
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked child may still have it open
            os.close(descriptor)


def build_once(compile_into: Callable[[Path], bool], load: Callable[[Path], Loaded]) -> Loaded:
    """Compiles a model into a temporary folder and loads it. A loaded model does not need its folder."""
    with tempfile.TemporaryDirectory(prefix="tensorsmith-") as temporary:
        compile_into(Path(temporary) / "model")
        return load(Path(temporary) / "model")


def _locked(descriptor: int, patience: float) -> bool:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL)
        except OSError:  # the file system does not support locks
            return False


def _hash(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=20).hexdigest()


def _bytes_of(entry: Path) -> int:
    return sum(path.stat().st_size for path in entry.rglob("*") if path.is_file())
