"""Attention and related operators."""

import numpy as np

from .. import dtypes as d
from .registry import operator


@operator("Attention", weight=1.5)
def attention(b, op):
    batch, heads, own, length, past = b.integer(1, 2), b.integer(1, 3), b.integer(1, 4), b.integer(1, 5), 0
    size, value_size = b.integer(1, 5), b.integer(1, 5)
    groups = b.pick([1, 1, heads])
    kv = heads // groups
    dtype = b.dtype(op, "T1")
    a = {"is_causal": b.pick([None, 0, 1]), "scale": b.pick([None, None, 0.5]), "softcap": b.pick([None, None, 2.0])}
    if b.chance(0.4):
        a["q_num_heads"], a["kv_num_heads"] = heads, kv
        q, k, v = [batch, own, heads * size], [batch, length, kv * size], [batch, length, kv * value_size]
    else:
        q, k, v = [batch, heads, own, size], [batch, kv, length, size], [batch, kv, length, value_size]
    inputs = [b.value([dtype], shape=q), b.value([dtype], shape=k), b.value([dtype], shape=v)]
    mask = None
    if b.chance(0.4):
        shape = b.pick([[own, length + past], [1, 1, own, length + past], [batch, heads, own, length + past]])
        mask = b.fresh(d.BOOL, None, array=np.ones(shape, bool)) if b.chance(0.3) else b.fresh(dtype, shape, "normal")
    b.add(op, [*inputs, mask], **a)


@operator("RotaryEmbedding")
def rotary(b, op):
    batch, length, heads, size = b.integer(1, 2), b.integer(1, 4), b.integer(1, 3), 2 * b.integer(1, 4)
    dtype = b.dtype(op, "T")
    interleaved = b.pick([None, 0, 1])
    a = {"interleaved": interleaved}
    if b.chance(0.4):
        shape = [batch, length, heads * size]
        a["num_heads"] = heads
    else:
        shape = [batch, heads, length, size]
    rotated = size
    if b.chance(0.3) and size > 2:
        rotated = size - 2
        a["rotary_embedding_dim"] = rotated
    x = b.value([dtype], shape=shape)
    if b.chance(0.5):
        table = [8, rotated // 2]
        positions = b.fresh(None, None, array=b.rng.integers(0, 8, [batch, length]).astype(np.int64))
        b.add(op, [x, b.fresh(dtype, table, "unit"), b.fresh(dtype, table, "unit"), positions], **a)
    else:
        table = [batch, length, rotated // 2]
        b.add(op, [x, b.fresh(dtype, table, "unit"), b.fresh(dtype, table, "unit")], **a)


@operator("Col2Im")
def col2im(b, op):
    image = [b.integer(2, 6), b.integer(2, 6)]
    block = [b.integer(1, min(3, image[0])), b.integer(1, min(3, image[1]))]
    strides = [b.integer(1, 2), b.integer(1, 2)]
    pads = [b.integer(0, 1) for _ in range(4)] if b.chance(0.4) else [0] * 4
    dilations = [1, 1]
    count = int(
        np.prod(
            [(image[k] + pads[k] + pads[2 + k] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1 for k in range(2)]
        )
    )
    channels = b.integer(1, 3)
    x = b.value(b.allowed(op, "T"), shape=[b.integer(1, 2), channels * block[0] * block[1], count])
    b.add(
        op,
        [x, b.constant(np.array(image, dtype=np.int64)), b.constant(np.array(block, dtype=np.int64))],
        strides=strides if strides != [1, 1] or b.chance(0.3) else None,
        pads=pads if any(pads) else None,
    )
