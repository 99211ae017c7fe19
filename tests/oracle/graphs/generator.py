"""Makes a random graph from a seed."""

import numpy as np
import onnx

from . import dtypes as d
from .builder import Builder, Skip
from .operators.registry import GENERATORS, WEIGHTS
from .oracles import NotComputed, schema_of, split_name
from .truth import Conflict, Undefined

NEWEST_OPSET = 28
OLDEST_OPSET = 7
# Graphs with operators of one kind find bugs that mixtures hide.
FAMILIES = {
    "views": "Reshape Flatten Squeeze Unsqueeze Identity Split Concat Dropout Slice Transpose Expand Relu Add Cast".split(),
    "arithmetic": "Add Sub Mul Div Mod Pow Floor Ceil Round Cast Max Min Clip Where Equal Less Greater Neg Abs Sqrt".split(),
    "network": "Conv MatMul Gemm Relu Add MaxPool AveragePool BatchNormalization Softmax GlobalAveragePool Reshape "
    "Transpose Concat Sigmoid Mul LayerNormalization ConvTranspose Resize Pad".split(),
    "reductions": "ReduceMax ReduceMin ReduceSum ReduceMean ArgMax ArgMin TopK Max Min MaxPool GlobalMaxPool Softmax "
    "LogSoftmax ReduceLogSumExp CumSum ReduceProd Relu Clip".split(),
    "quantized": "QuantizeLinear DequantizeLinear QLinearConv QLinearMatMul MatMulInteger ConvInteger DynamicQuantizeLinear "
    "Conv MatMul Gemm Relu Add MaxPool Reshape Clip Cast".split(),
}


class Case:
    """A model, its inputs, and its expected values."""

    def __init__(self, number, model, inputs, builder, outputs):
        self.number, self.model, self.inputs, self.outputs = number, model, inputs, outputs
        self.truth = builder.truth
        self.operators = builder.operators
        self.notes = builder.notes
        self.opset = builder.opset


def random_opset(rng, only=None):
    """Returns a random opset; if `only` is given, one that has at least one of these operators."""
    for _ in range(50):
        choice = rng.random()
        if choice < 0.4:
            opset = int(rng.integers(OLDEST_OPSET, NEWEST_OPSET + 1))
        else:
            opset = int(rng.integers(13, 22) if choice < 0.75 else rng.integers(22, NEWEST_OPSET + 1))
        if not only or any(_has(op, opset) for op in only):
            break
    return opset


def _has(op, opset):
    domain, name = split_name(op)
    try:
        schema = schema_of(name, opset, domain)
        return schema is None or not schema.deprecated
    except onnx.defs.SchemaError:
        return False


def make_case(seed, number, accepted, known=None, only=None):
    """Returns a case, or None. known: operators that may be used (None: all); only: the operators of all nodes except
    those that shape their inputs."""
    rng = np.random.default_rng([seed, number])
    b = Builder(
        rng,
        random_opset(rng, only),
        accepted,
        specials=float(rng.choice([0, 0.1, 0.25, 0.5])),
        empty=float(rng.choice([0, 0, 0, 0.05, 0.2])),
    )
    size = int(rng.integers(1, 31)) if rng.random() < 0.3 else int(rng.integers(1, 9))
    names = only or None
    if names is None and rng.random() < 0.5:
        names = FAMILIES[str(rng.choice(sorted(FAMILIES)))]
    names = [n for n in (names or sorted(GENERATORS)) if n in GENERATORS and (known is None or n in known)]
    weights = np.array([WEIGHTS[n] for n in names])
    attempts = 0
    while len(b.operators) < size and attempts < 6 * size + 10:
        attempts += 1
        op = str(rng.choice(names, p=weights / weights.sum()))
        mark = b.checkpoint()
        try:
            GENERATORS[op](b, op)
        except (Skip, Undefined, NotComputed):
            b.rollback(mark)
            continue
        except Conflict:
            b.rollback(mark)
            continue
        last = b.truth.nodes[-1].outputs[0] if len(b.truth.nodes) > mark[4] else None
        if last is not None and d.is_float(last.dtype) and last.size > 1 and rng.random() < 0.8:
            if not np.isfinite(d.wide(last)).mean() > 0.3:
                b.rollback(mark)  # all further values would be NaN
    if not b.operators:
        return None
    return finish(b, rng, number)


def finish(b, rng, number):
    """Chooses the outputs: unread values, some intermediate values, and sometimes inputs and constants."""
    alive = {v.name for v in b.pool}
    produced = [o for node in b.nodes if node.op_type != "Constant" for o in node.output if o in alive]
    outputs = [o for o in produced if o not in b.used and (rng.random() < 0.85)]
    outputs += [o for o in produced if o in b.used and rng.random() < 0.12]
    if rng.random() < 0.1 and b.inputs:
        outputs.append(str(rng.choice(b.inputs)))
    if rng.random() < 0.07 and b.initializers:
        outputs.append(str(rng.choice(b.initializers)))
    if rng.random() < 0.05:
        constants = [n.output[0] for n in b.nodes if n.op_type == "Constant"]
        outputs += [str(rng.choice(constants))] if constants else []
    if not outputs:
        outputs = [produced[-1]]
    outputs = list(dict.fromkeys(outputs))
    if rng.random() < 0.5:
        rng.shuffle(outputs)
    model, inputs = b.model(outputs)
    return Case(number, model, inputs, b, outputs)
