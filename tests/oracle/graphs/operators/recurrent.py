"""RNN, GRU and LSTM."""

import numpy as np

from .registry import operator

GATES = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}  # gates, activations per direction


@operator("RNN", "GRU", "LSTM", weight=0.7)
def recurrent(b, op):
    gates, activations = GATES[op]
    steps, batch, width, hidden = b.integer(1, 4), b.integer(1, 3), b.integer(1, 4), b.integer(1, 4)
    direction = b.pick([None, "forward", "reverse", "bidirectional"])
    dirs = 2 if direction == "bidirectional" else 1
    layout = b.pick([None, None, 0, 1]) if b.opset >= 14 else None
    dtype = b.dtype(op, "T")
    x = b.value([dtype], shape=[batch, steps, width] if layout else [steps, batch, width])
    inputs = [
        x,
        b.fresh(dtype, [dirs, gates * hidden, width], "unit"),
        b.fresh(dtype, [dirs, gates * hidden, hidden], "unit"),
    ]
    bias = b.fresh(dtype, [dirs, 2 * gates * hidden], "unit") if b.chance(0.6) else None
    lengths = None
    if b.chance(0.3):
        lengths = b.fresh(None, None, array=b.rng.integers(1, steps + 1, [batch]).astype(np.int32))
    shape = [batch, dirs, hidden] if layout else [dirs, batch, hidden]
    inputs += [bias, lengths, b.fresh(dtype, shape, "unit") if b.chance(0.4) else None]
    if op == "LSTM":
        inputs += [
            b.fresh(dtype, shape, "unit") if b.chance(0.4) else None,
            b.fresh(dtype, [dirs, 3 * hidden], "unit") if b.chance(0.3) else None,
        ]
    attributes = {"hidden_size": hidden, "direction": direction, "layout": layout}
    if b.chance(0.3):
        attributes["activations"] = [b.pick(["Tanh", "Sigmoid", "Relu", "Softsign"]) for _ in range(dirs * activations)]
    if b.chance(0.15):
        attributes["clip"] = b.pick([0.5, 1.0, 5.0])
    if op == "GRU":
        attributes["linear_before_reset"] = b.pick([None, 0, 1])
    if op == "LSTM" and b.chance(0.1):
        attributes["input_forget"] = 1
    outputs = b.pick([[1], [1, 1], [0, 1]]) if op != "LSTM" else b.pick([[1], [1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]])
    b.add(op, inputs, outputs, **attributes)
