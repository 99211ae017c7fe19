"""Loads compiled models with this package or with the C library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .runtime_library import LibraryError, RuntimeLibrary


def loader(runtime: str) -> Callable[[str, int], Any]:
    """Returns a function of (directory, threads) that loads a compiled model as a compare.OurModel with `close`. It
    uses the library with the path `runtime`, or this package if the path is empty."""
    if runtime:
        return RuntimeLibrary(runtime).load
    return OwnModel


def load_error(runtime: str) -> type[Exception]:
    """Returns the type of exceptions that such a loader raises."""
    if runtime:
        return LibraryError
    from ..errors import Error

    return Error


class OwnModel:
    """A compiled model, loaded by this package, with its inputs and outputs in place."""

    def __init__(self, directory: str, threads: int) -> None:
        from .. import _native
        from ..dtypes import aligned_empty, numpy_dtype

        self._native = _native.Model(directory, threads, "", False)
        self.inputs = {name: aligned_empty(shape, numpy_dtype(dtype)) for name, dtype, shape in self._native.inputs}
        self.outputs = [aligned_empty(shape, numpy_dtype(dtype)) for _, dtype, shape in self._native.outputs]
        for array in self.inputs.values():
            array[...] = 0
        self._given = list(self.inputs.values())

    @property
    def num_threads(self) -> int:
        """Number of threads."""
        return self._native.num_threads

    def run(self) -> None:
        """Runs the model on `inputs` and writes `outputs`."""
        self._native.run(self._given, self.outputs)

    def close(self) -> None:
        """Frees the model, which cannot be used afterwards."""
        del self._native
