"""Models for the tests, and a separate folder for each test."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

MODELS = Path(os.environ["TENSORSMITH_TEST_MODELS"])


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Runs each test in its own folder: databases, compiled models and the cache of sessions are there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSORSMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def mnist():
    return MODELS / "mnist_8" / "model.onnx"


def data_set(model: Path, number: int = 0):
    """Returns the inputs and outputs of ONNX's test data, by name."""
    proto = onnx.load(model)
    constants = {tensor.name for tensor in proto.graph.initializer}
    names = [value.name for value in proto.graph.input if value.name not in constants]
    folder = model.parent / f"test_data_set_{number}"

    def read(kind, count):
        tensors = []
        for i in range(count):
            tensor = onnx.TensorProto()
            tensor.ParseFromString((folder / f"{kind}_{i}.pb").read_bytes())
            tensors.append(numpy_helper.to_array(tensor))
        return tensors

    inputs = dict(zip(names, read("input", len(names))))
    outputs = dict(zip([o.name for o in proto.graph.output], read("output", len(proto.graph.output))))
    return inputs, outputs


def random_graph_model(opset: int = 17) -> onnx.ModelProto:
    """Returns a small network with a batch that is chosen at run time: [batch, 8] -> softmax(relu(x W + b) V)."""
    random = np.random.default_rng(1)
    tensors = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (8, 16)), ("b", (16,)), ("v", (16, 4)))
    ]
    helper = onnx.helper
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["i"]),
        helper.make_node("Relu", ["i"], ["j"]),
        helper.make_node("MatMul", ["j", "v"], ["k"]),
        helper.make_node("Softmax", ["k"], ["y"], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "small network",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 8])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 4])],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
