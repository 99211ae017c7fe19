"""ONNX files with the time of each node, for Netron and other viewers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _native, errors
from .dtypes import aligned_empty, numpy_dtype, random_array
from .sources import ModelSource, model_file
from .work import import_of

_RUNS = 20


@dataclass(frozen=True)
class KernelTime:
    """A kernel call in a run of the model."""

    task: str
    seconds: float  #: mean over several runs
    nodes: tuple[str, ...]  #: nodes of the ONNX file that it computes, the last one first


def annotate(
    model: ModelSource,
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    threads: int = 0,
    device: str = "local",
) -> list[KernelTime]:
    """Measures a compiled model and writes the ONNX file that it was compiled from with the times of its kernels.

    The times are in `metadata_props` of nodes: the last node of each kernel has "tensorsmith.seconds",
    "tensorsmith.share" (of a run) and "tensorsmith.kernel", and the other nodes that the kernel computes have
    "tensorsmith.fused_into". Needs the package onnx.

    Args:
        model, shapes, dims, device: the values that the model was compiled with.
        directory: the compiled model.
        output: the file to write; it includes weights that the model has in other files.
        threads: number of threads; 0: all cores.

    Returns:
        The kernels in their order in a run.

    Raises:
        errors.Mismatch: the directory was compiled from another model, or for other shapes or another device.
    """
    try:
        import onnx
    except ImportError as error:
        raise errors.NotInstalled("onnx is not installed: pip install onnx", "annotate") from error
    with model_file(model) as path:
        text = _native.tasks(path, import_of(shapes, dims), device=device)
        proto = onnx.load(path)
    calls = json.loads(text)["calls"]
    times = _measured(os.fspath(directory), threads)
    if [call["task"] for call in calls] != [task for task, _ in times]:
        raise errors.Mismatch("is not compiled from this model with these shapes for this device", os.fspath(directory))
    made_by = {name: node for node in proto.graph.node for name in node.output if name}
    total = sum(seconds for _, seconds in times)
    kernels = []
    for call, (task, seconds) in zip(calls, times):
        nodes = _nodes(call, made_by)
        kernels.append(KernelTime(task, seconds, tuple(node.name or node.output[0] for node in nodes)))
        for place, node in enumerate(nodes):
            if place > 0:
                _set(node, "tensorsmith.fused_into", nodes[0].name or nodes[0].output[0])
                continue
            known = {entry.key: entry.value for entry in node.metadata_props}
            whole = seconds + float(known.get("tensorsmith.seconds", 0))  # parts of a batch are separate calls
            _set(node, "tensorsmith.seconds", f"{whole:.9f}")
            _set(node, "tensorsmith.share", f"{100 * whole / total:.1f} %")
            _set(node, "tensorsmith.kernel", task)
    onnx.save(proto, os.fspath(output))
    return kernels


def _measured(directory: str, threads: int) -> list[tuple[str, float]]:
    native = _native.Model(directory, threads, "", True)
    arrays = [random_array(shape, dtype) for _, dtype, shape in native.inputs]
    outputs = [aligned_empty(shape, numpy_dtype(dtype)) for _, dtype, shape in native.outputs]
    native.run(arrays, outputs)
    native.reset_profile()
    for _ in range(_RUNS):
        native.run(arrays, outputs)
    return native.calls()


def _nodes(call: dict[str, Any], made_by: dict[str, Any]) -> list[Any]:
    """Returns the nodes between a kernel's inputs and outputs, beginning at the outputs."""
    seen, found = set(call["inputs"]), []
    waiting = [name for name in call["outputs"] if name not in seen]
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in made_by:
            continue
        seen.add(name)
        node = made_by[name]
        if not any(node is known for known in found):
            found.append(node)
        waiting += [value for value in node.input if value]
    return found


def _set(node: Any, key: str, value: str) -> None:
    for entry in node.metadata_props:
        if entry.key == key:
            entry.value = value
            return
    entry = node.metadata_props.add()
    entry.key, entry.value = key, value
