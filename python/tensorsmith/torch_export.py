"""Exports programs of torch as ONNX models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors

if TYPE_CHECKING:
    import onnx


def from_torch(program: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> onnx.ModelProto:
    """Exports a program as an ONNX model for `tune`, `compile` and `predict`.

    Args:
        program: a torch.export.ExportedProgram, or a torch.nn.Module with
        args, kwargs: example inputs of the module.

    Raises:
        errors.Unsupported: torch cannot export the program, or lacks a package for exporting.
    """
    try:
        import torch
    except ImportError as error:
        raise errors.NotInstalled("torch is not installed: pip install tensorsmith[torch]", "from_torch") from error
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise errors.Unsupported(
            "torch exports to ONNX with onnxscript: pip install tensorsmith[torch]", "from_torch"
        ) from error
    if not isinstance(program, (torch.nn.Module, torch.export.ExportedProgram)):
        raise errors.InvalidArgument(
            f"{type(program).__name__} is neither an ExportedProgram nor a Module", "from_torch"
        )
    try:
        exported = torch.onnx.export(program, args, kwargs=kwargs, dynamo=True, verbose=False)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise errors.Unsupported(f"torch cannot export it to ONNX: {lines[0].strip()}", "from_torch") from error
    assert exported is not None
    return exported.model_proto
