"""Optimizer steps (ai.onnx.preview.training)."""

import numpy as np

from .. import dtypes as d
from .registry import operator

STATES = {"Adagrad": ["positive"], "Adam": ["normal", "positive"], "Momentum": ["normal"]}


@operator(*(f"ai.onnx.preview.training.{name}" for name in STATES))
def optimizer(b, op):
    name = op.rpartition(".")[2]
    dtype = b.pick([d.F32, d.F32, d.F64])
    rate = b.fresh(dtype, b.pick([[], [1]]), array=None, kind="positive")
    step = b.fresh(None, None, array=np.full(b.pick([[], [1]]), b.pick([0, 0, 1, 2, 7, 1000]), dtype=np.int64))
    parameters = [b.value([dtype])]
    for _ in range(b.pick([0, 0, 1, 2])):
        parameters.append(b.value([dtype]))
    inputs = [rate, step, *parameters]
    inputs += [b.value([dtype], shape=p.shape) for p in parameters]  # gradients
    for kind in STATES[name]:
        inputs += [b.fresh(dtype, p.shape, kind) for p in parameters]
    regular = b.pick([None, 0.0, 0.001, 0.25])
    if name == "Adagrad":
        a = {"decay_factor": b.pick([None, 0.1, 0.5]), "epsilon": b.pick([None, 1e-3]), "norm_coefficient": regular}
    elif name == "Adam":
        a = {
            "alpha": b.pick([None, 0.5, 0.0]),
            "beta": b.pick([None, 0.75]),
            "epsilon": b.pick([None, 1e-3]),
            "norm_coefficient": regular,
            "norm_coefficient_post": b.pick([None, 0.1]),
        }
    else:
        a = {
            "alpha": b.pick([0.9, 0.0, 0.5]),
            "beta": b.pick([1.0, 0.1]),
            "norm_coefficient": regular or 0.0,
            "mode": b.pick(["standard", "nesterov"]),
        }
    b.add(op, inputs, len(parameters) * (1 + len(STATES[name])), **a)
