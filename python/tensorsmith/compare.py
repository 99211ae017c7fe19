"""Comparison of compiled models with other engines."""

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
    """Compares the outputs of a compiled model and of other engines, and then times all of them in turns. The engines
    prepare for the shapes that the model was compiled for, use the same number of threads and do not lower the
    precision. `python -m tensorsmith.peers` compares many models.

    Args:
        model: the ONNX file that was compiled, its bytes, or an onnx.ModelProto.
        compiled: result or folder of `tune` or `compile`, for this machine's processor.
        engines: "onnxruntime", "openvino", "inductor" (of PyTorch), "litert". They must be installed.
        threads: number of threads of every engine; 0: one per core.
        rounds, slice_seconds: number of rounds, and the seconds that each engine runs in a round.
        seed: seed of the random inputs.
        rtol, atol: tolerances of the outputs, as for numpy.allclose.

    Returns:
        One comparison for each engine, in their order. A `ratio` above 1 means that Tensorsmith is faster. If an
        engine is not installed, cannot run the model or has other outputs, `problem` gives the reason and the times
        are None.
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
