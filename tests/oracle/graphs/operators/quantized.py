"""Quantized operators, and conversions to and from quantized values."""

import numpy as np

from .. import dtypes as d
from .registry import operator
from .views import signed
from .windows import kernel_for, window

BYTES = (d.U8, d.I8)


def scale(b, shape=(), dtype=d.F32):
    values = b.rng.choice(np.array([0.5, 1.0, 0.25, 0.02, 0.1, 0.0078125]), shape) * b.pick([1.0, 1.0, 1.3])
    return b.fresh(None, None, array=np.asarray(values, dtype=dtype).reshape(shape))


def zero_point(b, dtype, shape=(), zero=0.3):
    low, high = d.limits(dtype)
    low, high = max(low, -100), min(high, 200)
    values = np.zeros(shape, dtype) if b.chance(zero) else b.rng.integers(low, high + 1, shape).astype(dtype)
    return b.fresh(None, None, array=np.asarray(values, dtype=dtype).reshape(shape))


def bytes_value(b, shape, dtype=None, where=None):
    dtype = dtype or b.pick(BYTES)
    low, high = d.limits(dtype)
    if b.chance(0.3):  # 7 bits, like weights quantized for processors without VNNI
        low, high = (-64, 64) if dtype == d.I8 else (0, 128)
    return b.fresh(None, None, array=b.rng.integers(low, high + 1, shape).astype(dtype), where=where)


def granularity(b, x):
    """Returns the shape of scale and zero point, and the axis."""
    if x.rank == 0 or b.opset < 13 or b.chance(0.6):
        return [], None
    axis = b.integer(0, x.rank - 1)
    return [x.shape[axis]], signed(b, axis, x.rank)


@operator("QuantizeLinear", weight=2)
def quantize_linear(b, op):
    x = b.value(
        [t for t in b.allowed(op, b.schema(op).inputs[0].type_str) if t != d.I32 or b.chance(0.3)],
        kind="normal" if b.chance(0.5) else None,
    )
    shape, axis = granularity(b, x)
    if axis is None and b.chance(0.3):
        axis = 0
    scales = scale(b, shape, x.dtype if b.opset >= 19 and d.is_float(x.dtype) else d.F32)
    parameter = b.schema(op).outputs[0].type_str
    targets = [t for t in b.allowed(op, parameter) if d.is_int(t)]
    attributes = {}
    if b.opset >= 13 and (shape or b.chance(0.2)):
        attributes["axis"] = axis if axis is not None else None
    point = zero_point(b, b.pick(targets), shape) if b.chance(0.75) else None
    if point is None and b.opset >= 21 and b.chance(0.5):
        attributes["output_dtype"] = d.TO_ONNX[b.pick(targets)]
    if attributes.get("axis") is not None and not -x.rank <= attributes["axis"] < max(x.rank, 1):
        attributes.pop("axis")
    b.add(op, [x, scales, point], **attributes)


@operator("DequantizeLinear", weight=2)
def dequantize_linear(b, op):
    types = [t for t in b.allowed(op, b.schema(op).inputs[0].type_str) if d.is_int(t)]
    x = b.value(types)
    shape, axis = granularity(b, x)
    parameter = b.schema(op).inputs[1].type_str
    dtype = b.pick([t for t in b.allowed(op, parameter)]) if not parameter.startswith("tensor(") else d.F32
    point = zero_point(b, x.dtype, shape) if b.chance(0.7) and x.dtype != d.I32 else None
    b.add(op, [x, scale(b, shape, dtype), point], axis=axis)


@operator("DynamicQuantizeLinear", weight=1.5)
def dynamic_quantize(b, op):
    b.add(op, [b.value([d.F32], fits=lambda v: v.size)], 3)


@operator("MatMulInteger", weight=1.5)
def matmul_integer(b, op):
    m, k, n = b.integer(1, 9), b.integer(1, 20), b.integer(1, 9)
    batch = [b.integer(1, 2)] if b.chance(0.3) else []
    x, y = bytes_value(b, batch + [m, k]), bytes_value(b, [k, n])
    px = zero_point(b, x.dtype) if b.chance(0.6) else None
    py = zero_point(b, y.dtype, [n] if b.chance(0.3) else []) if b.chance(0.6) else None
    b.add(op, [x, y, px, py])


@operator("QLinearMatMul", weight=1.5)
def qlinear_matmul(b, op):
    m, k, n = b.integer(1, 9), b.integer(1, 20), b.integer(1, 9)
    batch = [b.integer(1, 2)] if b.chance(0.3) else []
    x = bytes_value(b, batch + [m, k])
    y = bytes_value(b, batch + [k, n], weights_dtype(b, x))
    result = zero_point(b, x.dtype)
    big = b.fresh(None, None, array=np.array(b.pick([1.0, 10.0, 40.0]), dtype=np.float32))
    b.add(op, [x, scale(b), zero_point(b, x.dtype), y, scale(b), zero_point(b, y.dtype), big, result])


def weights_dtype(b, x):
    """Returns a dtype of weights for which ONNX Runtime has kernels."""
    return d.I8 if x.dtype == d.I8 else b.pick(BYTES)


def byte_data(b):
    spatial = b.pick([1, 2, 2, 2])
    shape = [b.integer(1, 2), b.pick([1, 2, 3, 4, 8])] + [b.integer(1, 8) for _ in range(spatial)]
    return bytes_value(b, shape)


def byte_weights(b, x, dtype=None):
    channels = x.shape[1]
    groups = b.pick([1, 1, 1, channels] + [g for g in (2,) if channels % g == 0])
    filters = groups * b.pick([1, 2, 3, 4])
    kernel = kernel_for(b, x)
    a = window(b, x, kernel)
    w = bytes_value(
        b, [filters, channels // groups] + kernel, dtype, where=b.pick(["initializer", "initializer", "input"])
    )
    return w, groups, a


@operator("ConvInteger", weight=1.5)
def conv_integer(b, op):
    x = byte_data(b)
    w, groups, a = byte_weights(b, x)
    px = zero_point(b, x.dtype) if b.chance(0.6) else None
    pw = zero_point(b, w.dtype) if b.chance(0.5) else None
    b.add(op, [x, w, px, pw], group=groups, **a)


@operator("QLinearConv", weight=1.5)
def qlinear_conv(b, op):
    x = byte_data(b)
    w, groups, a = byte_weights(b, x, weights_dtype(b, x))
    shape = [w.shape[0]] if b.chance(0.4) else []
    bias = (
        b.fresh(None, None, array=b.rng.integers(-1000, 1000, [w.shape[0]]).astype(np.int32)) if b.chance(0.5) else None
    )
    big = b.fresh(None, None, array=np.array(b.pick([1.0, 10.0, 40.0]), dtype=np.float32))
    result = zero_point(b, x.dtype)
    b.add(
        op,
        [
            x,
            scale(b),
            zero_point(b, x.dtype),
            w,
            scale(b, shape),
            zero_point(b, w.dtype, shape, zero=0.7),
            big,
            result,
            bias,
        ],
        group=groups,
        **a,
    )


@operator("com.microsoft.MatMulNBits", weight=1.5)
def matmul_nbits(b, op):
    bits, block = b.pick([4, 4, 8, 2]), b.pick([16, 16, 32, 64])
    depth, columns = b.pick([b.integer(1, 40), block, 2 * block, b.integer(1, 140)]), b.integer(1, 12)
    x = b.value([b.pick([d.F32, d.F32, d.F16])], shape=[b.integer(1, 3) for _ in range(b.integer(0, 2))] + [depth])
    blocks = -(-depth // block)
    weights = b.rng.integers(0, 256, [columns, blocks, block * bits // 8]).astype(np.uint8)
    shape = b.pick([[columns, blocks], [columns * blocks]])
    zeros = None
    choice = b.rng.random()
    if choice < 0.4:
        width = -(-blocks * bits // 8)
        packed = b.rng.integers(0, 256, b.pick([[columns, width], [columns * width]])).astype(np.uint8)
        zeros = b.fresh(None, None, array=packed)
    elif choice < 0.6:
        zeros = b.fresh(None, None, array=b.rng.uniform(0, 2**bits, shape).astype(x.dtype))
    bias = b.fresh(x.dtype, [columns]) if b.chance(0.4) else None
    b.add(
        op,
        [
            x,
            b.fresh(None, None, array=weights, where=b.pick(["initializer", "input"])),
            b.fresh(x.dtype, shape, "unit"),
            zeros,
            None,
            bias,
        ],
        K=depth,
        N=columns,
        bits=bits if bits != 4 or b.chance(0.5) else None,
        block_size=block,
    )
