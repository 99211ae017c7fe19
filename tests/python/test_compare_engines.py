"""compare_engines: the function, the command, and the scripts in the repository's bench/peers."""

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import tensorsmith
from conftest import random_graph_model

MODELS_SCRIPT = Path(__file__).parents[2] / "bench" / "peers" / "models.py"
QUICK = {"rounds": 3, "slice_seconds": 0.01}


@pytest.fixture
def model():
    proto = random_graph_model()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 64
    onnx.save(proto, "model.onnx")
    return "model.onnx"


def test_times_both(model):
    compiled = tensorsmith.compile(model, "compiled", untuned=True, threads=1)
    for given in (compiled, "compiled"):
        (one,) = tensorsmith.compare_engines(model, given, threads=1, **QUICK)
        assert one.engine.startswith("ONNX Runtime 1.")
        assert one.problem is None
        assert 1e-7 < one.tensorsmith_seconds < 1
        assert 1e-7 < one.engine_seconds < 1
        assert one.ratio_p10 <= one.ratio <= one.ratio_p90
        assert one.ratio == pytest.approx(one.engine_seconds / one.tensorsmith_seconds, rel=0.9)


def test_other_outputs_are_not_compared(model):
    tensorsmith.compile(model, "compiled", untuned=True)
    other = onnx.load(model)
    weights = onnx.numpy_helper.to_array(other.graph.initializer[0])
    other.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(-weights, "w"))
    (one,) = tensorsmith.compare_engines(other, "compiled", **QUICK)
    assert one.outputs_differ
    assert "differ by up to" in one.problem
    assert one.ratio is None


def test_says_what_is_missing_or_wrong(model, monkeypatch):
    tensorsmith.compile(model, "compiled", untuned=True)
    monkeypatch.setitem(sys.modules, "openvino", None)
    found = tensorsmith.compare_engines(model, "compiled", engines=["openvino", "onnxruntime"], **QUICK)
    assert "pip install openvino" in found[0].problem
    assert found[1].problem is None
    with pytest.raises(ValueError, match="there is no engine 'tvm'; there are onnxruntime, "):
        tensorsmith.compare_engines(model, "compiled", engines="tvm")
    with pytest.raises(ValueError, match="rounds: 0 is not above 0"):
        tensorsmith.compare_engines(model, "compiled", rounds=0)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        tensorsmith.compare_engines(model, "nowhere")
    with pytest.raises(FileNotFoundError, match="nowhere.onnx"):
        tensorsmith.compare_engines("nowhere.onnx", "compiled")
    Path("rubbish.onnx").write_bytes(b"rubbish")
    (one,) = tensorsmith.compare_engines("rubbish.onnx", "compiled")
    assert one.problem
    assert "\n" not in one.problem


def test_as_a_command(model):
    tensorsmith.compile(model, "compiled", untuned=True, threads=1)
    words = [sys.executable, "-m", "tensorsmith.peers", "--threads", "1", "--rounds", "3", "--slice", "0.01"]
    told = subprocess.run([*words, "--json", "--footprint", f"small={model}:compiled"], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    (row,) = document["results"]
    assert row["model"] == "small"
    assert row["ratio"] > 0
    assert {one["engine"] for one in document["footprints"]} == {"tensorsmith", "onnxruntime"}
    assert all(one["start_seconds"] > 0 for one in document["footprints"])
    # The report can show the comparison.
    Path("peers.json").write_text(told.stdout)
    tensorsmith.tune(model, "tuned", trials=2, threads=1, end_to_end=False)
    tensorsmith.run_command("report", "tensorsmith.db", "-o", "report.html", "--peers", "peers.json", quiet=True)
    assert row["peer"] in Path("report.html").read_text()
    table = subprocess.run([*words, f"small={model}:compiled"], capture_output=True, text=True)
    assert table.returncode == 0, table.stderr
    assert any(line.startswith("small ") for line in table.stdout.splitlines())
    wrong = subprocess.run([*words, f"small={model}:nowhere"], capture_output=True, text=True)
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("error: ")
    assert len(wrong.stderr.splitlines()) == 1


@pytest.mark.skipif(not MODELS_SCRIPT.exists(), reason="not in a checkout")
def test_from_a_checkout_without_the_package(monkeypatch):
    """The same code runs without the package tensorsmith, with the runtime library."""
    monkeypatch.delenv("PYTHONPATH")
    words = [sys.executable, str(MODELS_SCRIPT)]
    told = subprocess.run([*words, "a=b.onnx:c"], capture_output=True, text=True)
    assert told.returncode == 2
    assert "--runtime is needed" in told.stderr
    helped = subprocess.run([*words, "--help"], capture_output=True, text=True)
    assert helped.returncode == 0
    assert "--footprint" in helped.stdout
    assert helped.stderr == ""
