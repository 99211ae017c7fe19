"""Models with operators that Tensorsmith does not support: supported parts are compiled, ONNX Runtime runs the
rest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, errors
from .dtypes import ONNX_RUNTIME_TYPES
from .onnx_runtime import results_in, runner, session_of_onnx_runtime

if TYPE_CHECKING:
    import onnx

_log = logging.getLogger("tensorsmith")

# Operators that are worth a separate compiled part. Smaller parts without them run together with their neighbours.
_HEAVY = {
    "Conv",
    "ConvTranspose",
    "Einsum",
    "Gemm",
    "MatMul",
    "QLinearConv",
    "QLinearMatMul",
    "LSTM",
    "GRU",
    "Attention",
}
_FEW_NODES = 4


@dataclass
class Part:
    """Nodes that run together, and the values that they read and write."""

    ours: bool
    nodes: list[Any] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    model: Any = None  #: the ONNX model of the part
    run: Callable[[dict[str, Any]], dict[str, np.ndarray]] | None = None


class PartitionedModel:
    """A model in parts, for one choice of shapes.

    Args:
        model: the whole model.
        shapes: shapes of all inputs.
        compiled: makes a runnable model of a part, or raises errors.Error.
        threads: number of ONNX Runtime's threads; 0: its own choice.
        because: the error of compiling the whole model.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        shapes: Mapping[str, tuple[int, ...]],
        compiled: Callable[[onnx.ModelProto], Any],
        threads: int,
        because: errors.Error,
    ) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise errors.NotInstalled(
                because.reason + "; ONNX Runtime can run them: pip install onnxruntime onnx", because.place
            ) from error
        whole = _with_shapes(model, shapes)
        self._outputs = [value.name for value in whole.graph.output]
        self.parts = _parts(whole)
        for part in self.parts:
            if part.ours:
                try:
                    part.run = compiled(part.model).run
                except errors.Error as error:
                    _log.info("ONNX Runtime runs a part: %s", error)
                    part.ours = False
            if not part.ours:
                options = onnxruntime.SessionOptions()
                options.intra_op_num_threads = threads
                part.run = runner(session_of_onnx_runtime(part.model.SerializeToString(), options))
        theirs = [node for part in self.parts if not part.ours for node in part.nodes]
        operators = ", ".join(sorted({node.op_type for node in theirs}))
        count = sum(len(part.nodes) for part in self.parts)
        _log.warning("%d of %d nodes run by ONNX Runtime (%s): %s", len(theirs), count, operators, because)

    def run(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """See Model.run."""
        values: dict[str, Any] = dict(inputs)
        for part in self.parts:
            assert part.run is not None
            values.update(part.run({name: values[name] for name in part.inputs}))
        return results_in({name: np.asarray(values[name]) for name in self._outputs}, outputs)


def _with_shapes(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> onnx.ModelProto:
    """Returns a copy of the model with these shapes and the inferred ones; constants become initializers."""
    import onnx

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    lengths = {}
    for value in whole.graph.input:
        for dim, length in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ())):
            if dim.dim_param:
                lengths[dim.dim_param] = length
            dim.Clear()
            dim.dim_value = length
    for value in [*whole.graph.value_info, *whole.graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in lengths:
                dim.dim_value = lengths[dim.dim_param]
    for node in [n for n in whole.graph.node if n.op_type == "Constant"]:
        if [attribute.name for attribute in node.attribute] == ["value"]:
            tensor = whole.graph.initializer.add()
            tensor.CopyFrom(node.attribute[0].t)
            tensor.name = node.output[0]
            whole.graph.node.remove(node)
    return _with_types_of_onnx_runtime(onnx.shape_inference.infer_shapes(whole, data_prop=True))


def _with_types_of_onnx_runtime(whole: onnx.ModelProto) -> onnx.ModelProto:
    """Adds types of values that ONNX cannot infer, since their operators are ONNX Runtime's own."""
    import onnx
    import onnxruntime

    known = {value.name for value in [*whole.graph.value_info, *whole.graph.output]}
    unknown = [name for node in whole.graph.node for name in node.output if name and name not in known]
    if not unknown:
        return whole
    asked = onnx.ModelProto()
    asked.CopyFrom(whole)
    del asked.graph.output[:]
    asked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in unknown)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = session_of_onnx_runtime(asked.SerializeToString(), options)
    types = {text: number for number, text in ONNX_RUNTIME_TYPES.items()}
    for output in session.get_outputs():
        if output.type in types:
            whole.graph.value_info.append(
                onnx.helper.make_tensor_value_info(output.name, types[output.type], output.shape)
            )
    return whole


def _used(node: Any) -> Iterator[str]:
    """Yields the names that a node reads, including those that its bodies read from outside."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            for inner in graph.node:
                yield from (name for name in _used(inner) if name not in made)
                made.update(inner.output)
            yield from (value.name for value in graph.output if value.name not in made)


class _Graph:
    def __init__(self, whole: onnx.ModelProto) -> None:
        self.whole = whole
        graph = whole.graph
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self.types = {value.name: value for value in [*graph.input, *graph.value_info, *graph.output]}
        self.wanted = {value.name for value in graph.output}

    def model(self, part: Part) -> onnx.ModelProto:
        """Returns the part as a separate model. Raises KeyError if a type is not known."""
        import onnx

        model = onnx.ModelProto()
        model.ir_version = self.whole.ir_version
        model.opset_import.extend(self.whole.opset_import)
        model.functions.extend(self.whole.functions)
        model.graph.name = self.whole.graph.name or "part"
        model.graph.node.extend(part.nodes)
        read = {name for node in part.nodes for name in _used(node)}
        model.graph.initializer.extend(self.constants[name] for name in sorted(read & self.constants.keys()))
        model.graph.input.extend(self.types[name] for name in part.inputs)
        for name in part.outputs:
            model.graph.output.append(self.types[name] if name in self.types else onnx.ValueInfoProto(name=name))
        return model

    def set_ends(self, part: Part, read_elsewhere: set[str]) -> None:
        """Sets the values that the part reads from others and the values that others read from it."""
        made = {name for node in part.nodes for name in node.output if name}
        read = [name for node in part.nodes for name in _used(node)]
        part.inputs = list(dict.fromkeys(n for n in read if n not in made and n not in self.constants))
        part.outputs = [
            name
            for node in part.nodes
            for name in node.output
            if name and (name in read_elsewhere or name in self.wanted)
        ]

    def is_ours(self, node: Any) -> bool:
        """Returns whether the node alone can be imported, with what is known of its inputs."""
        part = Part(True, [node])
        self.set_ends(part, set(node.output))
        try:
            _native.check_import(self.model(part).SerializeToString())
        except (errors.Error, KeyError):
            return False
        return True


def _parts(whole: onnx.ModelProto) -> list[Part]:
    """Returns as few parts as possible, ordered so that each part's inputs are available."""
    graph = _Graph(whole)
    left = [(node, graph.is_ours(node)) for node in whole.graph.node]
    known = graph.constants.keys() | {value.name for value in whole.graph.input}
    parts: list[Part] = []
    ours = True
    while left:
        part = Part(ours)
        waiting = []
        for node, is_ours in left:
            if is_ours == ours and all(name in known for name in _used(node)):
                part.nodes.append(node)
                known |= set(node.output)
            else:
                waiting.append((node, is_ours))
        if part.nodes:
            parts.append(part)
        elif len(waiting) == len(left) and not any(all(name in known for name in _used(node)) for node, _ in waiting):
            raise errors.Corrupt("a node reads a value that no earlier node can compute", "model")
        left = waiting
        ours = not ours
    merged: list[Part] = []
    for part in parts:
        if part.ours and len(part.nodes) < _FEW_NODES and not any(n.op_type in _HEAVY for n in part.nodes):
            part.ours = False
        if merged and merged[-1].ours == part.ours:
            merged[-1].nodes += part.nodes
        else:
            merged.append(part)
    for part in merged:
        mine = {id(node) for node in part.nodes}
        elsewhere = {name for p in merged for node in p.nodes if id(node) not in mine for name in _used(node)}
        graph.set_ends(part, elsewhere)
        try:
            part.model = graph.model(part)
        except KeyError as error:
            raise errors.Unsupported("the type of this value is not known", f"value {error}") from error
    return merged
