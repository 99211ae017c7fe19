"""The common calls of ONNX Runtime's InferenceSession.

    import tensorsmith as ort
    session = ort.InferenceSession("model.onnx")
    outputs = session.run(None, {session.get_inputs()[0].name: x})

A model with dimensions that are chosen at run time is compiled for each choice. Compiled models are kept on disk,
where later processes find them. If ONNX Runtime is installed, it runs the model until the compiled model is ready.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _native, errors
from .bindings import IOBinding
from .compiled_cache import DEFAULT_BYTES, CompiledCache, cache_folder
from .compiled_shapes import CompiledShapes, CompileSettings, SessionStatistics
from .dtypes import onnx_runtime_type
from .model import Model, load
from .model_key import declared
from .onnx_runtime import MeanwhileModel
from .partition import PartitionedModel
from .sources import ModelSource, model_file, model_name

_log = logging.getLogger("tensorsmith")

_CPU = "CPUExecutionProvider"
_CUDA = "CUDAExecutionProvider"


@dataclass
class SessionOptions:
    """Supported options. Options of ONNX Runtime that have no meaning here, such as graph optimizations, are
    ignored."""

    intra_op_num_threads: int = 0  #: number of threads; 0: one per core
    database: str | os.PathLike[str] = "tensorsmith.db"  #: records of `tune`, for models that are compiled here
    max_compiled_shapes: int = 16  #: compiled models in memory, for a model with dimensions that are chosen at run time
    #: ONNX Runtime, if installed, runs the model while it is being compiled; False: such a run waits
    compile_in_background: bool = True
    #: folder of compiled models; None: the variable TENSORSMITH_CACHE, else ~/.cache/tensorsmith; "": none
    cache_folder: str | os.PathLike[str] | None = None
    cache_bytes: int = DEFAULT_BYTES  #: size limit of the cache; the least recently used models are removed first
    free_dimensions: dict[str, int] = field(default_factory=dict)  #: lengths of dimensions by name

    def add_free_dimension_override_by_name(self, name: str, length: int) -> None:
        """Sets the length of all dimensions with this name."""
        self.free_dimensions[name] = length


@dataclass(frozen=True)
class NodeArg:
    """An input or an output."""

    name: str
    type: str  #: such as "tensor(float)"
    shape: list[int | str | None]  #: a name or None is a length that is chosen at run time


@dataclass(frozen=True)
class ModelMetadata:
    """Properties of the model."""

    graph_name: str
    producer_name: str = "tensorsmith"


def get_available_providers() -> list[str]:
    """Returns the providers that a session can use."""
    try:
        _native.device("cuda", 0)
    except errors.Error:
        return [_CPU]
    return [_CUDA, _CPU]


class InferenceSession:
    """Runs a compiled model, or compiles an ONNX model when the session is made.

    An ONNX model is compiled with the schedules in the database (see `tensorsmith.tune`), or untuned if it has none.
    If the model has dimensions that are chosen at run time, it is compiled for each choice. That takes seconds, so
    compiled models are kept on disk for later processes, and if the package onnxruntime is installed, ONNX Runtime
    runs the model until the compiled model is ready. Its results may differ in the last digits. With
    `compile_in_background=False` each run waits for the compiled model, and equal inputs have equal results from the
    first run on. ONNX Runtime also runs operators that cannot be compiled, if it and onnx are installed. The logger
    "tensorsmith" reports what is done.

    Args:
        path_or_bytes: a folder of `tune` or `compile`, an ONNX file, its bytes, or an onnx.ModelProto.
        sess_options: a SessionOptions, or ONNX Runtime's own.
        providers: names, or pairs with options, of CUDAExecutionProvider and CPUExecutionProvider; the session uses
            the first one that is available.
        compile_in_background: replaces the option of the SessionOptions.
    """

    def __init__(
        self,
        path_or_bytes: ModelSource,
        sess_options: Any = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        compile_in_background: bool | None = None,
        **_: Any,
    ) -> None:
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._providers, self._device = _choose(providers, provider_options)
        self._model: Model | None = None
        self._shapes: CompiledShapes | None = None
        self._chosen: list[str] = []
        self._given: dict[str, tuple[int, ...]] = {}
        fixed: dict[str, tuple[int, ...]] = {}
        threads = int(self._option("intra_op_num_threads"))
        is_path = isinstance(path_or_bytes, (str, os.PathLike))
        if is_path and os.path.isdir(path_or_bytes):
            self._take(load(path_or_bytes, threads, "" if self._device == "local" else self._device))
            return
        is_zoo = is_path and os.fspath(path_or_bytes).startswith("zoo:")
        source = os.path.abspath(path_or_bytes) if is_path and not is_zoo else path_or_bytes
        self._name = model_name(source)
        if not is_zoo:
            with model_file(source) as path:
                told = declared(path)
            lengths = getattr(self._options, "free_dimensions", {})
            self._inputs = [_node_arg(tensor, lengths) for tensor in told["inputs"]]
            self._outputs = [_node_arg(tensor, lengths) for tensor in told["outputs"]]
            # Inputs whose shapes are chosen by the runs, inputs whose shapes are set by the options, and the others.
            for arg, tensor in zip(self._inputs, told["inputs"]):
                if tensor["shape"] is None or not _is_fixed(arg.shape):
                    self._chosen.append(arg.name)
                elif not _is_fixed(tensor["shape"]):
                    self._given[arg.name] = tuple(arg.shape)
                else:
                    fixed[arg.name] = tuple(arg.shape)
        folder = cache_folder(self._option("cache_folder"))
        if compile_in_background is None:
            compile_in_background = bool(self._option("compile_in_background"))
        settings = CompileSettings(
            threads=threads,
            device=self._device,
            database=os.fspath(self._option("database")),
            keep=int(self._option("max_compiled_shapes")),
            cache=CompiledCache(folder, int(self._option("cache_bytes"))) if folder is not None else None,
            in_background=compile_in_background,
            is_one=not self._chosen,
        )
        self._shapes = CompiledShapes(source, self._name, fixed, settings)
        if not self._chosen:
            model = self._shapes.model_for(self._given)
            if isinstance(model, Model) and is_zoo:
                self._take(model)

    def get_inputs(self) -> list[NodeArg]:
        """Returns the inputs in the model's order."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """Returns the outputs in the model's order."""
        return self._outputs

    def get_providers(self) -> list[str]:
        """Returns the session's providers, the preferred one first."""
        return self._providers

    def get_modelmeta(self) -> ModelMetadata:
        """Returns the model's name."""
        return ModelMetadata(self._name)

    def get_session_options(self) -> Any:
        """Returns the given options."""
        return self._options

    def statistics(self) -> SessionStatistics:
        """Returns the numbers of models that were compiled or loaded from disk, and of runs by ONNX Runtime."""
        return self._shapes.statistics() if self._shapes is not None else SessionStatistics()

    def wait_until_compiled(self, timeout: float | None = None) -> bool:
        """Waits until nothing is being compiled in the background. Returns False after `timeout` seconds."""
        return self._shapes is None or self._shapes.wait(timeout)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[np.ndarray]:
        """Runs the model once.

        Args:
            output_names: the outputs to return; None or an empty list: all, in the model's order.
            input_feed: arrays by name.

        Raises:
            errors.InvalidArgument: the model has no such name, or another shape or element type.
        """
        names = [arg.name for arg in self._outputs]
        wanted = list(output_names) if output_names else names
        for name in wanted:
            if name not in names:
                raise errors.InvalidArgument(f"the model has no such output; it has {', '.join(names)}", f"'{name}'")
        outputs = self._for(input_feed).run(input_feed)
        return [outputs[name] for name in wanted]

    def io_binding(self) -> IOBinding:
        """Returns an object that binds inputs and outputs for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, binding: IOBinding, run_options: Any = None) -> None:
        """Runs the model once on the bound inputs and outputs."""
        given = {name: array for name, array in binding._outputs.items() if array is not None}
        outputs = self._for(binding._inputs).run(binding._inputs, given)
        for name in binding._outputs:
            if name not in outputs:
                raise errors.InvalidArgument("the model has no such output", f"'{name}'")
        binding._results = [outputs[name] for name in binding._outputs]

    def _option(self, name: str) -> Any:
        """Returns an option; ONNX Runtime's options lack some, which then have their defaults."""
        return getattr(self._options, name, getattr(SessionOptions, name))

    def _take(self, model: Model) -> None:
        """Uses a compiled model, which knows its inputs and outputs."""
        self._model = model
        self._name = model.name
        self._inputs = [NodeArg(i.name, onnx_runtime_type(i.dtype), list(i.shape)) for i in model.inputs]
        self._outputs = [NodeArg(o.name, onnx_runtime_type(o.dtype), list(o.shape)) for o in model.outputs]

    def _for(self, feed: Mapping[str, Any]) -> Model | PartitionedModel | MeanwhileModel:
        """Returns a model that can run with the shapes of these inputs."""
        if self._model is not None:
            return self._model
        assert self._shapes is not None
        shapes = dict(self._given)
        for name in self._chosen:
            if name not in feed:
                raise errors.InvalidArgument("is missing", f"input '{name}'")
            shapes[name] = tuple(np.shape(feed[name]))
        return self._shapes.model_for(shapes)


def _is_fixed(shape: Sequence[Any] | None) -> bool:
    return shape is not None and all(isinstance(length, int) for length in shape)


def _node_arg(tensor: dict[str, Any], lengths: Mapping[str, int]) -> NodeArg:
    shape = [lengths.get(length, length) for length in tensor["shape"] or []]
    return NodeArg(tensor["name"], onnx_runtime_type(tensor["dtype"]), shape)


def _choose(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    provider_options: Sequence[Mapping[str, Any]] | None,
) -> tuple[list[str], str]:
    """Returns the available providers, and the device of the first one."""
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
                _log.warning("%s is not available: %s", name, error)
                continue
            found.append((name, place))
        else:
            _log.warning("%s is not a known provider", name)
    if not found:
        raise errors.InvalidArgument(
            f"none of them is here; there are {', '.join(get_available_providers())}", "providers"
        )
    return [name for name, _ in found], found[0][1]
