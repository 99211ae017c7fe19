"""Exceptions of Tensorsmith. Each one tells in one line where the problem is, what it is, and what to do about it.

Exceptions also derive from Python's own exceptions where one fits: NotFound is a FileNotFoundError, InvalidArgument a
ValueError, ResourceExhausted a MemoryError.
"""

from __future__ import annotations

import errno
import re
import subprocess
from collections.abc import Sequence


class Error(Exception):
    """An error of Tensorsmith.

    Attributes:
        place: the subject of the error: a file, a node, an argument; may be empty.
        reason: what is wrong and what to do about it.
    """

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.place = place
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason

    def __reduce__(self):
        return type(self), (self.reason, self.place)


class InvalidArgument(Error, ValueError):
    """An argument is wrong."""


class NotFound(Error, FileNotFoundError, LookupError):
    """A file, a tensor, a device or a record does not exist. `errno` is ENOENT, and `filename` is `place`."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason, place)
        self.errno = errno.ENOENT
        self.strerror = reason
        self.filename = place or None


class Unsupported(Error, NotImplementedError):
    """Tensorsmith does not support something valid: an operator, an element type."""


class NotInstalled(Unsupported, ImportError):
    """A required Python package is not installed."""


class Corrupt(Error, ValueError):
    """A file does not follow its format."""


class Io(Error, OSError):
    """The operating system reported an error: the disk is full, a permission is missing."""


class Timeout(Error, TimeoutError):
    """An operation took longer than its limit."""


class ResourceExhausted(Error, MemoryError):
    """An operation needs too much memory, or too many of a resource."""


class Cancelled(Error):
    """The operation was cancelled."""


class Mismatch(Error):
    """Computed values differ from the expected ones, or versions do not match."""


class CommandFailed(Error, subprocess.CalledProcessError):
    """A command of `tensorsmith` failed. `returncode` is its exit code, `cmd` the program and its arguments."""

    def __init__(self, reason: str, place: str = "", returncode: int = 1, cmd: Sequence[str] = ()) -> None:
        Exception.__init__(self, f"{place}: {reason}" if place else reason)  # CalledProcessError's has other arguments
        self.place = place
        self.reason = reason
        self.returncode = returncode
        self.cmd = list(cmd)
        self.output = self.stderr = None

    def __reduce__(self):
        return type(self), (self.reason, self.place, self.returncode, self.cmd)


_BY_CODE = {
    "invalid argument": InvalidArgument,
    "not found": NotFound,
    "unsupported": Unsupported,
    "corrupt": Corrupt,
    "I/O error": Io,
    "timeout": Timeout,
    "resource exhausted": ResourceExhausted,
    "cancelled": Cancelled,
    "mismatch": Mismatch,
}


def from_native(code: str, place: str, reason: str) -> Error:
    """Returns the exception for an error of the native library."""
    return _BY_CODE.get(code, Error)(in_python(reason), in_python(place))


# Options of the command line whose arguments have other names in this package.
_ARGUMENTS = {
    "db": "database",
    "from": "sources",
    "lm": "language_model",
    "model": "cost_model",
    "param": "parameters",
}
_SWITCHES = {"bounded", "frozen", "roofline", "tf32", "untuned"}
_WITH_TEXT = {"device", "strategy"}
_WITH_NUMBER = {"batch", "seconds", "seed", "threads", "trials", "until-gain"}

_OPTION = re.compile(r"--([a-z][a-z0-9-]+)(?: (?:(\d[\d.e+-]*)\b|([a-z][\w:=\[\]-]*)))?")


def in_python(text: str) -> str:
    """Replaces options of the command line by arguments of this package: `--device cuda` by `device="cuda"`. Commands
    between backticks stay as they are."""
    parts = text.split("`")
    parts[::2] = [_OPTION.sub(_option_in_python, part) for part in parts[::2]]
    return "`".join(parts)


def _option_in_python(match: re.Match[str]) -> str:
    option, number, word = match.groups()
    name = _ARGUMENTS.get(option, option.replace("-", "_"))
    after = match[0].removeprefix(f"--{option}")
    if option in _SWITCHES:
        return f"{name}=True{after}"
    if number is not None and option in _WITH_NUMBER:
        return f"{name}={number}"
    if word is not None and option in _WITH_TEXT:
        return f'{name}="{word}"'
    return f"{name}={after}"
