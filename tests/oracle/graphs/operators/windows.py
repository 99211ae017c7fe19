"""Convolutions and pools."""

import numpy as np

from .. import dtypes as d
from ..builder import Skip
from .registry import operator


def data(b, op, parameter, spatial, kernel=None):
    shape = [b.integer(1, 2), b.pick([1, 2, 3, 4, 6, 8, 16])] + [
        b.integer(1, 12 if spatial < 3 else 6) for _ in range(spatial)
    ]
    return b.value(
        b.allowed(op, parameter),
        rank=spatial + 2,
        shape=shape if b.chance(0.5) else None,
        least_extent=1,
        most=4000,
        fits=lambda v: v.shape[0] <= 4,
    )


def spatial_rank(b):
    return b.pick([1, 2, 2, 2, 2, 3])


def window(b, x, kernel, pads=True, dilated=True, auto=True):
    """Returns strides, dilations, pads or auto_pad with which the kernel fits into the padded data."""
    n = len(kernel)
    a = {}
    dilations = [1] * n
    if dilated and b.chance(0.3):
        dilations = [b.integer(1, 3) for _ in range(n)]
        a["dilations"] = dilations
    if b.chance(0.5):
        a["strides"] = [b.integer(1, 3) for _ in range(n)]
    reach = [(k - 1) * s + 1 for k, s in zip(kernel, dilations)]
    if auto and b.chance(0.2):
        a["auto_pad"] = b.pick(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
        if a["auto_pad"] in ("SAME_UPPER", "SAME_LOWER"):
            if x.rank and dilations != [1] * n:
                a.pop("dilations")
            return a
    if pads and a.get("auto_pad", "NOTSET") == "NOTSET" and b.chance(0.6):
        low = [b.integer(0, max(r - 1, 0)) for r in reach]
        high = [b.integer(0, max(r - 1, 0)) for r in reach]
        a["pads"] = low + high
    p = a.get("pads", [0] * 2 * n)
    if any(x.shape[2 + k] + p[k] + p[n + k] < reach[k] for k in range(n)):
        raise Skip("the kernel does not fit")
    return a


def kernel_for(b, x):
    return [min(b.pick([1, 1, 2, 3, 3, 3, 5, 7]), max(e, 1) + 1) for e in x.shape[2:]]


@operator("Conv", weight=4)
def conv(b, op):
    x = data(b, op, "T", spatial_rank(b))
    channels = x.shape[1]
    groups = b.pick([1, 1, 1, channels] + [g for g in (2, 3, 4) if channels % g == 0])
    filters = groups * b.pick([1, 1, 2, 3, 4, 8, 16 if groups == 1 else 1])
    kernel = kernel_for(b, x)
    a = window(b, x, kernel)
    w = b.fresh(x.dtype, [filters, channels // groups] + kernel, where=None if b.chance(0.3) else "initializer")
    bias = b.fresh(x.dtype, [filters]) if b.chance(0.5) else None
    b.add(
        op,
        [x, w, bias],
        group=None if groups == 1 and b.chance(0.5) else groups,
        kernel_shape=kernel if b.chance(0.5) else None,
        **a,
    )


@operator("ConvTranspose", weight=2)
def conv_transpose(b, op):
    x = data(b, op, "T", spatial_rank(b))
    channels = x.shape[1]
    groups = b.pick([1, 1, 1, channels] + [g for g in (2, 3) if channels % g == 0])
    kernel = [b.pick([1, 2, 3, 3, 4, 5]) for _ in x.shape[2:]]
    n = len(kernel)
    a = {}
    strides = [b.integer(1, 3) for _ in range(n)] if b.chance(0.6) else [1] * n
    dilations = [b.integer(1, 2) for _ in range(n)] if b.chance(0.3) else [1] * n
    if strides != [1] * n:
        a["strides"] = strides
    if dilations != [1] * n:
        a["dilations"] = dilations
    choice = b.rng.random()
    full = [(x.shape[2 + k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 for k in range(n)]
    if choice < 0.35:
        a["pads"] = [b.integer(0, max(min(kernel[k % n] - 1, (full[k % n] - 1) // 2), 0)) for k in range(2 * n)]
    elif choice < 0.5:
        a["auto_pad"] = b.pick(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    elif choice < 0.6:
        a["output_shape"] = [max(1, f + b.integer(-2, 0)) for f in full]
    if "output_shape" not in a and "auto_pad" not in a and b.chance(0.3):
        a["output_padding"] = [b.integer(0, max(s, t) - 1) for s, t in zip(strides, dilations)]
    w = b.fresh(x.dtype, [channels, b.pick([1, 2, 3, 4])] + kernel)
    bias = b.fresh(x.dtype, [w.shape[1] * groups]) if b.chance(0.5) else None
    b.add(
        op,
        [x, w, bias],
        group=None if groups == 1 and b.chance(0.5) else groups,
        kernel_shape=kernel if b.chance(0.5) else None,
        **a,
    )


@operator("MaxPool", "AveragePool", "LpPool", weight=2)
def pool(b, op):
    x = data(b, op, "T", spatial_rank(b))
    kernel = kernel_for(b, x)
    dilated = b.opset >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]
    a = window(b, x, kernel, dilated=dilated)
    if b.opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]:
        a["ceil_mode"] = b.pick([None, None, 0, 1])
    if op == "AveragePool":
        a["count_include_pad"] = b.pick([None, 0, 1])
    if op == "LpPool":
        a["p"] = b.pick([None, 1, 2, 3])
    b.add(op, [x], kernel_shape=kernel, **a)


@operator("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool", weight=1.5)
def global_pool(b, op):
    x = b.value(b.allowed(op, "T"), rank=(3, 5), least_extent=1)
    b.add(op, [x], p=b.pick([None, 1, 2, 3]) if op == "GlobalLpPool" else None)


@operator("MaxUnpool")
def max_unpool(b, op):
    n = b.pick([1, 2, 2, 2, 3])
    kernel = [b.integer(1, 3) for _ in range(n)]
    strides = [b.integer(1, 3) for _ in range(n)] if b.chance(0.7) else None
    a = {"kernel_shape": kernel, "strides": strides}
    if b.chance(0.5):
        # Data like a result of MaxPool: overlapping windows repeat their maximum.
        shape = [b.integer(1, 2), b.integer(1, 3)] + [b.integer(3, 5) for _ in range(n)]
        data = b.value(b.allowed("MaxPool", "T"), shape=shape, fits=lambda v: d.is_float(v.dtype))
        x, where = b.add("MaxPool", [data], [1, 1], **a)
    else:
        x = b.value(b.allowed(op, "T1"), shape=[b.integer(1, 2), b.integer(1, 3)] + [b.integer(1, 4) for _ in range(n)])
        where = None
    steps = strides or [1] * n
    out = x.shape[:2] + [(x.shape[2 + k] - 1) * steps[k] + kernel[k] for k in range(n)]
    if x.size * np.prod(out) > 30000:
        raise Skip("every element is looked for at every place")
    if where is None:
        size = int(np.prod(out))
        places = b.rng.permutation(size)[: x.size] if size >= x.size else b.rng.integers(0, size, x.size)
        where = b.fresh(None, None, array=places.reshape(x.shape).astype(np.int64))
    larger = None
    if b.chance(0.3):
        larger = b.constant(np.array(out[:2] + [e + b.integer(0, 2) for e in out[2:]], dtype=np.int64))
    b.add(op, [x, where, larger], **a)


@operator("DeformConv", weight=1.5)
def deform_conv(b, op):
    groups, offset_groups = b.pick([1, 1, 2]), b.pick([1, 1, 2])
    channels = groups * offset_groups * b.integer(1, 2)
    x = b.value(b.allowed(op, "T"), shape=[b.integer(1, 2), channels, b.integer(1, 5), b.integer(1, 5)])
    kernel = [b.integer(1, min(3, e + 1)) for e in x.shape[2:]]
    a = window(b, x, kernel, auto=False)
    strides, dilations, pads = a.get("strides", [1, 1]), a.get("dilations", [1, 1]), a.get("pads", [0] * 4)
    out = [
        (x.shape[2 + k] + pads[k] + pads[2 + k] - dilations[k] * (kernel[k] - 1) - 1) // strides[k] + 1 for k in (0, 1)
    ]
    filters = groups * b.integer(1, 3)
    taps = kernel[0] * kernel[1] * offset_groups
    offsets = b.rng.uniform(-2, 2, [x.shape[0], 2 * taps, *out])
    if b.chance(0.3):
        offsets = np.rint(offsets)  # between no pixels, and on the border
    w = b.fresh(x.dtype, [filters, channels // groups, *kernel])
    b.add(
        op,
        [
            x,
            w,
            b.fresh(None, None, array=d.narrow(offsets, x.dtype)),
            b.fresh(x.dtype, [w.shape[0]]) if b.chance(0.5) else None,
            b.fresh(x.dtype, [x.shape[0], taps, *out], "unit") if b.chance(0.4) else None,
        ],
        group=None if groups == 1 and b.chance(0.5) else groups,
        offset_group=None if offset_groups == 1 and b.chance(0.5) else offset_groups,
        kernel_shape=kernel if b.chance(0.5) else None,
        **a,
    )
