"""Models in different forms: files, networks of the zoo, ONNX messages, programs of torch."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import errors

# A file, "zoo:NAME", bytes of an ONNX file, an onnx.ModelProto, or the result of `from_torch`.
ModelSource = Any


def model_name(model: ModelSource) -> str:
    """Returns the name for messages and for the default folder of the compiled model."""
    if isinstance(model, (str, os.PathLike)):
        text = os.fspath(model)
        if text.startswith("zoo:"):
            return text[4:].replace(":", "-")
        path = Path(text)
        folder = path.absolute().parent.name
        return folder if path.name == "model.onnx" and folder else path.stem
    graph = getattr(model, "graph", None)
    name = getattr(graph, "name", None)
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name) if name else "model"


@contextlib.contextmanager
def model_file(model: ModelSource) -> Iterator[str]:
    """Yields the model's path; a model in memory is written to a temporary file that exists meanwhile."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    if isinstance(model, (bytes, bytearray, memoryview)):
        with tempfile.TemporaryDirectory(prefix="tensorsmith-") as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model)
            yield str(path)
        return
    if hasattr(model, "SerializeToString"):
        import onnx

        with tempfile.TemporaryDirectory(prefix="tensorsmith-") as folder:
            path = Path(folder) / "model.onnx"
            if model.ByteSize() >= 2**31 - 1:  # the size limit of a message
                onnx.save_model(model, str(path), save_as_external_data=True, location="weights.bin")
            else:
                path.write_bytes(model.SerializeToString())
            yield str(path)
        return
    raise errors.InvalidArgument(
        f"{type(model).__name__} is no model: give the path of an ONNX file, 'zoo:NAME', the bytes of an ONNX file, "
        "an onnx.ModelProto, or what from_torch() makes of a program of torch",
        "model",
    )
