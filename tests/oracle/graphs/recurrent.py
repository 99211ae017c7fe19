"""RNN, GRU and LSTM in NumPy, with the attributes that the reference evaluator lacks: directions, sequence lengths,
activations, clipping, layout, peepholes, coupled gates (ONNX's operator documentation)."""

import numpy as np
import onnx

from . import dtypes as d

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
FUNCTIONS = {
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Relu": lambda x: np.maximum(x, 0),
    "Softsign": lambda x: x / (1 + np.abs(x)),
}


def recurrent(node, opset, inputs):
    op = node.op_type
    a = {x.name: onnx.helper.get_attribute_value(x) for x in node.attribute}
    direction = a.get("direction", b"forward").decode()
    given = [None if x is None else d.wide(x) for x in inputs] + [None] * (8 - len(inputs))
    x, w, r, bias, lengths, h0, c0, peepholes = given
    if op != "LSTM":
        c0 = peepholes = None
    batch_first = a.get("layout", 0) == 1
    if batch_first:
        x = np.swapaxes(x, 0, 1)
        h0 = None if h0 is None else np.swapaxes(h0, 0, 1)
        c0 = None if c0 is None else np.swapaxes(c0, 0, 1)
    steps, batch, _ = x.shape
    hidden, gates = r.shape[2], GATES[op]
    lengths = np.full(batch, steps) if lengths is None else np.asarray(lengths)
    names = [n.decode() for n in a.get("activations", [])] or [n.encode().decode() for n in ACTIVATIONS[op]] * w.shape[
        0
    ]
    per = len(names) // w.shape[0]
    clip = a.get("clip")
    y = np.zeros((steps, w.shape[0], batch, hidden))
    last_h, last_c = np.zeros((w.shape[0], batch, hidden)), np.zeros((w.shape[0], batch, hidden))
    for k in range(w.shape[0]):
        functions = [FUNCTIONS[n] for n in names[k * per : (k + 1) * per]]
        backwards = direction == "reverse" or k == 1
        for n in range(batch):
            h = np.zeros(hidden) if h0 is None else h0[k, n]
            c = np.zeros(hidden) if c0 is None else c0[k, n]
            wb, rb = (np.zeros(gates * hidden),) * 2 if bias is None else np.split(bias[k], 2)
            p = np.zeros(3 * hidden) if peepholes is None else peepholes[k]
            count = int(lengths[n])
            for t in reversed(range(count)) if backwards else range(count):
                h, c = step(op, a, functions, clip, w[k] @ x[t, n] + wb, r[k], rb, h, c, p)
                y[t, k, n] = h
            last_h[k, n], last_c[k, n] = h, c
    if batch_first:
        y = y.transpose(2, 0, 1, 3)
        last_h, last_c = np.swapaxes(last_h, 0, 1), np.swapaxes(last_c, 0, 1)
    return [y, last_h] + ([last_c] if op == "LSTM" else [])


def step(op, a, functions, clip, own, r, rb, h, c, p):
    def limited(v):
        return v if clip is None else np.clip(v, -clip, clip)

    hidden = len(h)
    if op == "RNN":
        return functions[0](limited(own + r @ h + rb)), c
    if op == "GRU":
        z = functions[0](limited(own[:hidden] + r[:hidden] @ h + rb[:hidden]))
        reset = functions[0](limited(own[hidden : 2 * hidden] + r[hidden : 2 * hidden] @ h + rb[hidden : 2 * hidden]))
        last, last_bias = r[2 * hidden :], rb[2 * hidden :]
        if a.get("linear_before_reset", 0):
            n = own[2 * hidden :] + reset * (last @ h + last_bias)
        else:
            n = own[2 * hidden :] + last @ (reset * h) + last_bias
        n = functions[1](limited(n))
        return (1 - z) * n + z * h, c
    i, o, f, g = np.split(own + r @ h + rb, 4)
    pi, po, pf = np.split(p, 3)
    i = functions[0](limited(i + pi * c))
    f = 1 - i if a.get("input_forget", 0) else functions[0](limited(f + pf * c))
    c = f * c + i * functions[1](limited(g))
    o = functions[0](limited(o + po * c))
    return o * functions[2](c), c
