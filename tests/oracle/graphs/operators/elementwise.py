"""Elementwise operators."""

import numpy as np

from .. import dtypes as d
from ..builder import Skip
from .registry import operator

UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor HardSwish Identity Log Mish Neg Not "
    "Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh BitwiseNot IsNaN"
).split()
DOMAIN = {"Acos": "unit", "Asin": "unit", "Atanh": "unit", "Log": "positive", "Sqrt": "positive"}


def some_float(b, op, parameter="T", **options):
    return b.value(b.allowed(op, parameter), **options)


def dtype_parameter(b, op):
    return b.schema(op).inputs[0].type_str


def maybe(b, p, value):
    return value if b.chance(p) else None


@operator(*UNARY)
def unary(b, op):
    kind = DOMAIN.get(op) if b.chance(0.5) else None
    if op in ("Sin", "Cos", "Tan") and b.chance(0.15):
        kind = "huge"
    name = dtype_parameter(b, op)
    types = [d.BOOL] if op == "Not" else b.allowed(op, name)
    if kind:
        b.add(op, [b.value([b.dtype(op, name)], kind=kind, reuse=0.3)])
    else:
        b.add(op, [b.value(types)])


def alpha(b, low=-2.0, high=2.0):
    return maybe(b, 0.6, b.pick([0.0, 1.0, b.uniform(low, high), b.uniform(0.05, 1)]))


@operator("LeakyRelu", "Elu", "ThresholdedRelu", "Swish")
def with_alpha(b, op):
    b.add(op, [some_float(b, op)], alpha=alpha(b))


@operator("Celu")
def celu(b, op):
    b.add(op, [some_float(b, op)], alpha=maybe(b, 0.6, b.uniform(0.1, 3)))


@operator("Selu")
def selu(b, op):
    b.add(op, [some_float(b, op)], alpha=alpha(b, 0, 3), gamma=maybe(b, 0.5, b.uniform(0.1, 3)))


@operator("HardSigmoid")
def hard_sigmoid(b, op):
    b.add(op, [some_float(b, op)], alpha=maybe(b, 0.5, b.uniform(-1, 1)), beta=maybe(b, 0.5, b.uniform(-1, 1)))


@operator("Gelu")
def gelu(b, op):
    b.add(op, [some_float(b, op)], approximate=b.pick([None, "none", "tanh"]))


@operator("Shrink")
def shrink(b, op):
    b.add(
        op,
        [b.value(b.allowed(op, "T"))],
        lambd=maybe(b, 0.7, b.pick([0.0, 1.0, b.uniform(0, 2)])),
        bias=maybe(b, 0.5, b.pick([0.0, 1.0, b.uniform(-1, 1)])),
    )


@operator("IsInf")
def is_inf(b, op):
    b.add(
        op, [b.value(b.allowed(op, "T1"))], detect_positive=b.pick([None, 0, 1]), detect_negative=b.pick([None, 0, 1])
    )


@operator("Clip", weight=2)
def clip(b, op):
    x = b.value(b.allowed(op, "T"))
    if b.opset < 11:
        b.add(op, [x], min=maybe(b, 0.7, b.uniform(-3, 1)), max=maybe(b, 0.7, b.uniform(-1, 3)))
        return

    def bound():
        kind = "nan" if b.chance(0.05) else None
        return b.fresh(x.dtype, [], kind)

    b.add(op, [x, maybe(b, 0.7, True) and bound(), maybe(b, 0.7, True) and bound()])


@operator("Dropout", weight=2)
def dropout(b, op):
    x = b.value(b.allowed(op, "T"))
    outputs = b.pick([1, 2, 2])
    if b.opset < 12:
        b.add(op, [x], outputs, ratio=maybe(b, 0.5, 0.3))
        return
    ratio = maybe(b, 0.4, True) and b.fresh(b.dtype(op, "T1"), [], array=None, kind="unit")
    training = b.constant(np.array(False)) if b.chance(0.3) else None
    if ratio is not None:
        ratio = b.constant(np.array(0.25, dtype=ratio.dtype))
    b.add(op, [x, ratio, training], outputs)


@operator("Cast", weight=4)
def cast(b, op):
    x = b.value(b.allowed(op, "T1"))
    to = b.dtype(op, "T2")
    if d.is_float(x.dtype) and d.is_int(to) and b.chance(0.8):
        # Keeps values in the range of the integer type.
        low, high = (0, 100) if to in d.UNSIGNED else (-100, 100)
        if b.opset >= 12 and x.dtype != d.BF16 or b.opset >= 13:
            x = (
                b.add("Where", [b.add("IsNaN", [x])[0], b.constant(np.zeros([], x.dtype)), x])[0]
                if b.opset >= 16
                else x
            )
            x = b.add("Clip", [x, b.constant(np.array(low, x.dtype)), b.constant(np.array(high, x.dtype))])[0]
    b.add(op, [x], to=d.TO_ONNX[to])


@operator("CastLike")
def cast_like(b, op):
    x = b.value(b.allowed(op, "T1"))
    b.add(op, [x, b.value(b.allowed(op, "T2"))])


BINARY = (
    "Add Sub Mul Div And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual BitwiseAnd BitwiseOr BitwiseXor".split()
)


@operator(*BINARY, weight=1.5)
def binary(b, op):
    types = b.allowed(op, dtype_parameter(b, op))
    x = b.value(types)
    y = b.broadcastable(x)
    if op == "Div" and b.chance(0.4):
        if b.chance(0.5):
            y = b.constant(np.array(b.pick([3, 7, 10, 41, 100, 2, 5]), dtype=x.dtype))
        x = x if b.chance(0.5) or not d.is_float(x.dtype) else b.fresh(x.dtype, x.shape, "integers")
    order = [x, y] if b.chance(0.6) else [y, x]
    b.add(op, order)


@operator("BitShift")
def bit_shift(b, op):
    x = b.value(b.allowed(op, "T"))
    bits = x.dtype.itemsize * 8
    shape = x.shape if b.chance(0.5) else []
    y = b.fresh(x.dtype, shape, array=b.rng.integers(0, bits, shape).astype(x.dtype))
    b.add(op, [x, y], direction=b.pick(["LEFT", "RIGHT"]))


@operator("Mod")
def mod(b, op):
    x = b.value(b.allowed(op, "T"))
    y = b.broadcastable(x)
    if d.is_int(x.dtype) and (y.array == 0).any():
        y = b.fresh(x.dtype, y.shape, array=np.where(b.rng.random(y.shape) < 0.3, x.dtype.type(7), x.dtype.type(3)))
    b.add(op, [x, y], fmod=1 if d.is_float(x.dtype) else b.pick([None, 0, 1]))


@operator("Pow", weight=2)
def power(b, op):
    types = b.allowed(op, "T")
    x = b.value(types)
    exponents = b.allowed(op, "T1") if b.opset >= 12 else [x.dtype]
    if b.chance(0.6):
        dtype = x.dtype if b.chance(0.5) and x.dtype in exponents else b.pick(exponents)
        values = [0, 1, 2, 3, 4, 5] + ([0.5, -1, -0.5, 1.5, -2, 0.25] if d.is_float(dtype) else [])
        y = b.fresh(dtype, [], array=np.array(b.pick(values), dtype=dtype))
    else:
        y = b.broadcastable(x, b.pick(exponents), kind="positive")
    b.add(op, [x, y])


@operator("PRelu")
def prelu(b, op):
    x = b.value(b.allowed(op, "T"))
    b.add(op, [x, b.broadcastable(x, smaller=True)])


@operator("Max", "Min", "Sum", "Mean", weight=1.5)
def variadic(b, op):
    x = b.value(b.allowed(op, "T"))
    operands = [x] + [b.broadcastable(x) for _ in range(b.pick([0, 1, 1, 1, 2, 3]))]
    try:
        shape = np.broadcast_shapes(*(tuple(v.shape) for v in operands))
    except ValueError:
        raise Skip("do not broadcast") from None
    if np.prod(shape) > 5000:
        raise Skip("too large")
    b.add(op, operands)


@operator("Where", weight=1.5)
def where(b, op):
    x = b.value(b.allowed(op, "T"))
    y = b.broadcastable(x)
    condition = b.broadcastable(x, d.BOOL)
    try:
        shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape), tuple(condition.shape))
    except ValueError:
        raise Skip("do not broadcast") from None
    if np.prod(shape) > 5000:
        raise Skip("too large")
    b.add(op, [condition, x, y])


@operator("SwiGLU")
def swiglu(b, op):
    gate = b.value(b.allowed(op, "T"), rank=(0, 4))
    b.add(op, [gate, b.value([gate.dtype], shape=gate.shape)], alpha=b.pick([None, 1.0, 1.7]))
