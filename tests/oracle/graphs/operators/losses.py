"""Losses of classification."""
import numpy as np

from .. import dtypes as d
from .registry import operator


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(b, op):
    classes = b.integer(1, 5)
    shape = [b.integer(1, 3), classes] + [b.integer(1, 3) for _ in range(b.integer(0, 2))]
    x = b.value(b.allowed(op, "T"), shape=shape)
    labels = b.rng.integers(0, classes, [shape[0]] + shape[2:]).astype(b.pick([np.int64, np.int32]))
    ignore = b.integer(0, classes - 1) if b.chance(0.3) else -100 if b.chance(0.2) else None
    weights = b.fresh(x.dtype, [classes], "positive") if b.chance(0.4) else None
    outputs = b.pick([[1], [1, 1]]) if op == "SoftmaxCrossEntropyLoss" else [1]
    b.add(op, [x, b.fresh(None, None, array=labels), weights], outputs, ignore_index=ignore,
          reduction=b.pick([None, "none", "sum", "mean"]))
