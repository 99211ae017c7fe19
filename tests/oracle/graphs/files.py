"""Files of a case: model.onnx, inputs and expected outputs as ONNX test data, case.json."""

import json
import pathlib

import numpy as np
import onnx

from . import dtypes as d
from .builder import make_tensor
from .oracles import NotComputed
from .truth import GraphTruth


def to_array(tensor):
    if tensor.data_type == d.TO_ONNX[d.BF16]:
        if tensor.raw_data:
            return np.frombuffer(tensor.raw_data, d.BF16).reshape(tuple(tensor.dims))
        return np.array(tensor.int32_data, dtype=np.uint16).view(d.BF16).reshape(tuple(tensor.dims))
    return onnx.numpy_helper.to_array(tensor)


def opset_of(model):
    return next(o.version for o in model.opset_import if o.domain == "")


def evaluate(model, inputs, accepted, seed=0):
    """Returns the GraphTruth of a model, evaluated from the file alone."""
    truth = GraphTruth(opset_of(model), accepted, seed)
    for tensor in model.graph.initializer:
        truth.define(tensor.name, to_array(tensor))
    for name, array in inputs.items():
        truth.define(name, array)
    for node in model.graph.node:
        if node.op_type == "Constant":
            truth.define(node.output[0], to_array(node.attribute[0].t))
        else:
            truth.add(node)
    return truth


def save(folder, model, inputs, expected, facts=None):
    """Saves a case. expected: the outputs by name; facts: a description of the failure."""
    folder = pathlib.Path(folder)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for i, info in enumerate(model.graph.input):
        (data / f"input_{i}.pb").write_bytes(make_tensor(inputs[info.name], info.name).SerializeToString())
    for i, info in enumerate(model.graph.output):
        (data / f"output_{i}.pb").write_bytes(make_tensor(expected[info.name], info.name).SerializeToString())
    if facts is None:
        return
    (folder / "case.json").write_text(json.dumps(facts, indent=1) + "\n")
    (folder / "graph.txt").write_text(onnx.printer.to_text(model) + "\n")


def load(folder):
    folder = pathlib.Path(folder)
    model = onnx.load(folder / "model.onnx")
    inputs = {}
    for i, info in enumerate(model.graph.input):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / "test_data_set_0" / f"input_{i}.pb").read_bytes())
        inputs[info.name] = to_array(tensor)
    facts = json.loads((folder / "case.json").read_text()) if (folder / "case.json").exists() else {}
    return model, inputs, facts


__all__ = ["NotComputed", "evaluate", "load", "opset_of", "save", "to_array"]
