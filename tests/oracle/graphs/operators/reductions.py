"""Reductions, ArgMax and ArgMin, running sums, softmax, top k."""

import numpy as np

from .. import dtypes as d
from .registry import operator
from .views import signed

REDUCE = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
)


@operator(*REDUCE.split(), weight=1.5)
def reduce(b, op):
    dtypes = b.allowed(op, "T")
    if op in ("ReduceLogSum", "ReduceLogSumExp"):
        dtypes = [t for t in dtypes if d.is_float(t)]  # logarithms of integers are refused; opset 28 drops them
    x = b.value(dtypes)
    keep = b.pick([None, 0, 1])
    axes = None
    if x.rank and not b.chance(0.2):
        axes = [int(a) for a in b.rng.permutation(x.rank)[: b.integer(1, x.rank)]]
        if b.opset >= 11:
            axes = [signed(b, a, x.rank) for a in axes]
        else:
            axes = sorted(axes)
    modern = b.opset >= (13 if op == "ReduceSum" else 18)
    if not modern:
        b.add(op, [x], keepdims=keep, axes=axes)
        return
    noop = b.pick([None, 0, 1])
    if axes is None and b.chance(0.3):
        axes = []
    b.add(
        op,
        [x] if axes is None else [x, b.constant(np.array(axes, dtype=np.int64))],
        keepdims=keep,
        noop_with_empty_axes=noop,
    )


@operator("ArgMax", "ArgMin", weight=1.5)
def arg(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 5), fits=lambda v: v.size, kind="equal" if b.chance(0.3) else None)
    axis = b.integer(0, x.rank - 1)
    b.add(
        op,
        [x],
        axis=None if axis == 0 and b.chance(0.5) else signed(b, axis, x.rank) if b.opset >= 11 else axis,
        keepdims=b.pick([None, 0, 1]),
        select_last_index=b.pick([None, 0, 1]) if b.opset >= 12 else None,
    )


def long_axis(b, op, kind=None):
    """Returns a value and its axis with so many elements that a routine computes it."""
    shape = [b.integer(1, 4) for _ in range(b.integer(0, 2))]
    axis = b.integer(0, len(shape))
    shape.insert(axis, b.integer(9, 60))
    return b.value(b.allowed(op, "T"), shape=shape, kind=kind), axis


@operator("CumSum", "CumProd")
def cumsum(b, op):
    if b.chance(0.35):
        x, own = long_axis(b, op)
    else:
        x = b.value(b.allowed(op, "T"), rank=(1, 4))
        own = b.integer(0, x.rank - 1)
    axis = b.constant(np.array(signed(b, own, x.rank), dtype=b.pick([np.int64, np.int32])))
    b.add(op, [x, axis], exclusive=b.pick([None, 0, 1]), reverse=b.pick([None, 0, 1]))


@operator("Softmax", "LogSoftmax", "Hardmax", weight=1.5)
def softmax(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 5), kind="equal" if op == "Hardmax" and b.chance(0.4) else None)
    if b.opset >= 11:
        axis = b.integer(-x.rank, x.rank - 1)
    else:
        axis = b.integer(0, x.rank - 1)
    default = x.rank > 1 or b.opset >= 13
    b.add(op, [x], axis=None if default and b.chance(0.3) else axis)


@operator("TopK", weight=1.5)
def top_k(b, op):
    kind = "equal" if b.chance(0.3) else None
    if b.chance(0.35):
        x, axis = long_axis(b, op, kind)
    else:
        x = b.value(b.allowed(op, "T"), rank=(1, 4), fits=lambda v: v.size, kind=kind)
        axis = b.integer(0, x.rank - 1)
    k = b.integer(0 if b.chance(0.05) else 1, x.shape[axis])
    outputs = b.pick([[1, 1], [1, 1], [1, 0], [0, 1]])
    if b.opset >= 11:
        b.add(
            op,
            [x, b.constant(np.array([k], dtype=np.int64))],
            outputs,
            axis=signed(b, axis, x.rank),
            largest=b.pick([None, 0, 1]),
            sorted=b.pick([None, 1]),
        )
    elif b.opset >= 10:
        b.add(op, [x, b.constant(np.array([k], dtype=np.int64))], outputs, axis=axis)
    else:
        b.add(op, [x], outputs, axis=axis, k=k)
