"""Element types: NumPy's, ONNX's, and the names in the runner's answers."""

import ml_dtypes
import numpy as np
from onnx import TensorProto

BF16 = np.dtype(ml_dtypes.bfloat16)
F16 = np.dtype(np.float16)
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
BOOL = np.dtype(np.bool_)
I8, I16, I32, I64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))

FLOATS = (F32, F64, F16, BF16)
SIGNED = (I8, I16, I32, I64)
UNSIGNED = (U8, U16, U32, U64)
INTS = SIGNED + UNSIGNED
ALL = FLOATS + INTS + (BOOL,)

TO_ONNX = {
    F32: TensorProto.FLOAT,
    F64: TensorProto.DOUBLE,
    F16: TensorProto.FLOAT16,
    BF16: TensorProto.BFLOAT16,
    BOOL: TensorProto.BOOL,
    I8: TensorProto.INT8,
    I16: TensorProto.INT16,
    I32: TensorProto.INT32,
    I64: TensorProto.INT64,
    U8: TensorProto.UINT8,
    U16: TensorProto.UINT16,
    U32: TensorProto.UINT32,
    U64: TensorProto.UINT64,
}
FROM_ONNX = {v: k for k, v in TO_ONNX.items()}
# Names of types in the constraints of ONNX's schemas and in the runner.
FROM_SCHEMA = {
    "tensor(float)": F32,
    "tensor(double)": F64,
    "tensor(float16)": F16,
    "tensor(bfloat16)": BF16,
    "tensor(bool)": BOOL,
    "tensor(int8)": I8,
    "tensor(int16)": I16,
    "tensor(int32)": I32,
    "tensor(int64)": I64,
    "tensor(uint8)": U8,
    "tensor(uint16)": U16,
    "tensor(uint32)": U32,
    "tensor(uint64)": U64,
}
FROM_RUNNER = {
    "f32": F32,
    "f64": F64,
    "f16": F16,
    "bf16": BF16,
    "bool": BOOL,
    "i8": I8,
    "i16": I16,
    "i32": I32,
    "i64": I64,
    "u8": U8,
    "u16": U16,
    "u32": U32,
    "u64": U64,
}
TO_RUNNER = {v: k for k, v in FROM_RUNNER.items()}

# Distance from 1 to the next number, smallest subnormal and largest number.
EPSILON = {F32: 2.0**-23, F64: 2.0**-52, F16: 2.0**-10, BF16: 2.0**-7}
SUBNORMAL = {F32: 2.0**-149, F64: 5e-324, F16: 2.0**-24, BF16: 2.0**-133}
LARGEST = {
    F32: float(np.finfo(np.float32).max),
    F64: float(np.finfo(np.float64).max),
    F16: 65504.0,
    BF16: float(ml_dtypes.finfo(ml_dtypes.bfloat16).max),
}


def is_float(dtype):
    return dtype in EPSILON


def is_int(dtype):
    return np.dtype(dtype).kind in "iu"


def limits(dtype):
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def wide(array):
    """Returns the array with floats as f64."""
    if array is None or not is_float(array.dtype):
        return array
    return array.astype(np.float64)


def narrow(array, dtype):
    """Returns the array rounded to the dtype."""
    array = np.asarray(array)
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        if dtype == BF16 and array.dtype == F64:
            # Through f32 the value would be rounded twice; f32 rounded to odd avoids this.
            return _round_to_odd_f32(array).astype(BF16)
        return array.astype(dtype)


def _round_to_odd_f32(array):
    nearest = array.astype(np.float32)
    back = nearest.astype(np.float64)
    inexact = np.isfinite(array) & np.isfinite(nearest) & (back != array)
    bits = nearest.view(np.uint32).copy()
    away = np.abs(back) > np.abs(array)
    bits = np.where(inexact & away, bits - 1, bits)
    bits = np.where(inexact, bits | 1, bits)
    return bits.astype(np.uint32).view(np.float32)
