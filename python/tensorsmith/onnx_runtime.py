"""Runs models that are not compiled, or not yet, with sessions of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import errors
from .dtypes import onnx_runtime_type
from .sources import ModelSource, model_file

Run = Callable[[Mapping[str, Any]], dict[str, np.ndarray]]


def session_of_onnx_runtime(model: str | bytes, options: Any) -> Any:
    """Returns a session for the model's file or bytes.

    Raises:
        errors.Unsupported: ONNX Runtime cannot run the model.
    """
    import onnxruntime

    options.log_severity_level = 4  # failures are reported only once, by the exception
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has no exception type of its own for these
        line = " ".join(str(error).split())
        raise errors.Unsupported(f"ONNX Runtime cannot run it either: {line}", "model") from error


def runner(session: Any) -> Run:
    """Returns a function that runs the session once."""
    names = [output.name for output in session.get_outputs()]

    def run(feed: Mapping[str, Any]) -> dict[str, np.ndarray]:
        arrays = {name: _array(value) for name, value in feed.items()}
        return dict(zip(names, session.run(names, arrays)))

    return run


def results_in(results: Mapping[str, Any], outputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the results, copied into the arrays of `outputs` where it has one.

    Raises:
        errors.InvalidArgument: an array has another shape or element type than the result.
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
    """Returns a function that runs the whole model; None if ONNX Runtime is not installed or cannot run the model."""
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
    """Runs a model with ONNX Runtime while it is being compiled.

    Args:
        run: runs the model with ONNX Runtime.
        ran: called after each run by ONNX Runtime.
        compiled: waits for the compiled model and returns it. If ONNX Runtime refuses a run, the compiled model runs
            it, or raises the error.
    """

    def __init__(self, run: Run, ran: Callable[[], None], compiled: Callable[[], Any]) -> None:
        self._run = run
        self._ran = ran
        self._compiled = compiled

    def run(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """See Model.run."""
        try:
            results = self._run(inputs)
        except Exception:  # ONNX Runtime has no exception type of its own for these
            return self._compiled().run(inputs, outputs)
        self._ran()
        return results_in(results, outputs)


def _array(value: Any) -> np.ndarray:
    """Returns numbers and lists as arrays, and tensors of torch without their gradients."""
    if isinstance(value, np.ndarray):  # includes arrays of strings, which DLPack does not support
        return value
    if getattr(value, "requires_grad", False):
        value = value.detach()
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
