"""Normalizations."""
import numpy as np

from .. import dtypes as d
from .registry import operator
from .views import signed


def epsilon(b):
    return b.pick([None, None, 1e-5, 1e-3, 0.1])


@operator("BatchNormalization", weight=2)
def batch(b, op):
    x = b.value(b.allowed(op, "T"), rank=(2, 5))
    channels = [x.shape[1]]
    own = b.opset >= 15 and b.chance(0.2)
    t1 = b.pick(b.allowed(op, "T1")) if own else x.dtype
    t2 = b.pick(b.allowed(op, "T2")) if own else t1
    inputs = [x, b.fresh(t1, channels), b.fresh(t1, channels), b.fresh(t2, channels), b.fresh(t2, channels, "positive")]
    b.add(op, inputs, epsilon=epsilon(b), momentum=0.5 if b.chance(0.2) else None)


@operator("InstanceNormalization")
def instance(b, op):
    x = b.value(b.allowed(op, "T"), rank=(3, 5), least_extent=1)
    b.add(op, [x, b.fresh(x.dtype, [x.shape[1]]), b.fresh(x.dtype, [x.shape[1]])], epsilon=epsilon(b))


@operator("LayerNormalization", weight=2)
def layer(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 4), least_extent=1)
    axis = b.integer(0, x.rank - 1)
    shape = x.shape[axis:]
    if b.chance(0.15):
        shape = [1 if b.chance(0.4) else e for e in shape]
    bias = b.fresh(x.dtype, shape) if b.chance(0.6) else None
    default = axis == x.rank - 1 and b.chance(0.5)
    b.add(op, [x, b.fresh(x.dtype, shape), bias], b.pick([[1], [1], [1, 1], [1, 1, 1], [1, 0, 1]]),
          axis=None if default else signed(b, axis, x.rank), epsilon=epsilon(b))


@operator("RMSNormalization")
def rms(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 4), least_extent=1)
    axis = b.integer(0, x.rank - 1)
    b.add(op, [x, b.fresh(x.dtype, x.shape[axis:])], axis=signed(b, axis, x.rank), epsilon=epsilon(b))


@operator("GroupNormalization")
def group(b, op):
    groups, per_group = b.integer(1, 3), b.integer(1, 3)
    shape = [b.integer(1, 2), groups * per_group] + [b.integer(1, 5) for _ in range(b.integer(1, 2))]
    x = b.value(b.allowed(op, "T"), shape=shape)
    count = groups if b.opset < 21 else groups * per_group
    b.add(op, [x, b.fresh(x.dtype, [count]), b.fresh(x.dtype, [count])], num_groups=groups, epsilon=epsilon(b))


@operator("LRN")
def lrn(b, op):
    x = b.value(b.allowed(op, "T"), rank=(3, 4) if b.chance(0.3) else 4, least_extent=1)
    b.add(op, [x], size=b.pick([1, 3, 5, 2, 4]), alpha=b.pick([None, 0.1, 1.0]), beta=b.pick([None, 0.5, 1.0, 0.3]),
          bias=b.pick([None, 2.0, 0.5]))


@operator("LpNormalization")
def lp(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 4), least_extent=1)
    b.add(op, [x], axis=b.integer(-x.rank, x.rank - 1) if b.chance(0.7) else None, p=b.pick([None, 1, 2]))


@operator("MeanVarianceNormalization")
def mean_variance(b, op):
    if b.chance(0.6):
        x = b.value([d.F32], rank=4, least_extent=1)
        axes = None
    else:
        x = b.value([d.F32], rank=(1, 4), least_extent=1)
        axes = sorted(int(a) for a in b.rng.permutation(x.rank)[: b.integer(1, x.rank)])
    b.add(op, [x], axes=axes)
