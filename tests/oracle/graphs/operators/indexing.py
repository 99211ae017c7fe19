"""Operators that read and write at indices given as data."""

import numpy as np

from .. import dtypes as d
from ..builder import Skip
from .registry import operator
from .views import signed


def indices(b, shape, extent, dtype=None, negative=True):
    dtype = dtype or b.pick([np.int64, np.int64, np.int32])
    low = -extent if negative and b.opset >= 11 and b.chance(0.4) else 0
    return b.fresh(None, None, array=b.rng.integers(low, extent, shape).astype(dtype))


def nonempty(v):
    return v.rank >= 1 and min(v.shape) >= 1


@operator("Gather", weight=2.5)
def gather(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 4), fits=nonempty, most=800)
    axis = b.integer(0, x.rank - 1)
    shape = b.pick([[], [1], [3], [2, 2], [5], [2, 1, 3], [0] if b.chance(0.2) else [4]])
    b.add(
        op,
        [x, indices(b, shape, x.shape[axis])],
        axis=None if axis == 0 and b.chance(0.5) else signed(b, axis, x.rank) if b.opset >= 11 else axis,
    )


@operator("GatherElements")
def gather_elements(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 4), fits=nonempty)
    axis = b.integer(0, x.rank - 1)
    shape = [b.integer(1, 5) if k == axis else b.integer(1, e) for k, e in enumerate(x.shape)]
    b.add(op, [x, indices(b, shape, x.shape[axis])], axis=signed(b, axis, x.rank))


@operator("GatherND")
def gather_nd(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 4), fits=nonempty)
    batch = b.integer(0, x.rank - 1) if b.opset >= 12 and b.chance(0.4) else 0
    depth = b.integer(1, x.rank - batch)
    shape = x.shape[:batch] + [b.integer(1, 3) for _ in range(b.integer(0, 2))]
    own = np.stack(
        [b.rng.integers(-x.shape[batch + q] if b.chance(0.3) else 0, x.shape[batch + q], shape) for q in range(depth)],
        axis=-1,
    )
    b.add(op, [x, b.fresh(None, None, array=own.astype(np.int64))], batch_dims=batch or None)


def reduction(b):
    if b.opset >= 18:
        return b.pick([None, "none", "add", "mul", "max", "min"])
    return b.pick([None, "none", "add", "mul"]) if b.opset >= 16 else None


def distinct(b, count, extent):
    if count > extent:
        raise Skip("not so many indices")
    return b.rng.permutation(extent)[:count]


@operator("ScatterElements", "Scatter", weight=1.5)
def scatter_elements(b, op):
    kind = reduction(b) if op == "ScatterElements" else None
    long = b.chance(0.35)  # a routine applies many updates of an axis
    if long:
        shape = [b.integer(1, 3) for _ in range(b.integer(0, 2))]
        axis = b.integer(0, len(shape))
        shape.insert(axis, b.integer(12, 60))
        x = b.value(b.allowed(op, "T"), shape=shape)
    else:
        x = b.value(b.allowed(op, "T"), rank=(1, 4), fits=nonempty)
        axis = b.integer(0, x.rank - 1)
    shape = [b.integer(1, min(e, 4)) for e in x.shape]
    if long:
        shape[axis] = b.integer(9, x.shape[axis] if kind in (None, "none") else 80)
    # Without a reduction the indices must differ.
    count = shape[axis]
    lines = np.stack(
        [
            distinct(b, count, x.shape[axis]) if kind in (None, "none") else b.rng.integers(0, x.shape[axis], count)
            for _ in range(int(np.prod(shape)) // count)
        ]
    )
    own = np.moveaxis(lines.reshape([e for k, e in enumerate(shape) if k != axis] + [count]), -1, axis)
    if b.opset >= 11 and b.chance(0.3):
        own = np.where(b.rng.random(own.shape) < 0.5, own - x.shape[axis], own)
    i = b.fresh(None, None, array=own.astype(b.pick([np.int64, np.int32])))
    b.add(
        op,
        [x, i, b.value([x.dtype], shape=shape)],
        axis=signed(b, axis, x.rank) if b.opset >= 11 else axis,
        reduction=kind,
    )


@operator("ScatterND", weight=1.5)
def scatter_nd(b, op):
    kind = reduction(b)
    if b.chance(0.35):  # a routine applies many updates
        x = b.value(b.allowed(op, "T"), shape=[b.integer(10, 40), *(b.integer(1, 3) for _ in range(b.integer(0, 2)))])
        depth = b.integer(1, x.rank)
        total = int(np.prod(x.shape[:depth]))
        tuples = [b.integer(9, total if kind in (None, "none") else 90)]
    else:
        x = b.value(b.allowed(op, "T"), rank=(1, 4), fits=nonempty)
        depth = b.integer(1, x.rank)
        tuples = [b.integer(1, 3) for _ in range(b.integer(0, 2))]
    count, total = int(np.prod(tuples)), int(np.prod(x.shape[:depth]))
    flat = distinct(b, count, total) if kind in (None, "none") else b.rng.integers(0, total, count)
    own = np.stack(np.unravel_index(flat, x.shape[:depth]), axis=-1).reshape(tuples + [depth])
    if b.chance(0.2):
        own = own - np.array(x.shape[:depth])
    updates = b.value([x.dtype], shape=tuples + x.shape[depth:])
    b.add(op, [x, b.fresh(None, None, array=own.astype(np.int64)), updates], reduction=kind)


@operator("OneHot")
def one_hot(b, op):
    depth = b.integer(1, 6)
    dtype = b.dtype(op, "T1", d.INTS)
    shape = [b.integer(1, 4) for _ in range(b.integer(0, 2))]
    low = -depth if dtype in d.SIGNED and b.opset >= 11 and b.chance(0.4) else 0
    own = b.rng.integers(low, depth + (2 if b.chance(0.2) else 0), shape).astype(dtype)
    dim = b.constant(
        np.array([depth] if b.chance(0.3) else depth, dtype=b.dtype(op, "T2", (d.I64, d.I32, d.F32, d.U8)))
    )
    values = b.fresh(b.dtype(op, "T3"), [2])
    b.add(
        op,
        [b.fresh(None, None, array=own), dim, values],
        axis=None if b.chance(0.4) else b.integer(-len(shape) - 1, len(shape)),
    )


@operator("Compress")
def compress(b, op):
    x = b.constant(b.value(b.allowed(op, "T"), rank=(1, 3), fits=nonempty, most=100).array)
    axis = None if b.chance(0.3) else b.integer(0, x.rank - 1)
    length = x.size if axis is None else x.shape[axis]
    b.add(
        op,
        [x, b.constant(b.rng.random(b.integer(1, length)) < 0.5)],
        axis=axis if axis is None or b.opset < 11 else signed(b, axis, x.rank),
    )


@operator("NonZero")
def non_zero(b, op):
    shape = [b.integer(1, 4) for _ in range(b.integer(1, 3))]
    dtype = b.dtype(op, "T")
    x = b.constant(np.where(b.rng.random(shape) < 0.5, 0, b.rng.integers(1, 5, shape)).astype(dtype))
    b.add(op, [x])


@operator("Unique")
def unique(b, op):
    shape = [b.integer(1, 5) for _ in range(b.integer(1, 3))]
    x = b.constant(b.rng.integers(0, 4, shape).astype(b.dtype(op, "T")))
    axis = None if b.chance(0.5) else b.integer(-len(shape), len(shape) - 1)
    b.add(op, [x], b.pick([[1], [1, 1], [1, 1, 1], [1, 1, 1, 1], [1, 0, 0, 1]]), axis=axis, sorted=b.pick([None, 0, 1]))


@operator("NonMaxSuppression")
def non_max_suppression(b, op):
    n, classes, boxes = b.integer(1, 2), b.integer(1, 2), b.integer(1, 6)
    corners = b.rng.uniform(0, 1, [n, boxes, 4]).astype(np.float32)
    center = b.pick([None, 0, 1])
    if center:
        corners[..., 2:] += 0.1
    scores = b.rng.permutation(n * classes * boxes).reshape(n, classes, boxes).astype(np.float32) / 50
    inputs = [b.constant(corners), b.constant(scores), b.constant(np.array([b.integer(1, 4)], dtype=np.int64))]
    if b.chance(0.8):
        inputs.append(b.constant(np.array([b.uniform(0, 1)], dtype=np.float32)))
        if b.chance(0.6):
            inputs.append(b.constant(np.array([b.uniform(0, 0.2)], dtype=np.float32)))
    b.add(op, inputs, center_point_box=center)


@operator("TensorScatter")
def tensor_scatter(b, op):
    cache = b.value(b.allowed(op, "T"), rank=(2, 5), fits=nonempty, most=800)
    axis = b.integer(1, cache.rank - 1)
    shape = list(cache.shape)
    shape[axis] = b.integer(0 if b.chance(0.05) else 1, cache.shape[axis])
    mode = b.pick([None, "linear", "circular"])
    begin = None
    if b.chance(0.8):
        most = cache.shape[axis] - (0 if mode == "circular" and shape[axis] else shape[axis])
        last = most - 1 if mode == "circular" and shape[axis] else most
        begin = b.fresh(None, None, array=b.rng.integers(0, last + 1, [cache.shape[0]]).astype(np.int64))
    given = None if axis == cache.rank - 2 and b.chance(0.5) else signed(b, axis, cache.rank)
    b.add(op, [cache, b.value([cache.dtype], shape=shape), begin], axis=given, mode=mode)
