"""Files written by `run --output`, read with NumPy."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper

import tensorsmith

CASTS = {
    "half": (TensorProto.FLOAT16, np.float16),
    "short": (TensorProto.BFLOAT16, np.float32),  # NumPy has no bfloat16
    "double": (TensorProto.DOUBLE, np.float64),
    "byte": (TensorProto.INT8, np.int8),
    "long": (TensorProto.INT64, np.int64),
    "truth": (TensorProto.BOOL, np.bool_),
}


def test_arrays_of_every_type():
    x = np.array([[-2, 0, 1], [3, 4.5, 100]], np.float32)
    nodes = [helper.make_node("Cast", ["x"], [name], to=to) for name, (to, _) in CASTS.items()]
    nodes.append(helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0))
    outputs = [helper.make_tensor_value_info(name, to, [2, 3]) for name, (to, _) in CASTS.items()]
    outputs.append(helper.make_tensor_value_info("most", TensorProto.FLOAT, []))
    graph = helper.make_graph(nodes, "casts", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])], outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "m.onnx")
    np.save("x.npy", x)
    tensorsmith.run_command("compile", "m.onnx", "-o", "out", "--untuned", quiet=True)
    text = tensorsmith.run_command("run", "out", "--input", "x=x.npy", "--output", "results", "--json", quiet=True)
    written = {entry["output"]: entry["file"] for entry in json.loads(text)["outputs"]}
    for name, (_, dtype) in CASTS.items():
        found = np.load(written[name])
        assert found.dtype == dtype, name
        np.testing.assert_array_equal(found, x.astype(dtype), err_msg=name)
    most = np.load(written["most"])
    assert most.shape == ()
    assert most == 100
