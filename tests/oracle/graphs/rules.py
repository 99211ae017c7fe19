"""A third implementation, in NumPy. A maximum or minimum is NaN if an operand is (IEEE 754-2019), while other
runtimes depend on the kernel; other rules define operators in which the reference evaluator is wrong."""

import math

import numpy as np
import onnx

from . import dtypes as d
from .oracles import Reference
from .recurrent import recurrent


def _attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def _axes(node, inputs, rank):
    axes = inputs[1] if len(inputs) > 1 and inputs[1] is not None else _attributes(node).get("axes")
    axes = [] if axes is None else [int(a) % max(rank, 1) for a in np.asarray(axes).reshape(-1)]
    return tuple(axes)


def maximum(node, opset, inputs):
    x = inputs[0]
    for y in inputs[1:]:
        x = np.maximum(x, y) if node.op_type == "Max" else np.minimum(x, y)
    return [np.array(x)]


def reduce_extreme(node, opset, inputs):
    x = inputs[0]
    attributes = _attributes(node)
    axes = _axes(node, inputs, x.ndim)
    if not axes:
        if attributes.get("noop_with_empty_axes", 0):
            return [x]
        axes = tuple(range(x.ndim))
    f = np.max if node.op_type == "ReduceMax" else np.min
    return [np.asarray(f(x, axis=axes, keepdims=bool(attributes.get("keepdims", 1))), dtype=x.dtype)]


def reduce_log_sum_exp(node, opset, inputs):
    """Subtracts the maximum if it is finite; the logarithm of zero is -inf."""
    x = d.wide(inputs[0])
    attributes = _attributes(node)
    axes = _axes(node, inputs, x.ndim)
    if not axes:
        if attributes.get("noop_with_empty_axes", 0):
            return [x]
        axes = tuple(range(x.ndim))
    top = np.asarray(np.max(x, axis=axes, keepdims=True))
    top = np.where(np.isfinite(top), top, 0.0)
    y = np.asarray(np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)) + top)
    return [y if attributes.get("keepdims", 1) else np.squeeze(y, axis=axes)]


def clip(node, opset, inputs):
    x = inputs[0]
    attributes = _attributes(node)
    if opset < 11:
        low, high = attributes.get("min"), attributes.get("max")
        low = None if low is None else x.dtype.type(low)
        high = None if high is None else x.dtype.type(high)
    else:
        low = inputs[1] if len(inputs) > 1 else None
        high = inputs[2] if len(inputs) > 2 else None
    if low is not None:
        x = np.maximum(x, np.asarray(low, dtype=x.dtype).reshape(()))
    if high is not None:
        x = np.minimum(x, np.asarray(high, dtype=x.dtype).reshape(()))
    return [x]


def relu(node, opset, inputs):
    return [np.maximum(inputs[0], inputs[0].dtype.type(0))]


def arg_extreme(node, opset, inputs):
    x = d.wide(inputs[0])
    attributes = _attributes(node)
    axis = attributes.get("axis", 0)
    f = np.argmax if node.op_type == "ArgMax" else np.argmin  # the first NaN wins
    if attributes.get("select_last_index", 0):
        r = x.shape[axis] - 1 - f(np.flip(x, axis), axis=axis)
    else:
        r = f(x, axis=axis)
    return [
        np.expand_dims(r, axis).astype(np.int64) if attributes.get("keepdims", 1) else np.asarray(r, dtype=np.int64)
    ]


def global_max_pool(node, opset, inputs):
    x = inputs[0]
    return [np.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)]


def max_pool(node, opset, inputs):
    """Returns the maximum of the elements that a window covers, without padding, and the flat index of the first one.
    NaN counts as the largest value."""
    x = inputs[0]
    a = _attributes(node)
    kernel = list(a["kernel_shape"])
    n = len(kernel)
    strides, dilations = list(a.get("strides", [1] * n)), list(a.get("dilations", [1] * n))
    pads = list(a.get("pads", [0] * 2 * n))
    auto = a.get("auto_pad", b"NOTSET").decode()
    size = x.shape[2:]
    begin, out = [], []
    for k in range(n):
        reach = (kernel[k] - 1) * dilations[k] + 1
        if auto.startswith("SAME"):
            o = -(-size[k] // strides[k])
            total = max((o - 1) * strides[k] + reach - size[k], 0)
            begin.append(total // 2 if auto == "SAME_UPPER" else total - total // 2)
        else:
            p = (0, 0) if auto == "VALID" else (pads[k], pads[n + k])
            free = size[k] + p[0] + p[1] - reach
            o = (-(-free // strides[k]) if a.get("ceil_mode", 0) else free // strides[k]) + 1
            if a.get("ceil_mode", 0) and (o - 1) * strides[k] >= size[k] + p[0]:
                o -= 1
            begin.append(p[0])
        out.append(o)
    lowest = -np.inf if d.is_float(x.dtype) else d.limits(x.dtype)[0]
    y = np.full(x.shape[:2] + tuple(out), lowest, dtype=x.dtype)
    places = np.full(y.shape, -1, dtype=np.int64)
    numbers = np.arange(x.size).reshape(x.shape)
    if a.get("storage_order", 0):
        spatial = np.arange(int(np.prod(size))).reshape(size[::-1]).transpose()
        numbers = numbers.reshape(x.shape[:2] + (-1,))[..., :1].reshape(x.shape[:2] + (1,) * n) + spatial
    for at in np.ndindex(*kernel):
        index, target = [slice(None), slice(None)], [slice(None), slice(None)]
        for k in range(n):
            positions = np.arange(out[k]) * strides[k] - begin[k] + at[k] * dilations[k]
            inside = np.nonzero((positions >= 0) & (positions < size[k]))[0]
            target.append(inside)
            index.append(positions[inside])
        if any(len(t) == 0 for t in target[2:]):
            continue
        where = np.ix_(np.arange(x.shape[0]), np.arange(x.shape[1]), *target[2:])
        source = np.ix_(np.arange(x.shape[0]), np.arange(x.shape[1]), *index[2:])
        new, old = x[source], y[where]
        with np.errstate(invalid="ignore"):
            larger = (places[where] < 0) | (new > old) | ((new != new) & (old == old))
        y[where] = np.where(larger, new, old)
        places[where] = np.where(larger, numbers[source], places[where])
    return [y, places][: len(node.output)]


def top_k(node, opset, inputs):
    """NaN is larger than any number; the first of equal elements comes first."""
    x = inputs[0]
    a = _attributes(node)
    axis = a.get("axis", -1)
    k = int(np.asarray(inputs[1]).reshape(-1)[0]) if len(inputs) > 1 else a["k"]
    w = np.moveaxis(d.wide(x), axis, -1)
    if d.is_float(x.dtype):
        nan = np.isnan(w)
        key, last = (-w, ~nan) if a.get("largest", 1) else (w, nan)
        order = np.lexsort((np.broadcast_to(np.arange(w.shape[-1]), w.shape), np.where(nan, 0, key), last), axis=-1)
    else:
        order = np.argsort(-w.astype(object) if a.get("largest", 1) else w, axis=-1, kind="stable")
    order = np.moveaxis(order[..., :k], -1, axis).astype(np.int64)
    return [np.take_along_axis(x, order, axis), order]


def _flattened(node, opset, x):
    """Returns the rows that are normalized together, and a function that restores the shape."""
    axis = _attributes(node).get("axis", 1 if opset < 13 else -1)
    if opset < 13:
        axis = axis + x.ndim if axis < 0 else axis
        rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
        return rows, lambda y: y.reshape(x.shape)
    return np.moveaxis(x, axis, -1), lambda y: np.moveaxis(y, -1, axis)


def softmax(node, opset, inputs):
    x, back = _flattened(node, opset, d.wide(inputs[0]))
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return [back(e / e.sum(axis=-1, keepdims=True))]


def log_softmax(node, opset, inputs):
    x, back = _flattened(node, opset, d.wide(inputs[0]))
    shifted = x - x.max(axis=-1, keepdims=True)
    return [back(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))]


def hardmax(node, opset, inputs):
    x, back = _flattened(node, opset, d.wide(inputs[0]))
    y = np.zeros_like(x)
    np.put_along_axis(y, np.argmax(x, axis=-1)[..., None], 1.0, -1)
    return [back(y)]


def lrn(node, opset, inputs):
    x = d.wide(inputs[0])
    a = _attributes(node)
    size, channels = a["size"], x.shape[1]
    sums = np.zeros_like(x)
    for c in range(channels):
        low, high = max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2)
        sums[:, c] = (x[:, low : high + 1] ** 2).sum(axis=1)
    alpha, beta, bias = a.get("alpha", np.float32(1e-4)), a.get("beta", 0.75), a.get("bias", 1.0)
    return [x / (float(bias) + float(alpha) / size * sums) ** float(beta)]


_erf = np.vectorize(math.erf, otypes=[np.float64])


def erf(node, opset, inputs):
    return [_erf(d.wide(inputs[0]))]


def softsign(node, opset, inputs):
    x = d.wide(inputs[0])
    return [x / (1 + np.abs(x))]


def gelu(node, opset, inputs):
    x = d.wide(inputs[0])
    if _attributes(node).get("approximate", b"none") == b"tanh":
        return [0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))]
    return [0.5 * x * (1 + _erf(x / math.sqrt(2)))]


def one_hot(node, opset, inputs):
    """Indices out of range give no 1."""
    indices = np.trunc(d.wide(inputs[0])).astype(np.int64)
    depth = int(np.asarray(inputs[1]).reshape(-1)[0])
    axis = _attributes(node).get("axis", -1)
    hit = np.where(indices < 0, indices + depth, indices)[..., None] == np.arange(depth)
    y = np.where(hit, inputs[2][1], inputs[2][0]).astype(inputs[2].dtype)
    return [np.moveaxis(y, -1, axis)]


def global_lp_pool(node, opset, inputs):
    x = np.abs(d.wide(inputs[0]))
    p = _attributes(node).get("p", 2)
    return [(x**p).sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1.0 / p)]


def integer_pow(node, opset, inputs):
    """Returns integer powers of integers modulo 2 to the number of bits: Python's integers are exact."""
    x, y = inputs
    if not d.is_int(x.dtype) or not d.is_int(y.dtype):
        raise NotImplementedError("powers of floats")
    bits = x.dtype.itemsize * 8
    power = np.vectorize(lambda a, b: pow(int(a), int(b), 1 << bits), otypes=[object])
    shape = np.broadcast_shapes(x.shape, y.shape)
    if 0 in shape:
        return [np.zeros(shape, x.dtype)]
    wrapped = np.asarray(power(x, y)).reshape(shape).astype(np.uint64)
    return [wrapped.astype(np.dtype(f"u{x.dtype.itemsize}")).view(x.dtype)]


def nearest_elements(node, opset, inputs):
    """Selects the elements whose positions the reference evaluator resizes. It computes values in f64, which cannot
    represent all 64-bit integers, and multiplies NaN by zero; positions avoid both."""
    a = _attributes(node)
    if a.get("mode", b"nearest") != b"nearest" or a.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        raise NotImplementedError("values that are computed")
    x = inputs[0]
    places = [np.arange(x.size, dtype=np.float64).reshape(x.shape), *inputs[1:]]
    source = Reference(node, opset, places)(places)[0]
    return [x.reshape(-1)[np.asarray(source).astype(np.int64)]]


def affine_grid(node, opset, inputs):
    """Applies an affine map to pixel coordinates, in the order from the last dimension to the first."""
    theta, size = d.wide(inputs[0]), [int(e) for e in inputs[1]]
    extents = size[2:]
    axes = []
    for e in extents:
        at = np.arange(e, dtype=np.float64)
        axes.append(at * 2 / (e - 1) - 1 if _attributes(node).get("align_corners", 0) else (at * 2 + 1) / e - 1)
    places = [*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(extents)]
    return [np.einsum("nkj,j...->n...k", theta, np.stack(places))]


def _bilinear(image, row, column):
    """Interpolates an image at positions between pixels; values outside are zero."""
    y = np.zeros(row.shape)
    for down in (0, 1):
        for right in (0, 1):
            r, c = np.floor(row) + down, np.floor(column) + right
            weight = (1 - np.abs(row - r)) * (1 - np.abs(column - c))
            inside = (r >= 0) & (r < image.shape[0]) & (c >= 0) & (c < image.shape[1])
            at = np.where(inside, r, 0).astype(np.int64), np.where(inside, c, 0).astype(np.int64)
            y += np.where(inside, image[at] * weight, 0)
    return y


def deform_conv(node, opset, inputs):
    x, w, offset, bias, mask = [d.wide(i) for i in inputs] + [None] * (5 - len(inputs))
    a = _attributes(node)
    groups, offset_groups = a.get("group", 1), a.get("offset_group", 1)
    strides, dilations, pads = a.get("strides", [1, 1]), a.get("dilations", [1, 1]), a.get("pads", [0] * 4)
    (n, channels), kernel, out = x.shape[:2], w.shape[2:], offset.shape[2:]
    offset = offset.reshape(n, offset_groups, *kernel, 2, *out)
    mask = np.ones((n, offset_groups, *kernel, *out)) if mask is None else mask.reshape(n, offset_groups, *kernel, *out)
    taps = [np.arange(kernel[k]) * dilations[k] - pads[k] for k in (0, 1)]
    steps = [np.arange(out[k]) * strides[k] for k in (0, 1)]
    row = taps[0][:, None, None, None] + steps[0][:, None]
    column = taps[1][:, None, None] + steps[1]
    columns = np.zeros((n, channels, *kernel, *out))
    for i in range(n):
        for c in range(channels):
            g = c // (channels // offset_groups)
            at = row + offset[i, g, :, :, 0], column + offset[i, g, :, :, 1]
            columns[i, c] = _bilinear(x[i, c], *at) * mask[i, g]
    columns = columns.reshape(n, groups, channels // groups, *kernel, *out)
    own = w.reshape(groups, -1, *w.shape[1:])
    y = np.einsum("ngcrsyx,gocrs->ngoyx", columns, own).reshape(n, w.shape[0], *out)
    return [y if bias is None else y + bias[:, None, None]]


def optimizer(node, opset, inputs):
    """Computes Adagrad, Adam and Momentum, one parameter after the other."""
    a = {k: v.decode() if isinstance(v, bytes) else v for k, v in _attributes(node).items()}
    defaults = {"alpha": np.float32(0.9), "beta": np.float32(0.999), "epsilon": np.float32(1e-6)}
    a = {k: float(v) for k, v in defaults.items()} | a
    kinds = 4 if node.op_type == "Adam" else 3
    rate, step = float(inputs[0].reshape(())), int(inputs[1].reshape(()))
    count = (len(inputs) - 2) // kinds
    results = []
    for i in range(count):
        x, gradient, *state = [d.wide(inputs[2 + kind * count + i]) for kind in range(kinds)]
        results.append(_optimizer_step(node.op_type, a, rate, step, x, a.get("norm_coefficient", 0.0) * x + gradient, state))
    return [r[k] for k in range(kinds - 1) for r in results]


def _optimizer_step(op, a, rate, step, x, gradient, state):
    if op == "Adagrad":
        square = state[0] + gradient * gradient
        rate = rate / (1 + step * a.get("decay_factor", 0.0))
        return x - rate * gradient / (np.sqrt(square) + a["epsilon"]), square
    if op == "Momentum":
        v = a["alpha"] * state[0] + (a["beta"] if step > 0 else 1.0) * gradient
        return x - rate * (gradient + a["alpha"] * v if a["mode"] == "nesterov" else v), v
    mean = a["alpha"] * state[0] + (1 - a["alpha"]) * gradient
    square = a["beta"] * state[1] + (1 - a["beta"]) * gradient * gradient
    if step > 0:
        rate = rate * math.sqrt(1 - a["beta"] ** step) / (1 - a["alpha"] ** step)
    x = (1 - a.get("norm_coefficient_post", 0.0)) * (x - rate * mean / (np.sqrt(square) + a["epsilon"]))
    return x, mean, square


def _unpacked(packed, bits):
    """Unpacks integers from bytes; the first element is in the lowest bits."""
    places = np.arange(0, 8, bits)
    return ((packed[..., None].astype(np.int64) >> places) & (2**bits - 1)).reshape(*packed.shape[:-1], -1)


def nbits_weights(node, inputs):
    """Returns the weights of MatMulNBits as numbers, (N, K)."""
    a = _attributes(node)
    depth, columns, bits, block = a["K"], a["N"], a.get("bits", 4), a["block_size"]
    blocks = -(-depth // block)
    numbers = _unpacked(inputs[1].reshape(columns, blocks, -1), bits)
    zeros = inputs[3] if len(inputs) > 3 else None
    if zeros is None:
        zeros = np.full((columns, blocks), 2 ** (bits - 1))
    elif zeros.dtype == d.U8:
        zeros = _unpacked(zeros.reshape(columns, -1), bits)[:, :blocks]
    scales = d.wide(inputs[2]).reshape(columns, blocks, 1)
    weights = (numbers - d.wide(zeros).reshape(columns, blocks, 1)) * scales
    return weights.reshape(columns, blocks * block)[:, :depth]


def matmul_nbits(node, opset, inputs):
    y = d.wide(inputs[0]) @ nbits_weights(node, inputs).T
    return [y + d.wide(inputs[5]) if len(inputs) > 5 and inputs[5] is not None else y]


RULES = {
    "Pow": integer_pow,
    "Resize": nearest_elements,
    "Upsample": nearest_elements,
    "AffineGrid": affine_grid,
    "DeformConv": deform_conv,
    "Adagrad": optimizer,
    "Adam": optimizer,
    "Momentum": optimizer,
    "MatMulNBits": matmul_nbits,
    "RNN": recurrent,
    "GRU": recurrent,
    "LSTM": recurrent,
    "OneHot": one_hot,
    "GlobalLpPool": global_lp_pool,
    "Erf": erf,
    "Gelu": gelu,
    "Softsign": softsign,
    "ReduceLogSumExp": reduce_log_sum_exp,
    "Softmax": softmax,
    "LogSoftmax": log_softmax,
    "Hardmax": hardmax,
    "LRN": lrn,
    "Max": maximum,
    "Min": maximum,
    "ReduceMax": reduce_extreme,
    "ReduceMin": reduce_extreme,
    "Clip": clip,
    "Relu": relu,
    "ArgMax": arg_extreme,
    "ArgMin": arg_extreme,
    "GlobalMaxPool": global_max_pool,
    "MaxPool": max_pool,
    "TopK": top_k,
}
