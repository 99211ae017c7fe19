"""Compiled models beside other engines."""

from __future__ import annotations

import os
from collections.abc import Sequence

from . import errors
from .peers.compare import EngineComparison, Settings, compare
from .peers.engines import PEERS
from .peers.own_model import OwnModel
from .sources import ModelSource, model_file
from .work import CompiledModel, TuneResult


def compare_engines(
    model: ModelSource,
    compiled: str | os.PathLike[str] | TuneResult | CompiledModel,
    *,
    engines: str | Sequence[str] = "onnxruntime",
    threads: int = 0,
    rounds: int = 15,
    slice_seconds: float = 0.1,
    seed: int = 0,
    rtol: float = 1e-3,
    atol: float = 1e-4,
) -> list[EngineComparison]:
    """Times a compiled model and other engines in turns, after it compared their outputs. The engines prepare for the
    shapes that the model was compiled for, with the same threads and without lower precision. `python -m
    tensorsmith.peers` does the same for many models.

    Args:
        model: the ONNX file that was compiled, its bytes, or an onnx.ModelProto.
        compiled: what `tune` or `compile` returned or wrote, for this machine's processor.
        engines: "onnxruntime", "openvino", "inductor" (of PyTorch), "litert". They have to be installed.
        threads: of every engine; 0: one a core.
        rounds, slice_seconds: in each round every engine runs for so long.
        seed: of the random inputs.
        rtol, atol: how far outputs may differ, as of numpy.allclose.

    Returns:
        One comparison for each engine, in their order. `ratio` above 1 means that Tensorsmith is faster; where an
        engine is not installed, does not take the model or has other outputs, `problem` says so and the times are
        None.
    """
    wanted = [engines] if isinstance(engines, str) else list(engines)
    for name in wanted:
        if name not in PEERS:
            raise errors.InvalidArgument(f"there is no engine '{name}'; there are {', '.join(PEERS)}", "engines")
    for name, number in (("rounds", rounds), ("slice_seconds", slice_seconds)):
        if number <= 0:
            raise errors.InvalidArgument(f"{number} is not above 0", name)
    if isinstance(model, (str, os.PathLike)) and os.fspath(model).startswith("zoo:"):
        raise errors.InvalidArgument(
            "other engines need an ONNX file: write it with `tensorsmith zoo export`", os.fspath(model)
        )
    directory = compiled.directory if isinstance(compiled, (TuneResult, CompiledModel)) else os.fspath(compiled)
    ours = OwnModel(directory, threads)
    settings = Settings(rounds, slice_seconds, seed=seed, rtol=rtol, atol=atol)
    with model_file(model) as path:
        if not os.path.isfile(path):
            raise errors.NotFound("no such file", path)
        return compare(ours, path, wanted, ours.num_threads, settings)
