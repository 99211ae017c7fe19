"""`torch.compile(model, backend="tensorsmith")`."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import errors
from .model import Model
from .torch_export import from_torch
from .work import compile as compile_model
from .work import tune

_log = logging.getLogger("tensorsmith")


# Valid keys of torch.compile(..., options={...}).
_COMPILE_OPTIONS = {"database", "device", "threads", "untuned", "winograd"}
_TUNE_OPTIONS = {"seconds", "trials", "until_gain", "progress", "seed"}


def tensorsmith(
    module: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any
) -> Callable[..., Any]:
    """Compiles a captured graph for torch.compile. A graph that cannot be compiled is run by torch, and a warning of
    the logger "tensorsmith" gives the reason. Current values of parameters and buffers are compiled in; when one of
    them has changed, torch runs the graph.

    Args:
        module, example_inputs: the graph, and tensors with the shapes that it is compiled for.
        options: database, device, threads, untuned and winograd as for `compile`; with seconds, trials or until_gain
            each graph is tuned.

    Raises:
        errors.InvalidArgument: an unknown option.
    """
    import torch

    given = dict(options or {})
    for name in given:
        if name not in _COMPILE_OPTIONS | _TUNE_OPTIONS:
            known = ", ".join(sorted(_COMPILE_OPTIONS | _TUNE_OPTIONS))
            raise errors.InvalidArgument(f"there is no such option; there are {known}", f"options['{name}']")
    by_torch = module.forward
    try:
        for value in example_inputs:
            if not isinstance(value, torch.Tensor):
                raise errors.Unsupported(
                    "its shapes change from call to call: use torch.compile(..., dynamic=False)", "graph"
                )
            if value.device.type != "cpu":
                raise errors.Unsupported("its tensors are not in the processor's memory", "graph")
            if value.requires_grad and torch.is_grad_enabled():
                raise errors.Unsupported("it needs gradients: call the model under torch.no_grad()", "graph")
        fixed = _fixed_inputs(module, example_inputs)
        free = [i for i in range(len(example_inputs)) if i not in fixed]
        model = _compiled(module, example_inputs, fixed, free, given)
    except errors.Error as error:
        _log.warning("torch itself runs a graph: %s", error)
        return by_torch
    # An input that nothing reads may be missing.
    read = [(info.name, free[int(info.name.removeprefix(_INPUT))]) for info in model.inputs]
    versions = [(i, example_inputs[i].data_ptr(), example_inputs[i]._version) for i in sorted(fixed)]
    changed = False

    def run(*args: Any) -> Any:
        nonlocal changed
        if changed or any(args[i].data_ptr() != at or args[i]._version != v for i, at, v in versions):
            if not changed:
                _log.warning("torch itself runs a graph: its parameters have changed since it was compiled")
            changed = True
            return by_torch(*args)
        outputs = model.run({name: args[place].detach().contiguous() for name, place in read})
        return tuple(torch.from_dlpack(outputs[info.name]) for info in model.outputs)

    return run


_INPUT = "input_"


def _fixed_inputs(module: Any, example_inputs: Sequence[Any]) -> set[int]:
    """Returns the indices of parameters and buffers, which torch passes to the graph as inputs."""
    import torch

    fixed = set()
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for i, (node, value) in enumerate(zip(placeholders, example_inputs)):
        told = node.meta.get("tensor_dict", {})
        if isinstance(value, torch.nn.Parameter) or "_dynamo_static_input_type" in told:
            fixed.add(i)
    return fixed


def _compiled(
    module: Any, example_inputs: Sequence[Any], fixed: set[int], free: Sequence[int], options: dict[str, Any]
) -> Model:
    import torch

    class Graph(torch.nn.Module):
        """The graph with the parameters inserted as its inputs."""

        def __init__(self) -> None:
            super().__init__()
            self.graph = module
            for i in fixed:
                self.register_buffer(f"fixed_{i}", example_inputs[i].detach())

        def forward(self, *args: Any) -> Any:
            values = dict(zip(free, args))
            values.update({i: getattr(self, f"fixed_{i}") for i in fixed})
            return self.graph(*(values[i] for i in range(len(values))))

    proto = from_torch(Graph().eval(), tuple(example_inputs[i] for i in free))
    # Renamed by their order, so that the inputs that remain can be identified.
    for number, value in enumerate(list(proto.graph.input)):
        _rename(proto.graph, value.name, f"{_INPUT}{number}")
    with tempfile.TemporaryDirectory(prefix="tensorsmith-") as folder:
        output = Path(folder) / "model"
        threads = int(options.get("threads", 0))
        if any(options.get(name) for name in ("seconds", "trials", "until_gain")):
            options = {name: value for name, value in options.items() if name != "untuned"}
            return tune(proto, output, **options).load(threads)
        options = {name: value for name, value in options.items() if name not in _TUNE_OPTIONS}
        return compile_model(proto, output, **options).load(threads)


def _rename(graph: Any, old: str, new: str) -> None:
    for value in [*graph.input, *graph.output]:
        if value.name == old:
            value.name = new
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name == old:
                node.input[i] = new
