"""ONNX Runtime's sessions, for what is not compiled, or not yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import errors
from .dtypes import onnx_runtime_type
from .sources import ModelSource, model_file

Run = Callable[[Mapping[str, Any]], dict[str, np.ndarray]]


def session_of_onnx_runtime(model: str | bytes, options: Any) -> Any:
    """A session of the model's file or bytes.

    Raises:
        errors.Unsupported: ONNX Runtime does not run it.
    """
    import onnxruntime

    options.log_severity_level = 4  # failures are reported only once, by the exception
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has no exception type of its own for these
        line = " ".join(str(error).split())
        raise errors.Unsupported(f"ONNX Runtime does not run it either: {line}", "model") from error


def runner(session: Any) -> Run:
    """Runs a session once."""
    names = [output.name for output in session.get_outputs()]

    def run(feed: Mapping[str, Any]) -> dict[str, np.ndarray]:
        arrays = {name: _array(value) for name, value in feed.items()}
        return dict(zip(names, session.run(names, arrays)))

    return run


def results_in(results: Mapping[str, Any], outputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The results; those that `outputs` has an array for are in that array.

    Raises:
        errors.InvalidArgument: an array of another shape or element type.
    """
    found = dict(results)
    for name, array in (outputs or {}).items():
        if array is None or name not in found:
            continue
        result = np.asarray(found[name])
        if array.shape != result.shape or array.dtype != result.dtype:
            raise errors.InvalidArgument(
                f"has {array.dtype} of the shape {array.shape}, the model gives {result.dtype} of {result.shape}",
                f"output '{name}'",
            )
        np.copyto(array, result)
        found[name] = array
    return found


def run_of_onnx_runtime(source: ModelSource, threads: int) -> Run | None:
    """What runs the whole model, or None where ONNX Runtime is not installed or does not take the model."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # another thread compiles meanwhile
    try:
        with model_file(source) as path:
            session = session_of_onnx_runtime(path, options)
    except errors.Error:
        return None
    # ONNX Runtime represents bf16 arrays differently.
    if any(value.type == onnx_runtime_type("bf16") for value in [*session.get_inputs(), *session.get_outputs()]):
        return None
    return runner(session)


class MeanwhileModel:
    """Runs a model by ONNX Runtime while it is being compiled.

    Args:
        run: of ONNX Runtime.
        ran: called after each run of it.
        compiled: waits for the compiled model. It runs what ONNX Runtime refuses, and says what is wrong.
    """

    def __init__(self, run: Run, ran: Callable[[], None], compiled: Callable[[], Any]) -> None:
        self._run = run
        self._ran = ran
        self._compiled = compiled

    def run(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As Model.run."""
        try:
            results = self._run(inputs)
        except Exception:  # ONNX Runtime has no exception type of its own for these
            return self._compiled().run(inputs, outputs)
        self._ran()
        return results_in(results, outputs)


def _array(value: Any) -> np.ndarray:
    """Numbers and lists as arrays; of torch's tensors what is behind a gradient."""
    if isinstance(value, np.ndarray):  # includes arrays of strings, which DLPack does not support
        return value
    if getattr(value, "requires_grad", False):
        value = value.detach()
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
