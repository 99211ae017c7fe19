"""The common calls of ONNX Runtime's InferenceSession.

    import tensorsmith as ort
    session = ort.InferenceSession("model.onnx")
    outputs = session.run(None, {session.get_inputs()[0].name: x})

A model with dimensions that are chosen when it is used is compiled for each choice.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _native, errors
from .dtypes import onnx_runtime_type
from .model import Model, load
from .partition import PartitionedModel
from .sources import ModelSource, model_file, model_name
from .work import compile as compile_model

_log = logging.getLogger("tensorsmith")

_CPU = "CPUExecutionProvider"
_CUDA = "CUDAExecutionProvider"


@dataclass
class SessionOptions:
    """Those that mean something here; others may be set and are not looked at, as those of graph optimizations."""

    intra_op_num_threads: int = 0  #: threads that compute; 0: all cores
    database: str | os.PathLike[str] = "tensorsmith.db"  #: records of `tune`, for a model that is compiled here
    max_compiled_shapes: int = 16  #: of a model with dimensions that are chosen: so many stay compiled


@dataclass(frozen=True)
class NodeArg:
    """An input or an output."""

    name: str
    type: str  #: "tensor(float)", ...
    shape: list[int | str | None]  #: names or None: lengths that are chosen


@dataclass(frozen=True)
class ModelMetadata:
    """What is known of the model."""

    graph_name: str
    producer_name: str = "tensorsmith"


def get_available_providers() -> list[str]:
    """The providers that a session may be asked for."""
    try:
        _native.device("cuda", 0)
    except errors.Error:
        return [_CPU]
    return [_CUDA, _CPU]


class OrtValue:
    """An array, as ONNX Runtime's bindings take it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Of an array in the processor's memory, without a copy."""
        _only_cpu(device_type)
        return OrtValue(array)

    def numpy(self) -> np.ndarray:
        """The array itself."""
        return self._array

    def shape(self) -> list[int]:
        """Its shape."""
        return list(self._array.shape)

    def device_name(self) -> str:
        """Where it lies."""
        return "cpu"

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class IOBinding:
    """Inputs and outputs that stay bound from run to run."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._results: list[np.ndarray] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """An input, read in place at each run."""
        self._inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """An input, read in place at each run."""
        self._inputs[name] = value.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0) -> None:
        """An output that each run makes."""
        _only_cpu(device_type)
        self._outputs[name] = None

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """An output that each run writes in place."""
        self._outputs[name] = value.numpy()

    def clear_binding_inputs(self) -> None:
        """No input is bound."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """No output is bound."""
        self._outputs.clear()

    def get_outputs(self) -> list[OrtValue]:
        """Of the last run, in the order of binding."""
        return [OrtValue(array) for array in self._results]

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """Of the last run, in the order of binding."""
        return list(self._results)


def _only_cpu(device_type: str) -> None:
    if device_type != "cpu":
        raise errors.Unsupported(f"'{device_type}' is not supported: bindings are of the processor's memory", "binding")


class InferenceSession:
    """Runs a compiled model, or compiles an ONNX model when it is made.

    An ONNX model is compiled with the schedules that the database knows (see `tensorsmith.tune`), else untuned. Where
    it has dimensions that are chosen, it is compiled by the first run with each choice, in seconds. Operators
    that cannot be compiled run by ONNX Runtime, where that and onnx are installed; the logger "tensorsmith" says which.

    Args:
        path_or_bytes: a folder of `tune` or `compile`, an ONNX file, its bytes, or an onnx.ModelProto.
        sess_options: a SessionOptions, or ONNX Runtime's own.
        providers: names, or pairs with options: CUDAExecutionProvider and CPUExecutionProvider; the first that can be
            had.
    """

    def __init__(
        self,
        path_or_bytes: ModelSource,
        sess_options: Any = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **_: Any,
    ) -> None:
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._threads = int(getattr(self._options, "intra_op_num_threads", 0))
        self._providers, self._device = _choose(providers, provider_options)
        self._source = path_or_bytes
        self._compiled: dict[tuple[tuple[int, ...], ...], Model | PartitionedModel] = {}
        is_path = isinstance(path_or_bytes, (str, os.PathLike))
        if is_path and os.path.isdir(path_or_bytes):
            self._take(load(path_or_bytes, self._threads, "" if self._device == "local" else self._device))
            return
        self._name = model_name(path_or_bytes)
        if is_path and os.fspath(path_or_bytes).startswith("zoo:"):
            self._take(self._compiled_whole(self._source, None))
            return
        with model_file(path_or_bytes) as path:
            declared = json.loads(_native.declared(path))
        self._inputs = [_node_arg(tensor) for tensor in declared["inputs"]]
        self._outputs = [_node_arg(tensor) for tensor in declared["outputs"]]
        self._chosen = any(not isinstance(d, int) for arg in self._inputs for d in arg.shape)
        if not self._chosen:
            model = self._compile(None)
            if isinstance(model, Model):
                self._take(model)
            else:
                self._compiled[()] = model

    def get_inputs(self) -> list[NodeArg]:
        """The inputs in the model's order."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs in the model's order."""
        return self._outputs

    def get_providers(self) -> list[str]:
        """Where it runs, first choice first."""
        return self._providers

    def get_modelmeta(self) -> ModelMetadata:
        """The model's name."""
        return ModelMetadata(self._name)

    def get_session_options(self) -> Any:
        """As they were given."""
        return self._options

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[np.ndarray]:
        """Runs the model once.

        Args:
            output_names: which outputs are returned; None or none of them: all, in the model's order.
            input_feed: arrays by name.

        Raises:
            errors.InvalidArgument: names, shapes or element types that the model does not have.
        """
        names = [arg.name for arg in self._outputs]
        wanted = list(output_names) if output_names else names
        for name in wanted:
            if name not in names:
                raise errors.InvalidArgument(f"the model has no such output; it has {', '.join(names)}", f"'{name}'")
        outputs = self._for(input_feed).run(input_feed)
        return [outputs[name] for name in wanted]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, binding: IOBinding, run_options: Any = None) -> None:
        """Runs the model once on what is bound."""
        given = {name: array for name, array in binding._outputs.items() if array is not None}
        outputs = self._for(binding._inputs).run(binding._inputs, given)
        for name in binding._outputs:
            if name not in outputs:
                raise errors.InvalidArgument("the model has no such output", f"'{name}'")
        binding._results = [outputs[name] for name in binding._outputs]

    def _take(self, model: Model) -> None:
        self._chosen = False
        self._name = model.name
        self._inputs = [NodeArg(i.name, onnx_runtime_type(i.dtype), list(i.shape)) for i in model.inputs]
        self._outputs = [NodeArg(o.name, onnx_runtime_type(o.dtype), list(o.shape)) for o in model.outputs]
        self._compiled[()] = model

    def _for(self, feed: Mapping[str, Any]) -> Model | PartitionedModel:
        """The model compiled for the shapes of the inputs."""
        if not self._chosen:
            return self._compiled[()]
        shapes: dict[str, tuple[int, ...]] = {}
        for arg in self._inputs:
            if arg.name not in feed:
                raise errors.InvalidArgument("is missing", f"input '{arg.name}'")
            shapes[arg.name] = tuple(np.shape(feed[arg.name]))
        key = tuple(shapes.values())
        if key not in self._compiled:
            while len(self._compiled) >= max(int(getattr(self._options, "max_compiled_shapes", 16)), 1):
                del self._compiled[next(iter(self._compiled))]
            chosen = {a.name: shapes[a.name] for a in self._inputs if not all(isinstance(d, int) for d in a.shape)}
            self._compiled[key] = self._compile(chosen)
        else:  # the one used longest ago goes first
            self._compiled[key] = self._compiled.pop(key)
        return self._compiled[key]

    def _compile(self, shapes: Mapping[str, Sequence[int]] | None) -> Model | PartitionedModel:
        try:
            return self._compiled_whole(self._source, shapes)
        except errors.Unsupported as error:
            if self._device != "local":
                raise
            with model_file(self._source) as path:
                try:
                    import onnx
                except ImportError:
                    raise error from None
                proto = onnx.load(path)
            given = {arg.name: tuple(arg.shape) for arg in self._inputs}
            given.update({name: tuple(shape) for name, shape in (shapes or {}).items()})
            return PartitionedModel(
                proto, given, lambda part: self._compiled_whole(part, None), self._threads, because=error
            )

    def _compiled_whole(self, model: ModelSource, shapes: Mapping[str, Sequence[int]] | None) -> Model:
        # Loaded, a model needs its folder no more.
        with tempfile.TemporaryDirectory(prefix="tensorsmith-") as folder:
            compiled = compile_model(
                model,
                Path(folder) / "model",
                shapes=shapes,
                device=self._device,
                threads=0 if self._device != "local" else self._threads,
                database=getattr(self._options, "database", "tensorsmith.db"),
            )
            return compiled.load(self._threads, "" if self._device == "local" else self._device)


def _node_arg(tensor: dict[str, Any]) -> NodeArg:
    return NodeArg(tensor["name"], onnx_runtime_type(tensor["dtype"]), tensor["shape"] or [])


def _choose(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    provider_options: Sequence[Mapping[str, Any]] | None,
) -> tuple[list[str], str]:
    """The providers that can be had, and the device of the first."""
    if not providers:
        return [_CPU], "local"
    options = list(provider_options or []) + [{}] * len(providers)
    found: list[tuple[str, str]] = []
    for provider, given in zip(providers, options):
        name, more = (provider, {}) if isinstance(provider, str) else provider
        if name == _CPU:
            found.append((name, "local"))
        elif name == _CUDA:
            place = f"cuda:{int({**given, **more}.get('device_id', 0))}"
            try:
                _native.device(place, 0)
            except errors.Error as error:
                _log.warning("%s cannot be had: %s", name, error)
                continue
            found.append((name, place))
        else:
            _log.warning("%s is not known here", name)
    if not found:
        raise errors.InvalidArgument(
            f"none of them is here; there are {', '.join(get_available_providers())}", "providers"
        )
    return [name for name, _ in found], found[0][1]
