"""Rules for nodes on which the oracles differ or whose result the standard leaves open (accepted.txt)."""

import dataclasses
import functools
import pathlib

import numpy as np
import onnx

from . import dtypes as d

VERDICTS = {
    "undefined": "the standard does not define the result: such nodes are not made",
    "reference": "where ONNX Runtime differs, the reference evaluator is right",
    "onnxruntime": "where the reference evaluator differs, ONNX Runtime is right",
    "rule": "where either differs, the rule of rules.py is right",
    "open": "both results are accepted",
}


@dataclasses.dataclass
class Rule:
    verdict: str
    operators: set
    predicate: str
    reason: str
    line: int

    def __post_init__(self):
        self.code = compile(self.predicate, f"accepted.txt:{self.line}", "eval")


class Facts:
    """Properties of a node with its inputs that predicates can use."""

    def __init__(self, node, opset, inputs, outputs=()):
        self.op, self.opset = node.op_type, opset
        self.inputs = [x for x in inputs if x is not None]
        self.given = list(inputs)
        self.outputs = [x for x in outputs if x is not None]
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self.dtype = self.inputs[0].dtype if self.inputs else None
        self.num_outputs = len([o for o in node.output if o])

    def attribute(self, name, otherwise=None):
        value = self.attributes.get(name, otherwise)
        return value.decode() if isinstance(value, bytes) else value

    def input(self, i):
        return self.given[i] if i < len(self.given) else None

    def _float_inputs(self):
        return [d.wide(x) for x in self.inputs if d.is_float(x.dtype)]

    @property
    def has_nan(self):
        return any(np.isnan(x).any() for x in self._float_inputs())

    @property
    def has_inf(self):
        return any(np.isinf(x).any() for x in self._float_inputs())

    @property
    def finite(self):
        return all(np.isfinite(x).all() for x in self._float_inputs())

    @property
    def empty(self):
        return any(x.size == 0 for x in self.inputs)

    @property
    def empty_result(self):
        return any(x.size == 0 for x in self.outputs)

    def scope(self):
        names = {
            n: getattr(self, n)
            for n in (
                "op",
                "opset",
                "inputs",
                "outputs",
                "dtype",
                "has_nan",
                "has_inf",
                "finite",
                "empty",
                "empty_result",
                "num_outputs",
            )
        }
        names |= {
            "attribute": self.attribute,
            "input": self.input,
            "np": np,
            "is_float": d.is_float,
            "is_int": d.is_int,
            "limits": d.limits,
            "wide": d.wide,
            "f16": d.F16,
            "bf16": d.BF16,
            "f32": d.F32,
            "f64": d.F64,
            "boolean": d.BOOL,
            "signed": d.SIGNED,
            "unsigned": d.UNSIGNED,
            "u8": d.U8,
            "i8": d.I8,
            "out_of_range": out_of_range,
            "cast_target": cast_target,
            "extreme_squares": extreme_squares,
            "extreme_products": extreme_products,
            "nearly_singular": nearly_singular,
            "fractional_sizes": fractional_sizes,
            "saturates": saturates,
        }
        return names


def out_of_range(x, dtype):
    """Returns whether x has a float that the integer type of the dtype cannot represent."""
    low, high = d.limits(dtype)
    w = np.trunc(d.wide(x))
    return bool((~np.isfinite(w) | (w < float(low)) | (w >= float(high) + 1.0)).any())


def cast_target(facts_attribute, like):
    to = facts_attribute("to")
    return d.FROM_ONNX.get(to) if to is not None else (None if like is None else like.dtype)


def extreme_squares(inputs, windows=False):
    """Returns whether squares of the first input overflow or all underflow in the type in which sums are computed.
    With `windows`, one square that underflows is enough, since it may be alone in its sum."""
    x = inputs[0]
    if not d.is_float(x.dtype):
        return False
    w = np.abs(d.wide(x))
    w = w[np.isfinite(w) & (w != 0)]
    low, high = (1e-150, 1e150) if x.dtype == d.F64 else (1e-17, 1e17)
    return bool(w.size and (w.max() > high or (w.min() if windows else w.max()) < low))


def extreme_products(inputs):
    """Returns whether sums of products of the inputs may overflow, or products underflow, in the type of the sums."""
    f64 = inputs[0].dtype == d.F64
    low, high = (1e-290, 1e300) if f64 else (1e-30, 1e35)
    least, most = 1.0, 1.0
    for x in inputs:
        if x is not None and d.is_float(x.dtype):
            w = np.abs(d.wide(x))
            w = w[np.isfinite(w) & (w != 0)]
            if w.size:
                least, most = least * w.min(), most * w.max()
    return bool(least < low or most > high)


def nearly_singular(x):
    """Returns whether a determinant of the matrices is small relative to Hadamard's bound, the product of row
    norms."""
    w = d.wide(x)
    bound = np.prod(np.sqrt((w * w).sum(axis=-1)), axis=-1)
    return bool((np.abs(np.linalg.det(w)) <= 1e-2 * bound).any())


@functools.cache
def has_vnni():
    """Returns whether the processor adds four products of bytes exactly."""
    flags = pathlib.Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split()
    return "avx512_vnni" in flags or "avx_vnni" in flags


def saturates(x, weights, zero_point):
    """Returns whether ONNX Runtime may saturate a sum of two products: without VNNI, it adds products of an unsigned
    and a signed byte in 16 bits (vpmaddubsw). Of two signed bytes, it shifts one by 128. A convolution pads x with
    its zero point."""
    if has_vnni() or not x.size or not weights.size or d.I8 not in (x.dtype, weights.dtype):
        return False
    parts = [x] if zero_point is None else [x, zero_point]
    most = max(int(np.abs(part.astype(np.int32)).max()) for part in parts)
    of_weights = int(np.abs(weights.astype(np.int32)).max())
    if x.dtype == weights.dtype:
        most, of_weights = 255, max(most, of_weights)
    return 2 * most * of_weights > 32767


def fractional_sizes(x, scales, axes):
    """Returns whether a scale times an extent is not an integer."""
    if scales is None or scales.size == 0:
        return False
    extents = [x.shape[a] for a in (axes if axes is not None else range(x.ndim))]
    return any(float(s) * e != int(float(s) * e) for s, e in zip(scales.reshape(-1), extents))


class AcceptedList:
    def __init__(self, path=None):
        path = pathlib.Path(path or pathlib.Path(__file__).parent / "accepted.txt")
        self.rules = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = [f.strip() for f in line.split(" | ")]
            if len(fields) != 4 or fields[0] not in VERDICTS:
                raise SystemExit(f"{path}:{number}: write VERDICT | OPERATORS | PREDICATE | REASON")
            self.rules.append(Rule(fields[0], set(fields[1].split()), fields[2], fields[3], number))

    def find(self, node, opset, inputs, outputs=(), verdicts=VERDICTS):
        """Returns the first rule with one of the verdicts that applies to the node, or None."""
        scope = None
        for rule in self.rules:
            if rule.verdict not in verdicts or ("*" not in rule.operators and node.op_type not in rule.operators):
                continue
            if scope is None:
                scope = Facts(node, opset, inputs, outputs).scope()
            with np.errstate(all="ignore"):
                if eval(rule.code, scope):  # the list is trusted code, part of this program
                    return rule
        return None
