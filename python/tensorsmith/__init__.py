"""Tensorsmith: trained neural networks, faster on the machine you have.

    import tensorsmith
    tuned = tensorsmith.tune("model.onnx", seconds=60, progress=True)
    print(f"{tuned.speedup:.2f} times as fast as untuned")
    outputs = tuned.load().run({"x": image})

`tune` searches fast schedules by measuring, `compile` uses known schedules without measuring, `load` loads the
compiled models that these two write, and `predict` predicts how fast a model would be on another device.
`InferenceSession` has the common calls of ONNX Runtime's class. `torch.compile(model, backend="tensorsmith")` works
if torch and onnxscript are installed.
"""

from . import errors
from ._native import __version__
from .annotation import KernelTime, annotate
from .bindings import IOBinding, OrtValue
from .commands import command_path, evaluate, run_command, train
from .compare import compare_engines
from .compiled_shapes import SessionStatistics
from .cost_model import CostModel, Programs, serve
from .database import Database
from .errors import Error
from .model import Model, load
from .peers.compare import EngineComparison
from .session import InferenceSession, NodeArg, SessionOptions, get_available_providers
from .torch_export import from_torch
from .work import (
    CompiledModel,
    Prediction,
    TaskChoice,
    TaskPrediction,
    TaskReport,
    TuneResult,
    UnmeasuredModel,
    compile,
    compile_unmeasured,
    device,
    predict,
    tasks,
    tune,
)

__all__ = [
    "CompiledModel",
    "CostModel",
    "Database",
    "EngineComparison",
    "Error",
    "IOBinding",
    "InferenceSession",
    "KernelTime",
    "Model",
    "NodeArg",
    "OrtValue",
    "Prediction",
    "Programs",
    "SessionOptions",
    "SessionStatistics",
    "TaskChoice",
    "TaskPrediction",
    "TaskReport",
    "TuneResult",
    "UnmeasuredModel",
    "__version__",
    "annotate",
    "command_path",
    "compare_engines",
    "compile",
    "compile_unmeasured",
    "device",
    "errors",
    "evaluate",
    "from_torch",
    "get_available_providers",
    "load",
    "predict",
    "run_command",
    "serve",
    "tasks",
    "train",
    "tune",
]
