"""Values of a graph by the oracles, node by node; both oracles get the same inputs for each node."""

import numpy as np

from . import dtypes as d
from .noise import EXACT, amplitudes, disturb
from .oracles import NotComputed, OnnxRuntime, Reference, declared_dtypes, output_dtypes
from .rules import RULES

# Operators that never change values: zeros keep their signs.
MOVES = EXACT - {
    "Abs",
    "Neg",
    "Max",
    "Min",
    "Clip",
    "Relu",
    "Ceil",
    "Floor",
    "Round",
    "ReduceMax",
    "ReduceMin",
    "Cast",
    "CastLike",
    "MaxPool",
    "GlobalMaxPool",
    "ThresholdedRelu",
    "Sign",
}


# Operators whose rule counts even if both oracles disagree with it: the oracles overflow, or round where the standard
# does not.
WITHOUT_WITNESS = {"LRN", "ReduceLogSumExp", "Erf", "Gelu"}


# The reference evaluator takes seconds and divides by the extent less one, so only the rule and ONNX Runtime count.
WITHOUT_REFERENCE = {"DeformConv"}


class Undefined(Exception):
    """The standard does not define the node's result."""


class Conflict(Exception):
    """The oracles differ, and no accepted rule applies."""


class NodeTruth:
    """Outputs of one node for its inputs in the graph, and for disturbed inputs."""

    def __init__(self, node, opset, inputs, accepted, rng):
        self.node, self.opset, self.inputs = node, opset, list(inputs)
        self.rng = rng
        self.rule = None  # the rule of the accepted list that decided
        self.difference = None
        self.reasons = {}  # oracle -> reason why it has no result
        rule = accepted.find(node, opset, inputs, verdicts=("undefined",))
        if rule is not None:
            raise Undefined(rule.reason)
        self.evaluate = None
        reference = self._reference()
        own = self._rule()
        runtime = self._runtime(output_dtypes(node, opset, inputs, reference or own) if (reference or own) else None)
        if reference is None and runtime is None and own is None:
            raise NotComputed("; ".join(f"{k}: {v}" for k, v in self.reasons.items()))
        self._decide(reference, runtime, own, accepted)
        for o in self.outputs:
            if o is not None and np.prod(o.shape) > 200000:
                raise NotComputed("too large")

    def _reference(self):
        if self.node.op_type in WITHOUT_REFERENCE:
            self.reasons["reference"] = "takes too long"
            return None
        try:
            self.reference = Reference(self.node, self.opset, self.inputs)
            return self.reference(self.inputs)
        except NotComputed as error:
            self.reasons["reference"] = str(error)
            return None

    def _rule(self):
        if self.node.op_type not in RULES:
            return None
        try:
            with np.errstate(all="ignore"):
                return RULES[self.node.op_type](self.node, self.opset, self.inputs)
        except Exception as error:  # malformed nodes: the other oracles report them
            self.reasons["rule"] = f"{type(error).__name__}: {error}"
            return None

    def _runtime(self, dtypes):
        try:
            if dtypes is None:
                dtypes = declared_dtypes(self.node, self.opset, self.inputs)
            self.runtime = OnnxRuntime(self.node, self.opset, self.inputs, dtypes + [d.F32] * 8)
            return self.runtime(self.inputs)
        except NotComputed as error:
            self.reasons["onnxruntime"] = str(error)
            return None

    def _decide(self, reference, runtime, own, accepted):
        count = len(self.node.output)

        def padded(results):
            return None if results is None else (list(results) + [None] * count)[:count]

        reference, runtime, own = padded(reference), padded(runtime), padded(own)
        rounded = None
        if reference is not None:
            dtypes = output_dtypes(self.node, self.opset, self.inputs, reference)
            if runtime is not None:
                # ONNX Runtime infers types as in the standard; the evaluator's are sometimes NumPy's.
                dtypes = [t if r is None else r.dtype for t, r in zip(dtypes, runtime)]
            rounded = [None if r is None else d.narrow(r, t) for r, t in zip(reference, dtypes)]
        self.by_reference, self.by_runtime, self.by_rule = rounded, runtime, own
        self.source = "reference" if rounded is not None else "onnxruntime" if runtime is not None else "rule"
        self._take(reference, rounded, runtime, own)
        if rounded is not None and runtime is not None:
            self.difference = self.compare(runtime)
            if self.difference is not None or own is not None:
                self._settle(reference, rounded, runtime, own, accepted)
        elif own is not None:
            self._settle(reference, rounded, runtime, own, accepted)
        elif rounded is not None or runtime is not None:
            rule = accepted.find(self.node, self.opset, self.inputs, verdicts=("rule",))
            if rule is not None:
                raise Undefined(rule.reason)
            # An oracle that the accepted list calls wrong here does not count.
            wrong = accepted.find(
                self.node,
                self.opset,
                self.inputs,
                self.outputs,
                verdicts=("onnxruntime",) if rounded is not None else ("reference",),
            )
            if wrong is not None:
                raise NotComputed(f"only an oracle that is wrong here: {wrong.reason}")

    def _settle(self, reference, rounded, runtime, own, accepted):
        rule = accepted.find(
            self.node, self.opset, self.inputs, self.outputs, verdicts=("reference", "onnxruntime", "rule", "open")
        )
        if own is not None and (rule is None or rule.verdict == "rule"):
            self.source = "rule"
            self._take(reference, rounded, runtime, own)
            others = {
                k: self.compare(o) for k, o in (("reference", rounded), ("onnxruntime", runtime)) if o is not None
            }
            if all(o is None for o in others.values()):
                self.difference = None
                return
            self.difference = f"rule: {others}"
            # Unless an input has a NaN, an oracle must agree with the rule.
            if (
                rule is not None
                and runtime is not None
                and self.node.op_type not in WITHOUT_WITNESS
                and None not in others.values()
                and not any(np.isnan(d.wide(x)).any() for x in self.inputs if x is not None and d.is_float(x.dtype))
            ):
                raise Conflict(f"nobody agrees with the rule: {others}")
        if self.difference is None:
            return
        if rule is None:
            raise Conflict(self.difference)
        self.rule = rule
        if rule.verdict == "open":
            raise Undefined(rule.reason)
        if rule.verdict in ("reference", "onnxruntime"):
            self.source = rule.verdict
            if (rounded if rule.verdict == "reference" else runtime) is None:
                raise NotComputed(rule.reason)
            self._take(reference, rounded, runtime, own)

    def _take(self, reference, rounded, runtime, own):
        if self.source == "reference":
            self.outputs, self.exact, self.evaluate = rounded, reference, self.reference
            if self.reference.native:
                self.evaluate = lambda inputs: self.reference(self._native(inputs))
        elif self.source == "onnxruntime":
            self.outputs, self.exact = runtime, runtime
            self.evaluate = lambda inputs: self.runtime(self._native(inputs))
        else:
            self.outputs, self.exact = own, own
            self.evaluate = lambda inputs: RULES[self.node.op_type](self.node, self.opset, inputs)
        self._amplitudes = None
        if self.source == "rule":
            dtype = self.inputs[2 if self.node.op_type == "OneHot" else 0].dtype
            self.outputs = [r if r is None or r.dtype in (d.I64, dtype) else d.narrow(r, dtype) for r in own]

    def _native(self, inputs):
        return [x if x is None else d.narrow(x, y.dtype) for x, y in zip(inputs, self.inputs)]

    @property
    def amplitudes(self):
        if self._amplitudes is None:
            self._amplitudes = amplitudes(
                self.node, self.opset, self.inputs, self.exact, self.outputs, self.evaluate, self.rng
            )
        return self._amplitudes

    def compare(self, others):
        """Returns a text with the difference between `others` and the outputs, or None. Rounding errors do not
        count."""
        for i, (ours, other) in enumerate(zip(self.outputs, others)):
            if ours is None or other is None:
                continue
            if ours.shape != other.shape:
                return f"output {i} has shape {list(ours.shape)} or {list(other.shape)}"
            if ours.dtype != other.dtype:
                return f"output {i} has dtype {ours.dtype} or {other.dtype}"
            if np.array_equal(ours, other):
                continue
            if not d.is_float(ours.dtype):
                return f"output {i} differs"
            a, b = d.wide(ours), d.wide(other)
            with np.errstate(all="ignore"):
                amplitude = self.amplitudes[i]
                eps = d.EPSILON[ours.dtype]
                tolerance = 2 * eps * np.abs(a) + 4 * d.SUBNORMAL[ours.dtype]
                if amplitude is not None:
                    tolerance = tolerance + 4 * np.nan_to_num(amplitude, nan=0.0, posinf=0.0)
                near = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance)
                # Values just above the largest number may be infinite.
                top = d.LARGEST[ours.dtype]
                if amplitude is not None:
                    near |= np.isinf(amplitude)
                near |= np.isinf(b) & (np.sign(a) == np.sign(b)) & (np.abs(a) + tolerance >= top)
                near |= np.isinf(a) & (np.sign(a) == np.sign(b)) & (np.abs(b) * (1 + 16 * eps) >= top)
            if not near.all():
                at = np.unravel_index(int(np.argmin(near)), near.shape)
                return f"output {i} at {list(map(int, at))}: {a[at]!r} or {b[at]!r}"
        return None

    def disturbed(self, inputs, rng):
        """Returns the outputs for other inputs with other rounding errors; None where the oracle has no result."""
        moves = self.node.op_type in MOVES
        same = all(
            x is y
            or (
                x is not None
                and y is not None
                and x.shape == y.shape
                and x.tobytes() == y.tobytes()
            )
            for x, y in zip(inputs, self.inputs)
        )
        exact = self.exact
        if self.node.op_type in ("Div", "Mod") and d.is_int(inputs[1].dtype) and not np.all(inputs[1]):
            same = True  # ONNX Runtime would divide by zero
        if not same:
            try:
                exact = self.evaluate(inputs)
            except NotComputed:
                exact = self.exact
        out = []
        for e, o, a in zip(list(exact) + [None] * len(self.outputs), self.outputs, self.amplitudes):
            if o is None or e is None or e.shape != o.shape:
                out.append(o)
            elif not d.is_float(o.dtype):
                out.append(d.narrow(e, o.dtype))
            else:
                if a is not None and not same:
                    with np.errstate(all="ignore"):
                        new = np.abs(d.wide(e))
                        a = np.where((a == 0) | np.isnan(a), d.EPSILON[o.dtype] * new, a)
                        a = np.maximum(a, np.where(np.isfinite(new), d.EPSILON[o.dtype] * new, 0))
                out.append(disturb(rng, e, o, a, moves))
        return out


class GraphTruth:
    """Values of a graph: constants and inputs by name, then the nodes in order."""

    def __init__(self, opset, accepted, seed):
        self.opset, self.accepted = opset, accepted
        self.rng = np.random.default_rng(seed)
        self.values = {}
        self.nodes = []

    def define(self, name, array):
        self.values[name] = array

    def add(self, node):
        """Evaluates a node. Undefined, Conflict and NotComputed leave the object unchanged."""
        inputs = [self.values[n] if n else None for n in node.input]
        truth = NodeTruth(node, self.opset, inputs, self.accepted, self.rng)
        for name, array in zip(node.output, truth.outputs):
            if name:
                self.values[name] = array
        self.nodes.append(truth)
        return truth

    def disturbed(self, count, seed):
        """Returns `count` disturbed executions, as dictionaries of values."""
        executions = []
        for k in range(count):
            rng = np.random.default_rng([seed, k])
            values = {n: self.values[n] for n in self.values}
            for truth in self.nodes:
                inputs = [values[n] if n else None for n in truth.node.input]
                for name, array in zip(truth.node.output, truth.disturbed(inputs, rng)):
                    if name:
                        values[name] = array
            executions.append(values)
        return executions
