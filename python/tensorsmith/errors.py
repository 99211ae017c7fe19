"""What can go wrong. Each exception says where, what, and what to do about it, in one line."""

from __future__ import annotations


class Error(Exception):
    """An error of Tensorsmith.

    Attributes:
        place: what it is about: a file, a node, an argument; may be empty.
        reason: what is wrong and what to do about it.
    """

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.place = place
        self.reason = reason

    def __reduce__(self):
        return type(self), (self.reason, self.place)


class InvalidArgument(Error, ValueError):
    """What was given is wrong."""


class NotFound(Error, LookupError):
    """A file, a tensor, a device or a record that is not there."""


class Unsupported(Error, NotImplementedError):
    """Something right that Tensorsmith cannot do: an operator, an element type."""


class Corrupt(Error):
    """A file that does not follow its format."""


class Io(Error):
    """The operating system refused: a full disk, a missing permission."""


class Timeout(Error):
    """Something took longer than it may."""


class ResourceExhausted(Error):
    """Too much memory, or too many of something."""


class Cancelled(Error):
    """The work was ended from outside."""


class Mismatch(Error):
    """Computed values differ from expected ones, or versions do."""


class CommandFailed(Error):
    """A command of `tensorsmith` failed; `returncode` is its exit code."""

    def __init__(self, reason: str, place: str = "", returncode: int = 1) -> None:
        super().__init__(reason, place)
        self.returncode = returncode

    def __reduce__(self):
        return type(self), (self.reason, self.place, self.returncode)


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
    """The exception for an error of the native half."""
    return _BY_CODE.get(code, Error)(reason, place)
