"""Operators that move, repeat, split and join elements."""

import numpy as np

from .. import dtypes as d
from ..builder import Skip
from .registry import operator
from .views import signed


@operator("Transpose", weight=2.5)
def transpose(b, op):
    x = b.value(b.allowed(op, "T"))
    perm = None if b.chance(0.3) else [int(p) for p in b.rng.permutation(x.rank)]
    b.add(op, [x], perm=perm or None)


@operator("Concat", weight=3)
def concat(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 6))
    axis = b.integer(0, x.rank - 1)
    parts = [x]
    for _ in range(b.pick([0, 1, 1, 2, 3])):

        def fits(v):
            return v.rank == x.rank and all(v.shape[k] == x.shape[k] for k in range(x.rank) if k != axis)

        found = [v for v in b.pool if v.dtype == x.dtype and fits(v) and v.size <= 2000]
        if found and b.chance(0.7):
            parts.append(b.pick(found))
        else:
            shape = list(x.shape)
            shape[axis] = b.integer(0 if b.chance(0.1) else 1, 6)
            parts.append(b.fresh(x.dtype, shape))
    b.rng.shuffle(parts)
    b.add(op, parts, axis=signed(b, axis, x.rank) if b.opset >= 11 else axis)


@operator("Split", weight=3)
def split(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 6))
    axis = b.integer(0, x.rank - 1)
    extent = x.shape[axis]
    count = b.integer(1, 4)
    attribute = None if axis == 0 and b.chance(0.5) else signed(b, axis, x.rank) if b.opset >= 11 else axis
    cuts = sorted(b.integer(0, extent) for _ in range(count - 1))
    sizes = [int(s) for s in np.diff([0, *cuts, extent])]
    if b.chance(0.3):  # equal parts
        if b.opset >= 18:
            least = -(-extent // count) * (count - 1) <= extent
            if not least or extent == 0:
                raise Skip("does not split")
            b.add(op, [x], count, axis=attribute, num_outputs=count)
            return
        if extent % count or extent == 0:
            raise Skip("does not split")
        b.add(op, [x], count, axis=attribute)
    elif b.opset >= 13:
        b.add(op, [x, b.constant(np.array(sizes, dtype=np.int64))], count, axis=attribute)
    else:
        b.add(op, [x], count, axis=attribute, split=sizes)


@operator("Slice", weight=3)
def slice_(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 6))
    axes = sorted(int(a) for a in b.rng.permutation(x.rank)[: b.integer(1, x.rank)])
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = x.shape[axis]
        step = b.pick([1, 1, 1, 2, 3, -1, -2]) if b.opset >= 10 else 1
        start, end = b.integer(-extent - 2, extent + 2), b.integer(-extent - 2, extent + 2)
        if b.chance(0.3):
            start, end = (0, 2**31 - 1) if step > 0 else (2**31 - 1, -(2**31) + 1)
        elif b.chance(0.7) and extent:
            low, high = sorted((b.integer(0, extent - 1), b.integer(0, extent)))
            start, end = (low, high) if step > 0 else (high, low - 1 if low else -extent - 1)
        starts.append(start)
        ends.append(end)
        steps.append(step)
    if b.opset < 10:
        b.add(op, [x], starts=starts, ends=ends, axes=axes)
        return
    own = [signed(b, a, x.rank) for a in axes]
    dtype = b.pick([np.int64, np.int64, np.int32])
    inputs = [x, b.constant(starts, dtype), b.constant(ends, dtype)]
    if axes != list(range(len(axes))) or b.chance(0.6) or steps != [1] * len(axes):
        inputs.append(b.constant(own, dtype))
        if steps != [1] * len(axes) or b.chance(0.4):
            inputs.append(b.constant(steps, dtype))
    b.add(op, inputs)


@operator("Expand", weight=1.5)
def expand(b, op):
    x = b.value(b.allowed(op, "T"), rank=(0, 5), most=500)
    shape = [b.integer(1, 4) if e == 1 and b.chance(0.6) else (1 if b.chance(0.2) else e) for e in x.shape]
    if b.chance(0.3):
        shape = [b.integer(1, 3)] + shape
    elif b.chance(0.2):
        shape = shape[b.integer(0, len(shape)) :]
    b.add(op, [x, b.constant(np.array(shape, dtype=np.int64))])


@operator("Tile")
def tile(b, op):
    x = b.value(b.allowed(op, "T"), most=300, rank=(0 if b.chance(0.1) else 1, 4))
    repeats = [b.pick([1, 1, 2, 3, 0 if b.chance(0.1) else 1]) for _ in x.shape]
    b.add(op, [x, b.constant(np.array(repeats, dtype=np.int64))])


@operator("Pad", weight=2)
def pad(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 5))
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if b.opset >= 19 else [])
    mode = b.pick([None, *modes])
    axes = None
    if b.opset >= 18 and b.chance(0.4):
        axes = [int(a) for a in b.rng.permutation(x.rank)[: b.integer(1, x.rank)]]
    over = list(range(x.rank)) if axes is None else axes
    begin, end = [], []
    for axis in over:
        extent = x.shape[axis]
        high = 4 if mode in (None, "constant", "edge") else max(extent - 1, 0)
        p, q = b.integer(0, high), b.integer(0, high)
        if b.chance(0.1) and extent >= 2:
            p = -1
        if b.chance(0.5):
            p = q = 0
        begin.append(p)
        end.append(q)
    pads = begin + end
    if b.opset < 11:
        b.add(op, [x], pads=pads, mode=mode, value=b.uniform(-2, 2) if b.chance(0.5) else None)
        return
    value = b.fresh(x.dtype, []) if b.chance(0.5) and mode in (None, "constant") else None
    inputs = [x, b.constant(np.array(pads, dtype=np.int64)), value]
    if axes is not None:
        inputs.append(b.constant(np.array([signed(b, a, x.rank) for a in axes], dtype=b.pick([np.int64, np.int32]))))
    b.add(op, inputs, mode=mode)


@operator("DepthToSpace")
def depth_to_space(b, op):
    block = b.integer(1, 3)
    shape = [b.integer(1, 2), block * block * b.integer(1, 3), b.integer(1, 4), b.integer(1, 4)]
    x = b.value(
        b.allowed(op, "T"),
        rank=4,
        fits=lambda v: v.shape[1] % (block * block) == 0 and v.size,
        shape=shape if b.chance(0.7) else None,
    )
    b.add(op, [x], blocksize=block, mode=b.pick([None, "DCR", "CRD"]) if b.opset >= 11 else None)


@operator("SpaceToDepth")
def space_to_depth(b, op):
    block = b.integer(1, 3)
    shape = [b.integer(1, 2), b.integer(1, 3), block * b.integer(1, 3), block * b.integer(1, 3)]
    x = b.value(b.allowed(op, "T"), shape=shape)
    b.add(op, [x], blocksize=block)


@operator("ReverseSequence")
def reverse_sequence(b, op):
    x = b.value(b.allowed(op, "T"), rank=(2, 4), least_extent=1)
    batch = b.integer(0, 1)
    lengths = b.rng.integers(1, x.shape[1 - batch] + 1, x.shape[batch])
    b.add(op, [x, b.fresh(d.I64, None, array=lengths.astype(np.int64))], batch_axis=batch, time_axis=1 - batch)


@operator("Trilu")
def trilu(b, op):
    x = b.value(b.allowed(op, "T"), rank=(2, 4))
    k = b.constant(np.array(b.integer(-5, 5), dtype=np.int64)) if b.chance(0.6) else None
    b.add(op, [x, k], upper=b.pick([None, 0, 1]))


@operator("CenterCropPad")
def center_crop_pad(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 5))
    axes = list(range(x.rank))
    if b.chance(0.5):
        axes = [int(k) for k in b.rng.permutation(x.rank)[: b.integer(1, x.rank)]]
    sizes = [max(0 if b.chance(0.05) else 1, x.shape[k] + b.integer(-4, 4)) for k in axes]
    given = None if axes == list(range(x.rank)) and b.chance(0.7) else [signed(b, k, x.rank) for k in axes]
    b.add(op, [x, b.constant(np.array(sizes, dtype=b.pick([np.int64, np.int32])))], axes=given)
