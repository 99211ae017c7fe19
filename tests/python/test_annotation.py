"""ONNX files annotated with the nodes' times."""

import onnx
import pytest

import tensorsmith
from conftest import MODELS


@pytest.mark.parametrize("name", ["mnist_8", "light_squeezenet"])
def test_every_kernel_is_found(name):
    path = MODELS / name / "model.onnx"
    tensorsmith.compile(path, "compiled", untuned=True)
    kernels = tensorsmith.annotate(path, "compiled", "annotated.onnx")
    before, after = onnx.load(path), onnx.load("annotated.onnx")
    onnx.checker.check_model(after)
    told = {}
    for node in after.graph.node:
        for entry in node.metadata_props:
            told.setdefault(entry.key, []).append((node.name or node.output[0], entry.value))
        del node.metadata_props[:]
    assert after == before  # nothing else has changed
    assert all(kernel.nodes for kernel in kernels)
    assert [last for last, _ in told["tensorsmith.seconds"]] == [kernel.nodes[0] for kernel in kernels]
    sum_told = sum(float(seconds) for _, seconds in told["tensorsmith.seconds"])
    assert sum_told == pytest.approx(sum(kernel.seconds for kernel in kernels), rel=1e-3)
    # Convolutions and products take time, so each must be in a kernel.
    within = {node for kernel in kernels for node in kernel.nodes}
    heavy = {n.name or n.output[0] for n in before.graph.node if n.op_type in ("Conv", "Gemm", "MatMul")}
    assert heavy <= within


def test_of_another_model(mnist):
    tensorsmith.compile(MODELS / "light_squeezenet" / "model.onnx", "compiled", untuned=True)
    with pytest.raises(tensorsmith.errors.Mismatch, match="compiled: is not compiled from this model"):
        tensorsmith.annotate(mnist, "compiled", "annotated.onnx")
