"""Calls that run in the background, one at a time, and end with the process."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Hashable

from . import _native

_log = logging.getLogger("tensorsmith")

_NICENESS = 10  # added to the process' niceness
_PATIENCE_AT_EXIT = 30.0  # seconds; a cancelled compilation ends within one kernel


class BackgroundCalls:
    """Runs calls one at a time, each with a key. A call can check `cancel`, which is set when the process ends."""

    def __init__(self) -> None:
        self.cancel = _native.Cancel()
        self._calls: dict[Hashable, Callable[[], None]] = {}  # the first one is running
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False
        _live.add(self)

    def add(self, key: Hashable, call: Callable[[], None], most: int) -> bool:
        """Queues the call. Returns False if there is one with this key, or if `most` calls are queued."""
        with self._changed:
            if self._stopped or key in self._calls or len(self._calls) >= max(most, 1):
                return False
            self._calls[key] = call
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tensorsmith", daemon=True)
                self._thread.start()
            return True

    def has(self, key: Hashable) -> bool:
        """Returns whether the call runs or waits."""
        with self._changed:
            return key in self._calls

    def waiting(self) -> int:
        """Returns the number of calls that run or wait."""
        with self._changed:
            return len(self._calls)

    def wait_for(self, key: Hashable) -> None:
        """Waits until the call has ended."""
        with self._changed:
            self._changed.wait_for(lambda: key not in self._calls)

    def wait_for_all(self, timeout: float | None) -> bool:
        """Waits until no call is left. Returns False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._calls, timeout)

    def stop(self) -> None:
        """Ends the running call and drops the waiting ones."""
        self.cancel.set()
        with self._changed:
            self._stopped = True
            thread = self._thread
        if thread is not None:
            thread.join(_PATIENCE_AT_EXIT)

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    self._calls.clear()
                if not self._calls:
                    self._thread = None
                    self._changed.notify_all()
                    return
                key, call = next(iter(self._calls.items()))
            try:
                call()
            except Exception:
                _log.exception("a call in the background failed")
            with self._changed:
                self._calls.pop(key, None)
                self._changed.notify_all()


# No thread may run native code while the interpreter is shut down.
_live: weakref.WeakSet[BackgroundCalls] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    for calls in list(_live):
        calls.stop()


# A forked child has none of the threads, but they may hold the locks.
os.register_at_fork(after_in_child=_live.clear)


def in_low_priority(work: Callable[[], None]) -> None:
    """Runs the work, and the threads that it starts, with a low priority."""
    raised: list[BaseException] = []

    def run() -> None:
        thread = threading.get_native_id()
        try:
            os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICENESS)
        except OSError:
            _log.debug("the system does not lower the priority of a thread")
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="tensorsmith compiles", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
