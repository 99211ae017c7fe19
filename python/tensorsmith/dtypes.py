"""Element types of tensors: Tensorsmith's names, NumPy's types, ONNX Runtime's names."""

from __future__ import annotations

import math

import numpy as np

ALIGNMENT = 64  # bytes; arrays at such addresses are used in place

_NUMPY = {
    "bool": np.bool_,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    # NumPy has no bfloat16, so its bits are used.
    "bf16": np.uint16,
}

_ONNX_RUNTIME = {
    "bool": "tensor(bool)",
    "i8": "tensor(int8)",
    "u8": "tensor(uint8)",
    "i16": "tensor(int16)",
    "u16": "tensor(uint16)",
    "i32": "tensor(int32)",
    "u32": "tensor(uint32)",
    "i64": "tensor(int64)",
    "u64": "tensor(uint64)",
    "f16": "tensor(float16)",
    "bf16": "tensor(bfloat16)",
    "f32": "tensor(float)",
    "f64": "tensor(double)",
}


def numpy_dtype(name: str) -> np.dtype:
    """Returns NumPy's type of the elements; for bf16, which NumPy does not have, the type of its bits."""
    return np.dtype(_NUMPY[name])


def onnx_runtime_type(name: str | None) -> str:
    """Returns ONNX Runtime's name of the type, such as "tensor(float)"."""
    return _ONNX_RUNTIME.get(name or "", "")


def random_array(shape: tuple[int, ...], name: str) -> np.ndarray:
    """Returns an input for timing, always the same: normally distributed floats, or integers 0, a valid index."""
    array = aligned_empty(shape, numpy_dtype(name))
    array[...] = np.random.default_rng(0).standard_normal(shape) if name in ("f16", "f32", "f64") else 0
    return array


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns an uninitialized array that the model can write in place."""
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % ALIGNMENT
    return buffer[start : start + size].view(dtype).reshape(shape)
