"""Operators that make values from shapes and attributes."""

import numpy as np

from .. import dtypes as d
from ..builder import make_tensor
from ..values import random_array
from .registry import operator


@operator("ConstantOfShape")
def constant_of_shape(b, op):
    shape = [b.integer(0 if b.chance(0.1) else 1, 5) for _ in range(b.integer(0, 3))]
    value = None
    if b.chance(0.7):
        dtype = b.dtype(op, "T2")
        value = make_tensor(random_array(b.rng, dtype, [1], None, b.specials), "value")
    b.add(op, [b.constant(np.array(shape, dtype=np.int64))], value=value)


@operator("EyeLike")
def eye_like(b, op):
    x = b.value(b.allowed(op, "T1"), rank=2)
    dtype = b.dtype(op, "T2") if b.chance(0.5) else None
    b.add(op, [x], k=b.pick([None, 0, 1, -1, 3, -4]), dtype=None if dtype is None else d.TO_ONNX[dtype])


@operator("Range")
def range_(b, op):
    dtype = b.dtype(op, "T")
    step = b.pick([1, 2, 3, -1, -2] if dtype not in d.UNSIGNED else [1, 2])
    start = b.integer(0, 5)
    limit = start + step * b.integer(0, 6)
    if d.is_float(dtype) and b.chance(0.5):
        step, limit = step * 0.5, limit + 0.25
    b.add(
        op,
        [b.constant(np.array(v, dtype=dtype)) for v in (start, max(limit, 0) if dtype in d.UNSIGNED else limit, step)],
    )


@operator("Shape", weight=1.5)
def shape(b, op):
    x = b.value(b.allowed(op, "T"))
    if b.opset >= 15:
        b.add(
            op,
            [x],
            start=None if b.chance(0.5) else b.integer(-x.rank - 2, x.rank + 1),
            end=None if b.chance(0.5) else b.integer(-x.rank - 2, x.rank + 2),
        )
    else:
        b.add(op, [x])


@operator("Size")
def size(b, op):
    b.add(op, [b.value(b.allowed(op, "T"))])
