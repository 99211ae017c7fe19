"""Operators that give the same elements another shape."""

import numpy as np

from ..builder import Skip
from .registry import operator


def axes_argument(b, op, x, axes, modern=13):
    """Passes axes as an attribute or as an input; some are counted from the end."""
    axes = [int(a) for a in axes]
    if b.opset >= modern:
        return [x, b.constant(np.array(axes, dtype=np.int64))], {}
    return [x], {"axes": axes}


def signed(b, axis, rank):
    return axis - rank if b.chance(0.4) else axis


@operator("Reshape", weight=4)
def reshape(b, op):
    x = b.value(b.allowed(op, "T"))
    shape = b._shape_of_size(x.size, b.integer(0, 5)) if x.size else list(x.shape)
    if shape is None:
        raise Skip("no such shape")
    shape = list(shape)
    attributes = {}
    if x.size and shape and b.chance(0.4):
        shape[b.integer(0, len(shape) - 1)] = -1
    if x.size and b.chance(0.3):
        for k in range(min(len(shape), x.rank)):
            if shape[k] == x.shape[k] and b.chance(0.5):
                shape[k] = 0
    if b.opset >= 14 and 0 not in shape and b.chance(0.2):
        attributes["allowzero"] = 1
    if not x.size and b.opset >= 14:
        attributes["allowzero"] = 1
        shape = [int(e) for e in b.rng.permutation(shape)]
    b.add(op, [x, b.constant(np.array(shape, dtype=np.int64))], **attributes)


@operator("Flatten", weight=3)
def flatten(b, op):
    x = b.value(b.allowed(op, "T"))
    low = -x.rank if b.opset >= 11 else 0
    b.add(op, [x], axis=None if b.chance(0.3) and x.rank >= 1 else b.integer(low, x.rank))


@operator("Squeeze", weight=3)
def squeeze(b, op):
    x = b.value(b.allowed(op, "T"), fits=lambda v: 1 in v.shape)
    ones = [k for k, e in enumerate(x.shape) if e == 1]
    if b.chance(0.3):
        b.add(op, [x])
        return
    chosen = [k for k in ones if b.chance(0.6)] or ones[:1]
    if b.opset >= 11:
        chosen = [signed(b, k, x.rank) for k in chosen]
    inputs, attributes = axes_argument(b, op, x, chosen)
    b.add(op, inputs, **attributes)


@operator("Unsqueeze", weight=3)
def unsqueeze(b, op):
    x = b.value(b.allowed(op, "T"), rank=(0, 4))
    rank = x.rank + b.integer(1, 2)
    axes = [int(a) for a in b.rng.permutation(rank)[: rank - x.rank]]
    if b.opset >= 11:
        axes = [signed(b, a, rank) for a in axes]
    inputs, attributes = axes_argument(b, op, x, axes)
    b.add(op, inputs, **attributes)
