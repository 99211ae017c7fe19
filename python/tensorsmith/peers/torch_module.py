"""Converts an ONNX model to a PyTorch module for one shape of its inputs, for PyTorch Inductor and LiteRT's
converter.

onnx2torch keeps shapes, axes and scalars in tensors, whose values neither of them can see. Here they become Python
numbers.
"""

import onnx2torch
import torch


class ShapeRecorder(torch.fx.Interpreter):
    """Runs a module and records the shape of each value."""

    def __init__(self, module):
        super().__init__(module)
        self.shapes = {}

    def run_node(self, node):
        result = super().run_node(node)
        if isinstance(result, torch.Tensor):
            self.shapes[node] = tuple(result.shape)
        return result


def slices(x, starts, ends, axes, steps):
    for start, end, axis, step in zip(starts, ends, axes, steps):
        x = torch.ops.aten.slice.Tensor(x, axis, start, end, step)
    return x


def initializer(module, node):
    """Returns the tensor that a node refers to; None if it is computed or absent."""
    if not isinstance(node, torch.fx.Node) or node.op != "get_attr":
        return None
    value = module
    for part in node.target.split("."):
        value = getattr(value, part)
    return value


def is_scalar(tensor):
    return tensor is not None and tensor.numel() == 1 and tensor.dtype.is_floating_point


def with_numbers(module, node, shape):
    """Returns the replacement of a node as (kind, target, arguments) of torch.fx; None if the node stays."""
    kind = type(module.get_submodule(node.target)).__name__
    values = [initializer(module, argument) for argument in node.args]
    if kind in ("OnnxReshape", "OnnxExpand"):
        return "call_method", "reshape" if kind == "OnnxReshape" else "expand", (node.args[0], *shape)
    if kind == "OnnxSlice" and all(value is not None for value in values[1:]):
        starts, ends, *more = [value.reshape(-1).tolist() for value in values[1:]]
        axes = more[0] if more else list(range(len(starts)))
        steps = more[1] if len(more) > 1 else [1] * len(starts)
        return "call_function", slices, (node.args[0], starts, ends, axes, steps)
    if kind == "OnnxGather" and values[1] is not None and values[1].ndim == 0:
        return "call_method", "select", (node.args[0], module.get_submodule(node.target)._axis, int(values[1]))
    if kind in ("OnnxBinaryMathOperation", "OnnxPow") and any(map(is_scalar, values)):
        arguments = tuple(float(value) if is_scalar(value) else argument for argument, value in zip(node.args, values))
        return "call_module", node.target, arguments
    return None


def torch_module(onnx_file, inputs):
    """Converts the model. `inputs`: tensors in the model's order; the module is specialized for their shapes."""
    module = onnx2torch.convert(onnx_file).eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    recorder = ShapeRecorder(module)
    recorder.run(*inputs)
    graph = module.graph
    for node in [n for n in graph.nodes if n.op == "call_module"]:
        replacement = with_numbers(module, node, recorder.shapes.get(node))
        if replacement is None:
            continue
        with graph.inserting_after(node):
            node.replace_all_uses_with(graph.create_node(*replacement))
        graph.erase_node(node)
    graph.eliminate_dead_code()
    module.recompile()
    return module
