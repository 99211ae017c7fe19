"""Models with operators that cannot be compiled, compared with ONNX Runtime running the whole model."""

import logging

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tensorsmith


def model_of(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "mixed", inputs, outputs, list(constants))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def mixed(batch):
    """Returns a model of two convolutions with one of ONNX Runtime's own operators between them and one beside
    them."""
    random = np.random.default_rng(2)
    weights = [
        numpy_helper.from_array((random.standard_normal((8, c, 3, 3)) / 9).astype(np.float32), f"w{i}")
        for i, c in enumerate((3, 8))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Trilu", ["a"], ["b"], domain="com.microsoft", upper=1),
        helper.make_node("Conv", ["b", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
        helper.make_node("Trilu", ["x"], ["z"], domain="com.microsoft"),
    ]
    # ONNX does not know the shapes of this Trilu, and the file gives none.
    return model_of(
        nodes,
        [value("x", [batch, 3, 12, 12])],
        [value("y", [batch, 8, 12, 12]), value("z", [batch, 3, 12, 12])],
        weights,
    )


@pytest.mark.parametrize("batch", [2, "batch"])
def test_computes_what_onnx_runtime_does(batch, caplog):
    model = mixed(batch).SerializeToString()
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with caplog.at_level(logging.WARNING, "tensorsmith"):
        ours = tensorsmith.InferenceSession(model, compile_in_background=False)
        seed = 11
        random = np.random.default_rng(seed)
        for _ in range(2):
            feed = {"x": random.standard_normal((2, 3, 12, 12)).astype(np.float32)}
            for mine, its in zip(ours.run(None, feed), theirs.run(None, feed), strict=True):
                np.testing.assert_allclose(mine, its, rtol=1e-3, atol=1e-4, err_msg=f"seed {seed}")
    said = [r.getMessage() for r in caplog.records if "ONNX Runtime" in r.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("2 of 5 nodes run by ONNX Runtime (Trilu)")
    (parted,) = ours._shapes.ready()
    assert [[n.op_type for n in part.nodes] for part in parted.parts if part.ours] == [["Conv"], ["Conv", "Relu"]]


def test_all_of_it_by_onnx_runtime():
    """A model of strings, of which no part can be compiled."""
    nodes = [helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="UPPER", locale="C")]
    model = model_of(nodes, [value("x", [2], TensorProto.STRING)], [value("y", [2], TensorProto.STRING)])
    session = tensorsmith.InferenceSession(model, compile_in_background=False)
    assert session.run(None, {"x": np.array(["a", "b"], object)})[0].tolist() == ["A", "B"]


def test_bodies_that_read_from_outside():
    """An If whose body reads a value of the surrounding graph."""
    body = helper.make_graph(
        [helper.make_node("Trilu", ["a"], ["t"], domain="com.microsoft")], "then", [], [value("t", [4, 4])]
    )
    other = helper.make_graph([helper.make_node("Neg", ["a"], ["e"])], "else", [], [value("e", [4, 4])])
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["a"]),
        helper.make_node("If", ["condition"], ["b"], then_branch=body, else_branch=other),
        helper.make_node("MatMul", ["b", "x"], ["y"]),
    ]
    model = model_of(nodes, [value("x", [4, 4]), value("condition", [], TensorProto.BOOL)], [value("y", [4, 4])])
    onnx.checker.check_model(model)
    ours = tensorsmith.InferenceSession(model, compile_in_background=False)
    theirs = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for condition in (True, False):
        x = np.random.default_rng(5).standard_normal((4, 4)).astype(np.float32)
        feed = {"x": x, "condition": np.array(condition)}
        np.testing.assert_allclose(ours.run(None, feed)[0], theirs.run(None, feed)[0], rtol=1e-4, atol=1e-5)


def test_what_nobody_can_run_is_an_error():
    nodes = [helper.make_node("Nonsense", ["x"], ["y"], domain="com.microsoft")]
    model = model_of(nodes, [value("x", [2])], [value("y", [2])])
    with pytest.raises(tensorsmith.errors.Unsupported, match=r"^[^\n]*Nonsense[^\n]*$"):
        tensorsmith.InferenceSession(model)
