"""Compiled models through the C interface of libtensorsmith_runtime.so."""

from __future__ import annotations

import ctypes
import math

import numpy as np

# Element types by their number in the C interface. NumPy has no bfloat16.
_DTYPES = [
    np.bool_,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.float16,
    np.uint16,
    np.float32,
    np.float64,
]
_ALIGNMENT = 64  # bytes; the runtime uses tensors at such addresses in place


class LibraryError(Exception):
    """An error of the runtime library, in one line."""


class RuntimeLibrary:
    """The loaded library."""

    def __init__(self, path: str) -> None:
        lib = ctypes.CDLL(path)
        lib.ts_last_error.restype = ctypes.c_char_p
        lib.ts_model_load.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
        lib.ts_model_free.argtypes = [ctypes.c_void_p]
        lib.ts_model_run.argtypes = [ctypes.c_void_p] * 3
        for kind in ("input", "output"):
            count = getattr(lib, f"ts_model_num_{kind}s")
            count.argtypes, count.restype = [ctypes.c_void_p], ctypes.c_size_t
            for what, result in (
                ("name", ctypes.c_char_p),
                ("dtype", ctypes.c_int),
                ("rank", ctypes.c_int),
                ("dims", ctypes.POINTER(ctypes.c_int64)),
            ):
                function = getattr(lib, f"ts_model_{kind}_{what}")
                function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t], result
        self._lib = lib

    def load(self, directory: str, threads: int) -> LibraryModel:
        """Loads a compiled model."""
        return LibraryModel(self._lib, directory, threads)


class LibraryModel:
    """A compiled model, with its inputs and outputs in place (compare.OurModel)."""

    def __init__(self, lib: ctypes.CDLL, directory: str, threads: int) -> None:
        self._lib = lib
        self._model = ctypes.c_void_p()
        self._check(lib.ts_model_load(directory.encode(), threads, ctypes.byref(self._model)))
        self.inputs = {
            lib.ts_model_input_name(self._model, i).decode(): self._tensor("input", i)
            for i in range(lib.ts_model_num_inputs(self._model))
        }
        self.outputs = [self._tensor("output", i) for i in range(lib.ts_model_num_outputs(self._model))]
        self._input_pointers = _pointers(list(self.inputs.values()))
        self._output_pointers = _pointers(self.outputs)

    def run(self) -> None:
        """Runs the model on its inputs and writes its outputs."""
        self._check(self._lib.ts_model_run(self._model, self._input_pointers, self._output_pointers))

    def close(self) -> None:
        """Frees the model, which cannot be used afterwards."""
        self._lib.ts_model_free(self._model)

    def _check(self, status: int) -> None:
        if status:
            raise LibraryError(self._lib.ts_last_error().decode())

    def _tensor(self, kind: str, i: int) -> np.ndarray:
        rank = getattr(self._lib, f"ts_model_{kind}_rank")(self._model, i)
        dims = getattr(self._lib, f"ts_model_{kind}_dims")(self._model, i)
        dtype = np.dtype(_DTYPES[getattr(self._lib, f"ts_model_{kind}_dtype")(self._model, i)])
        shape = [dims[d] for d in range(rank)]
        raw = np.zeros(math.prod(shape) * dtype.itemsize + _ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % _ALIGNMENT
        return raw[start : start + math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def _pointers(arrays: list[np.ndarray]) -> ctypes.Array:
    return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
