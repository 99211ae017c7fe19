"""The oracles, which compute single nodes: the ONNX reference evaluator in f64, and ONNX Runtime without
optimizations."""

import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops import aionnx_preview_training, load_op

from . import dtypes as d

warnings.filterwarnings("ignore")

IR_VERSION = 8

_options = onnxruntime.SessionOptions()
_options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
_options.intra_op_num_threads = 1
_options.inter_op_num_threads = 1
_options.log_severity_level = 4

# Operators whose result depends on the precision of their inputs.
NATIVE = {
    "Cast",
    "CastLike",
    "QuantizeLinear",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "IsNaN",
    "IsInf",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Abs",
    "Neg",
    "Identity",
    "EyeLike",
    "MelWeightMatrix",
    "BlackmanWindow",
    "HannWindow",
    "HammingWindow",
    "ConstantOfShape",
    "MeanVarianceNormalization",
    "Shape",
    "Size",
    "Reshape",
    "Range",
    "NonMaxSuppression",
}


class NotComputed(Exception):
    """The oracle cannot compute a result."""


def opset_model(nodes, inputs, outputs, opset, initializers=(), name="case"):
    graph = helper.make_graph(list(nodes), name, list(inputs), list(outputs), list(initializers))
    domains = sorted({n.domain for n in graph.node} - {""})
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1) for domain in domains]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def split_name(op):
    """Splits "com.microsoft.MatMulNBits" into ("com.microsoft", "MatMulNBits")."""
    domain, _, name = op.rpartition(".")
    return domain, name


def schema_of(op, opset, domain=""):
    """Returns the operator's schema; None for a domain that ONNX does not know. Raises SchemaError."""
    if domain == "com.microsoft":
        return None
    return onnx.defs.get_schema(op, 1 if domain else opset, domain)


def value_info(name, dtype, shape):
    return helper.make_tensor_value_info(name, d.TO_ONNX[np.dtype(dtype)], list(shape))


def with_defaults(node, opset):
    """Returns the node with its opset's default attributes; the reference evaluator would use those of the newest
    opset."""
    schema = schema_of(node.op_type, opset, node.domain)
    given = {a.name for a in node.attribute}
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    if schema is None:
        return copy
    for name, attribute in schema.attributes.items():
        default = attribute.default_value
        if node.op_type == "BatchNormalization" and name == "momentum":
            continue
        if name not in given and default.type != 0 and not (default.type == 4 and default.t.data_type == 0):
            copy.attribute.append(default)
    if node.op_type == "BatchNormalization" and opset < 14:
        # With a momentum attribute, the evaluator computes in training mode.
        for i, a in enumerate(copy.attribute):
            if a.name == "momentum":
                del copy.attribute[i]
                break
    if node.op_type == "RoiAlign" and opset < 16:
        copy.attribute.append(helper.make_attribute("coordinate_transformation_mode", "output_half_pixel"))
    if node.op_type == "GridSample" and opset < 20:
        for a in copy.attribute:
            if a.name == "mode":
                a.s = {b"bilinear": b"linear", b"bicubic": b"cubic"}.get(a.s, a.s)
    if node.op_type == "CastLike":
        # The attribute applies only to types that are not generated here, and the evaluator does not know it.
        for i, a in enumerate(copy.attribute):
            if a.name == "round_mode":
                del copy.attribute[i]
                break
    return copy


def declared_dtypes(node, opset, inputs):
    """Returns the dtypes of the outputs by the operator's schema and the attributes that name a type."""
    schema = schema_of(node.op_type, opset, node.domain)
    if schema is None:
        return [inputs[0].dtype] * len(node.output)
    by_type, first = {}, d.F32
    for i, x in reversed(list(enumerate(inputs))):
        if x is not None:
            first = by_type[schema.inputs[min(i, len(schema.inputs) - 1)].type_str] = x.dtype
    named = [d.FROM_ONNX.get(a.i) for a in node.attribute if a.name in ("to", "dtype", "output_dtype", "output_datatype")]
    out = []
    for i in range(len(node.output)):
        name = schema.outputs[min(i, len(schema.outputs) - 1)].type_str
        out.append(by_type.get(name) or d.FROM_SCHEMA.get(name) or next((t for t in named if t), first))
    return out


def output_dtypes(node, opset, inputs, results):
    """Returns the dtypes of the outputs by the operator's schema. results: the outputs, computed wide."""
    schema = schema_of(node.op_type, opset, node.domain)
    if schema is None:
        return declared_dtypes(node, opset, inputs)
    by_type = {}
    for i, x in enumerate(inputs):
        if x is not None:
            by_type.setdefault(schema.inputs[min(i, len(schema.inputs) - 1)].type_str, x.dtype)
    out = []
    for i, r in enumerate(results):
        name = schema.outputs[min(i, len(schema.outputs) - 1)].type_str
        if node.op_type == "LayerNormalization" and i > 0:
            out.append(d.F32)
        elif node.op_type in NATIVE or r is None:
            out.append(None if r is None else r.dtype)
        else:
            out.append(by_type.get(name) or d.FROM_SCHEMA.get(name) or r.dtype)
    return out


def _mode(node):
    return next((a.s.decode() for a in node.attribute if a.name == "mode"), "nearest")


def _swapped(node, name, new):
    """Sets a float attribute and returns its old value."""
    for a in node.attribute:
        if a.name == name:
            old, a.f = a.f, new
            return old
    return 0.0


class Reference:
    """The reference evaluator's implementation of a node. It computes floats in f64 where that makes the result more
    exact without changing its meaning."""

    def __init__(self, node, opset, inputs):
        self.native = node.op_type in NATIVE
        node = with_defaults(node, opset)
        self.nearest = node.op_type in ("Resize", "Upsample") and _mode(node) == "nearest"
        if self.nearest:
            # Only the selection of elements counts: in f64, large integers would be rounded, and infinity times zero
            # is NaN.
            self.outside = _swapped(node, "extrapolation_value", -1.0)
        self.evaluator = None
        self.inputs = len(node.input)
        params = {
            "log": lambda *a: None,
            "opsets": {"": opset},
            "verbose": 0,
            "new_ops": None,
            "existing_functions": {},
            "evaluator_cls": ReferenceEvaluator,
        }
        try:
            if node.domain == aionnx_preview_training.OpRunTraining.op_domain:
                self.op = aionnx_preview_training.load_op(node.domain, node.op_type, 1)(node, params)
            elif node.domain:
                raise NotComputed(f"no {node.domain}")
            else:
                self.op = load_op("", node.op_type, opset)(node, params)
        except Exception as first:
            if node.domain:
                raise NotComputed(f"{type(first).__name__}: {first}") from first
            self.op = None
            try:
                feeds, names = [], []
                for i, x in enumerate(inputs):
                    names.append("" if x is None else f"i{i}")
                    if x is not None:
                        feeds.append(value_info(f"i{i}", self._given(x).dtype, x.shape))
                copy = onnx.NodeProto()
                copy.CopyFrom(node)
                del copy.input[:]
                copy.input.extend(names)
                outputs = [onnx.ValueInfoProto(name=o) for o in node.output if o]
                self.evaluator = ReferenceEvaluator(opset_model([copy], feeds, outputs, opset))
            except Exception:
                raise NotComputed(f"{type(first).__name__}: {first}") from first

    def _given(self, x):
        return x if self.native or x is None else d.wide(x)

    def __call__(self, inputs):
        if not self.nearest or inputs[0].size == 0:
            return self._run(inputs)
        x = d.wide(inputs[0])
        (places,) = self._run([np.arange(x.size, dtype=np.float64).reshape(x.shape), *inputs[1:]])
        places = np.rint(places).astype(np.int64)
        with np.errstate(all="ignore"):
            outside = np.asarray(self.outside).astype(x.dtype)
        return [np.where(places < 0, outside, x.reshape(-1)[np.maximum(places, 0)])]

    def _run(self, inputs):
        given = [self._given(x) for x in inputs]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if self.evaluator is not None:
                    results = self.evaluator.run(None, {f"i{i}": x for i, x in enumerate(given) if x is not None})
                else:
                    while given and given[-1] is None:
                        given.pop()
                    results = self.op.run(*given)
        except Exception as error:
            raise NotComputed(f"{type(error).__name__}: {error}") from error
        return [None if r is None else np.asarray(r) for r in results]


class OnnxRuntime:
    """A session with one node. NumPy has no bf16, so bf16 values are passed as f32 and cast inside."""

    def __init__(self, node, opset, inputs, output_dtypes):
        feeds, nodes, names = [], [], []
        self.names = []
        for i, (name, x) in enumerate(zip(node.input, inputs)):
            if not name or x is None:
                names.append("")
                continue
            # A node may read a value twice, so each input gets its own name.
            own = f"i{i}"
            self.names.append((own, i))
            if x.dtype == d.BF16:
                feeds.append(value_info(own, d.F32, x.shape))
                nodes.append(helper.make_node("Cast", [own], [own + "_b"], to=TensorProto.BFLOAT16))
                names.append(own + "_b")
            else:
                feeds.append(value_info(own, x.dtype, x.shape))
                names.append(own)
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(names)
        nodes.append(copy)
        results = []
        self.outputs = []
        for name, dtype in zip(node.output, output_dtypes):
            if not name:
                self.outputs.append(None)
                continue
            if dtype == d.BF16:
                nodes.append(helper.make_node("Cast", [name], [name + "_f"], to=TensorProto.FLOAT))
                name = name + "_f"
            self.outputs.append((name, dtype))
            results.append(onnx.ValueInfoProto(name=name))
        # ONNX Runtime needs some inputs (initializers) as constants to infer shapes; as feeds they may have any values.
        model = opset_model(nodes, feeds, results, opset)
        try:
            self.session = onnxruntime.InferenceSession(
                model.SerializeToString(), _options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            raise NotComputed(str(error)) from error

    def __call__(self, inputs):
        feeds = {}
        for own, i in self.names:
            x = inputs[i]
            feeds[own] = x.astype(np.float32) if x.dtype == d.BF16 else np.ascontiguousarray(x).reshape(x.shape)
        try:
            results = self.session.run([o[0] for o in self.outputs if o], feeds)
        except Exception as error:
            raise NotComputed(str(error)) from error
        out, at = [], iter(results)
        for output in self.outputs:
            if output is None:
                out.append(None)
                continue
            r = np.asarray(next(at))
            out.append(r.astype(d.BF16) if output[1] == d.BF16 else r)
        return out
