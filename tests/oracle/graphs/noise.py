"""Tolerance of results by Monte Carlo arithmetic (Parker, 1997).

Each node's result is disturbed by an error that a correct implementation in its dtype may have, and the disturbance
propagates through the rest of the graph. The variation of an output shows what rounding determines, and its size is
the tolerance.
"""

import numpy as np

from . import dtypes as d
from .rules import nbits_weights

# Results are exact, or rounded once from the inputs.
EXACT = {
    "Abs",
    "And",
    "ArgMax",
    "ArgMin",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "CenterCropPad",
    "Cast",
    "CastLike",
    "Ceil",
    "Clip",
    "Compress",
    "Concat",
    "ConstantOfShape",
    "DepthToSpace",
    "Dropout",
    "Equal",
    "Expand",
    "EyeLike",
    "Flatten",
    "Floor",
    "Gather",
    "GatherElements",
    "GatherND",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "Hardmax",
    "Identity",
    "IsInf",
    "IsNaN",
    "Less",
    "LessOrEqual",
    "Max",
    "MaxPool",
    "MaxUnpool",
    "Min",
    "Neg",
    "NonMaxSuppression",
    "NonZero",
    "Not",
    "OneHot",
    "Or",
    "Pad",
    "QuantizeLinear",
    "ReduceMax",
    "ReduceMin",
    "Relu",
    "Reshape",
    "ReverseSequence",
    "Round",
    "Shape",
    "Sign",
    "Size",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "ThresholdedRelu",
    "TensorScatter",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unique",
    "Unsqueeze",
    "Where",
    "Xor",
}
# Results are rounded once, or exact if the exact result can be represented.
BASIC = {
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Sqrt",
    "Reciprocal",
    "DequantizeLinear",
    "LeakyRelu",
    "PRelu",
    "Range",
    "Sum",
    "Mean",
    "Mod",
}
# Sums of products: the error is proportional to the sum of the terms' magnitudes.
SUMS = {
    "AveragePool",
    "Conv",
    "ConvTranspose",
    "CumSum",
    "Einsum",
    "Gemm",
    "GlobalAveragePool",
    "GlobalLpPool",
    "LpPool",
    "MatMul",
    "ReduceL1",
    "ReduceL2",
    "ReduceMean",
    "ReduceSum",
    "ReduceSumSquare",
    "Sum",
    "Mean",
    "Col2Im",
    "ScatterElements",
    "ScatterND",
}
# Elementwise functions, whose errors are given in units of the last place. The lambda gives the magnitude of numbers
# that the function subtracts internally; it adds to the magnitude of the result.
FUNCTIONS = {
    "Elu": lambda x, y: np.where(x < 0, 1.0, 0.0),
    "Selu": lambda x, y: np.where(x < 0, 2.0, 0.0),
    "Celu": lambda x, y: np.where(x < 0, 1.0, 0.0),
    "Gelu": lambda x, y: np.abs(x),
    "Mish": lambda x, y: np.abs(x),
    "Softplus": lambda x, y: 1.0,
    "HardSwish": lambda x, y: np.abs(x),
    "HardSigmoid": lambda x, y: 1.0,
    "Swish": lambda x, y: np.abs(x) * 0.1,
    "Tanh": lambda x, y: 0.0,
    "Shrink": lambda x, y: np.abs(x),
}
ELEMENTWISE = set(FUNCTIONS) | {
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Log",
    "Pow",
    "Sigmoid",
    "Sin",
    "Sinh",
    "Softsign",
    "Tan",
}
ROOTS = {"LpPool", "GlobalLpPool", "ReduceL2"}
# 3x3 convolutions may use Winograd filtering, whose errors are relative to a whole tile (docs/using.md).
WINOGRAD = {"Conv", "ConvTranspose"}
WINOGRAD_TILE = 6  # an assumed bound: NaN and infinity of one input reach at most 5 x 5 outputs
MEANS = {"AveragePool", "GlobalAveragePool", "ReduceMean", "Mean"}
# Quotients of a softmax in f32 below this value, e^-86.5 of the largest, may be 0 (docs/operators.md).
SOFTMAX_LEAST = 2.72e-38
ULPS = 4.0
LONG_SUM = 128
BACKWARD_DRAWS = 3


# The standard computes statistics of f64 data in f32 (stash_type 1); implementations may use f64.
STASHED = {"GroupNormalization", "LayerNormalization", "RMSNormalization"}
TRANSFORMS = {"DFT", "STFT"}
UNIT = {"RNN", "GRU", "LSTM", "LogSoftmax", "SoftmaxCrossEntropyLoss", "BlackmanWindow", "HannWindow", "HammingWindow"}
IN_F32 = {"Resize", "Upsample", "GridSample"}
# Errors relative to the largest input (for transforms: to the sum of the inputs), in units of the last place.
ABSOLUTE = {
    "DFT": 8.0,
    "STFT": 8.0,
    "LogSoftmax": 8.0,
    "SoftmaxCrossEntropyLoss": 8.0,
    "ReduceLogSumExp": 8.0,
    "BlackmanWindow": 4.0,
    "HannWindow": 4.0,
    "HammingWindow": 4.0,
    "Resize": 32.0,
    "Upsample": 32.0,
    "GridSample": 64.0,
    "RoiAlign": 32.0,
    "AffineGrid": 4.0,
    "DeformConv": 16.0,
    "RNN": 4.0,
    "GRU": 4.0,
    "LSTM": 4.0,
}


def _finite(w):
    return np.where(np.isfinite(w), w, 0)


def _computed_in(dtype):
    # f16 and bf16 are storage types: sums are f32.
    return d.EPSILON[d.F32] if dtype in (d.F16, d.BF16) else d.EPSILON[dtype]


def amplitudes(node, opset, inputs, exact, outputs, evaluate, rng):
    """Returns an array for each output (None: exact) with the largest error that rounding can explain. inputs: in
    their own dtypes; exact: results before rounding; outputs: results after rounding. evaluate(inputs): returns wide
    results."""
    op = node.op_type
    floats = [o is not None and d.is_float(o.dtype) for o in outputs]
    if op in EXACT or not any(floats):
        return [None] * len(outputs)
    with np.errstate(all="ignore"):
        if op in BASIC and not (op in ("Sum", "Mean") and len(inputs) > 2):
            return [_rounding(e, o) if f else None for e, o, f in zip(exact, outputs, floats)]
        if op in ELEMENTWISE:
            return [_function(op, inputs, e, o) if f else None for e, o, f in zip(exact, outputs, floats)]
        if op in SUMS:
            found = _sum(node, inputs, exact, outputs, evaluate)
            if found is not None:
                return found
        found = _backward(inputs, exact, outputs, evaluate, rng)
        if op == "MatMulNBits":
            terms = _finite(np.abs(d.wide(inputs[0]))) @ np.abs(nbits_weights(node, inputs)).T
            error = ULPS * _computed_in(outputs[0].dtype) * terms
            found = [found[0] + np.where(terms >= d.LARGEST[d.F32] / 4, np.inf, error)]  # partial sums overflow
        if op == "Adam" and int(inputs[1].reshape(())) > 0:
            # 1 - beta^T has few digits after the first steps.
            left = 1 - _factor(node, "beta", 0.999) ** int(inputs[1].reshape(()))
            for k in range((len(inputs) - 2) // 4):
                step = np.abs(d.wide(exact[k]) - d.wide(inputs[2 + k]))
                found[k] = found[k] + ULPS * d.EPSILON[outputs[k].dtype] / left * _finite(step)
        if op == "Softmax" and outputs[0].dtype != d.F64:
            found = [found[0] + SOFTMAX_LEAST]
        if op in STASHED:
            found = [
                f if f is None or o.dtype != d.F64 else f + ULPS * d.EPSILON[d.F32] * (np.abs(d.wide(e)) + 1)
                for f, e, o in zip(found, exact, outputs)
            ]
        if op in ABSOLUTE:
            scale = sum(
                float(np.nansum(np.abs(w))) if op in TRANSFORMS else float(np.max(np.abs(w), initial=0))
                for w in (_finite(d.wide(x)) for x in inputs if x is not None and d.is_float(x.dtype))
            )
            found = [
                f if f is None else f + ABSOLUTE[op] * unit * max(scale, 1.0 if op in UNIT else 0.0)
                for f, unit in ((f, _unit(op, o)) for f, o in zip(found, outputs))
            ]
        return found


def _unit(op, output):
    # The oracles compute coordinates in f32, whatever the type of the data.
    return d.EPSILON[d.F32] if op in IN_F32 else _computed_in(output.dtype) if output is not None else 0.0


def _rounding(exact, output):
    error = d.EPSILON[output.dtype] * np.abs(d.wide(output)) + d.SUBNORMAL[output.dtype]
    # If an oracle computes in a short type, its own rounding is unknown, so that equal values do not show exactness.
    if output.dtype != d.F64 and not (exact.dtype == output.dtype and output.dtype in (d.F16, d.BF16)):
        error = np.where(d.wide(exact) == d.wide(output), 0.0, error)
    return error


def _function(op, inputs, exact, output):
    eps = _computed_in(output.dtype)
    y = np.abs(d.wide(output))
    scale = y
    if op == "Pow" and output.dtype == d.F64:
        scale = y * (1 + np.abs(np.log(np.where(y > 0, y, 1))) / 2)  # exp(b log a) in f64
    if op in FUNCTIONS:
        scale = y + FUNCTIONS[op](d.wide(inputs[0]), y)
    error = ULPS * eps * scale + _rounding(exact, output) + 256 * d.SUBNORMAL[output.dtype]
    if op in ("Sigmoid", "Swish"):  # 1 / (1 + exp(-x)): the exponential is infinite before the quotient is 0
        smallest = d.SUBNORMAL[output.dtype] / d.EPSILON[output.dtype] * 2
        error = error + smallest * (1 + np.abs(_finite(d.wide(inputs[0]))))
    return error


def _factor(node, name, otherwise=1.0):
    return next((a.f for a in node.attribute if a.name == name), otherwise)


def _sum(node, inputs, exact, outputs, evaluate):
    op = node.op_type
    kernel = max([int(np.prod(a.ints)) for a in node.attribute if a.name == "kernel_shape"], default=1)
    magnitudes = [_finite(np.abs(d.wide(x))) if x is not None and d.is_float(x.dtype) else x for x in inputs]
    if op == "Gemm" and len(inputs) > 2 and inputs[2] is not None and _factor(node, "alpha") * _factor(node, "beta") < 0:
        magnitudes[2] = -magnitudes[2]  # a subtracted term adds to the magnitude
    try:
        sums = evaluate(magnitudes)
    except Exception:
        return None
    whole = all(
        x is None or not d.is_float(x.dtype) or bool((np.isfinite(d.wide(x)) & (np.rint(d.wide(x)) == d.wide(x))).all())
        for x in inputs
    ) and (op != "Gemm" or all(_factor(node, name).is_integer() for name in ("alpha", "beta")))
    spreads = op in WINOGRAD and inputs[1].shape[2:] == (3, 3) and not all(np.isfinite(d.wide(x)).all() for x in inputs[:2])
    result = []
    for e, o, m in zip(exact, outputs, sums):
        if o is None or not d.is_float(o.dtype):
            result.append(None)
            continue
        m = np.abs(d.wide(m))  # infinite: the finite terms overflow
        m = np.where(np.isnan(m), 0, m)
        # If equal terms are added in sequence, all roundings go the same way: the error grows with their number.
        length = max(1.0, max(x.size for x in inputs if x is not None) / max(m.size, 1) / LONG_SUM)
        error = ULPS * length * _computed_in(o.dtype) * m + _rounding(e, o) + 64 * d.SUBNORMAL[o.dtype]
        # Sums of integers are exact in any order.
        if op in WINOGRAD and o.ndim == 4 and o.dtype != d.F64 and m.size:
            error = error + 32 * d.EPSILON[d.F32] * m.max()
        if whole and op not in ROOTS and not (m.size and np.nanmax(m) > 2.0**22):
            error = np.where(d.wide(e) == d.wide(o), 0.0, error)
        # Partial sums may overflow; the result may then be infinite or NaN as well.
        top = d.LARGEST[d.F32] if o.dtype in (d.F16, d.BF16) else d.LARGEST[o.dtype]
        terms = (
            max(len(inputs), kernel, max(x.size for x in inputs if x is not None) // max(m.size, 1))
            if op in MEANS
            else 1 / min(abs(_factor(node, "alpha")) or 1.0, 1.0)
            if op == "Gemm"
            else 1
        )
        error = np.where(m * terms >= top / 4, np.inf, error)
        if spreads:
            spoiled = _near(~np.isfinite(d.wide(e)).all(axis=1, keepdims=True), WINOGRAD_TILE - 1)
            error = np.where(spoiled, np.inf, error)
        result.append(error)
    return result


def _near(flags, reach):
    """Returns where a flag is set at most `reach` places away along each of the last two axes."""
    for axis in (-2, -1):
        extent = flags.shape[axis]
        found = flags.copy()
        for shift in range(1, min(reach, extent - 1) + 1):
            here, there = np.arange(extent - shift), np.arange(shift, extent)
            found |= np.insert(np.take(flags, there, axis), [extent - shift] * shift, False, axis)
            found |= np.insert(np.take(flags, here, axis), [0] * shift, False, axis)
        flags = found
    return flags


def _backward(inputs, exact, outputs, evaluate, rng):
    """Returns errors of a backward stable algorithm: the changes of the results when the inputs change by a few
    ulps."""
    result = []
    for e, o in zip(exact, outputs):
        if o is None or not d.is_float(o.dtype):
            result.append(None)
            continue
        result.append(ULPS * _computed_in(o.dtype) * np.abs(d.wide(e)) + _rounding(e, o) + 256 * d.SUBNORMAL[o.dtype])
    # Moves one input at a time: the effects of several could cancel.
    own = [i for i, x in enumerate(inputs) if x is not None and d.is_float(x.dtype) and x.size]
    for i in own * (BACKWARD_DRAWS if len(own) == 1 else 1):
        w = d.wide(inputs[i])
        moved = [*inputs[:i], w * (1 + ULPS * _computed_in(inputs[i].dtype) * signs(rng, w.shape)), *inputs[i + 1 :]]
        try:
            others = evaluate([d.wide(x) for x in moved])
        except Exception:
            break
        for k, (e, y) in enumerate(zip(exact, others)):
            if result[k] is not None and y is not None and y.shape == e.shape:
                difference = np.abs(d.wide(y) - d.wide(e))
                result[k] = result[k] + np.where(np.isfinite(difference), difference, 0)
    return result


def signs(rng, shape):
    return rng.choice(np.array([-1.0, -0.6, 0.6, 1.0]), shape)


def disturb(rng, exact, output, amplitude, moves):
    """Returns the result with a random error within the amplitude; zeros of arithmetic get a random sign."""
    if output is None or not d.is_float(output.dtype):
        return output
    with np.errstate(all="ignore"):
        y = d.wide(exact if exact is not None else output)
        if amplitude is not None:
            a = np.where(np.isfinite(amplitude), amplitude, 0)
            error = a * np.where(rng.random(y.shape) < 0.25, 0.15, 1) * signs(rng, y.shape)  # one place, or several
            may_vanish = (np.abs(y) <= a) & (rng.random(y.shape) < 0.25)
            y = np.where(np.isfinite(y), np.where(may_vanish, 0.0, y + error), y)
            # Sums that may overflow have terms near the largest number, which give the error if nothing overflows.
            wide = d.F32 if output.dtype in (d.F16, d.BF16) else output.dtype
            near = y + d.EPSILON[wide] * d.LARGEST[wide] * signs(rng, y.shape)
            over = rng.choice(np.array([np.inf, -np.inf, np.nan]), y.shape)
            y = np.where(amplitude == np.inf, np.where(rng.random(y.shape) < 0.5, near, over), y)
        y = d.narrow(y, output.dtype)
        if output.dtype == d.BF16:  # ir/expr.h: values below 2^-126 may become zero
            small = np.abs(d.wide(y)) <= 2.0**-126  # 2^-126 itself, too, since it may be rounded up from less
            y = d.narrow(np.where(small & (rng.random(y.shape) < 0.5), 0.0, d.wide(y)), d.BF16)
        if not moves:
            zero = d.wide(y) == 0
            if zero.any():
                y = np.where(zero, np.where(rng.random(y.shape) < 0.5, -0.0, 0.0), d.wide(y)).astype(np.float64)
                y = d.narrow(y, output.dtype)
    return y
