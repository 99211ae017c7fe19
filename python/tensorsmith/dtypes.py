"""Element types of tensors: Tensorsmith's names, NumPy's types, ONNX Runtime's names."""

from __future__ import annotations

import math

import numpy as np

from . import _native

ALIGNMENT = 64  # bytes; arrays at such addresses are used in place

_ROWS = _native.dtypes()
_NUMPY = {name: np.dtype(numpy) for name, numpy, _, _ in _ROWS}
_ONNX_RUNTIME = {name: f"tensor({onnx})" for name, _, _, onnx in _ROWS}
# ONNX Runtime's names of types, by the number of the type in onnx.TensorProto.DataType.
ONNX_RUNTIME_TYPES = {number: f"tensor({onnx})" for _, _, number, onnx in _ROWS} | {8: "tensor(string)"}


def numpy_dtype(name: str) -> np.dtype:
    """Returns NumPy's type of the elements; for bf16, which NumPy does not have, the type of its bits."""
    return _NUMPY[name]


def onnx_runtime_type(name: str | None) -> str:
    """Returns ONNX Runtime's name of the type, such as "tensor(float)"."""
    return _ONNX_RUNTIME.get(name or "", "")


def random_array(shape: tuple[int, ...], name: str) -> np.ndarray:
    """Returns an input for timing, always the same: normally distributed floats, or integers 0, a valid index."""
    array = aligned_empty(shape, numpy_dtype(name))
    array[...] = np.random.default_rng(0).standard_normal(shape) if np.issubdtype(array.dtype, np.floating) else 0
    return array


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns an uninitialized array that the model can write in place."""
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % ALIGNMENT
    return buffer[start : start + size].view(dtype).reshape(shape)
