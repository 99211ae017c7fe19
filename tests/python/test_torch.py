"""torch.compile and from_torch, compared with torch. `scripts/test_torch` installs torch for this test."""

import copy
import logging
import os
import re
from pathlib import Path

import numpy as np
import pytest

if "TENSORSMITH_REQUIRE_TORCH" not in os.environ:
    pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

import torch

import tensorsmith
import tensorsmith.torch_backend

# If the package is not installed, neither is its entry point.
BACKEND = tensorsmith.torch_backend.tensorsmith


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.linear = torch.nn.Linear(8 * 16 * 16, 10)

    def forward(self, x, scale):
        y = torch.relu(self.norm(self.convolution(x)))
        return self.linear(y.flatten(1)) * scale, y.mean(dim=(2, 3))


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(5)
    torch._dynamo.reset()


def close(ours, theirs):
    for mine, its in zip(ours, theirs, strict=True):
        assert mine.dtype == its.dtype
        np.testing.assert_allclose(mine.detach().numpy(), its.detach().numpy(), rtol=1e-3, atol=1e-4)


def test_compiles_a_network(caplog):
    model = Network().eval()
    x, scale = torch.randn(2, 3, 16, 16), torch.tensor(0.5)
    with torch.no_grad():
        fast = torch.compile(model, backend=BACKEND, dynamic=False)
        close(fast(x, scale), model(x, scale))
        # The results belong to the caller: a second run does not change them.
        first = fast(x, scale)
        kept = copy.deepcopy(first)
        fast(x + 1, scale)
        close(first, kept)
        # Other shapes give another graph.
        y = torch.randn(3, 3, 16, 16)
        close(fast(y, scale), model(y, scale))
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING and r.name == "tensorsmith"]


def test_a_graph_break_leaves_the_rest_compiled():
    def function(x):
        y = torch.sin(x) * 2
        if float(y.sum()) > 0:  # a graph break of torch
            return torch.relu(y) + 1
        return y - 1

    fast = torch.compile(function, backend=BACKEND, dynamic=False)
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(5, 7)
        np.testing.assert_allclose(fast(x).numpy(), function(x).numpy(), rtol=1e-4, atol=1e-5, err_msg=f"seed {seed}")


def test_what_cannot_be_compiled_runs_by_torch(caplog):
    model = torch.nn.Linear(4, 4)
    x = torch.randn(2, 4, requires_grad=True)
    fast = torch.compile(model, backend=BACKEND, dynamic=False)
    close([fast(x)], [model(x)])
    assert any("gradients" in record.getMessage() for record in caplog.records)
    fast(x).sum().backward()
    assert x.grad is not None


def test_tunes_with_options(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 16)).eval()
    x = torch.randn(8, 32)
    options = {"trials": 4, "threads": 1, "database": str(tmp_path / "own.db")}
    with torch.no_grad():
        fast = torch.compile(model, backend=BACKEND, dynamic=False, options=options)
        close([fast(x)], [model(x)])
    with tensorsmith.Database(tmp_path / "own.db") as database:
        assert len(database) >= 4


def test_unknown_options_are_refused():
    with pytest.raises(Exception, match=r"options\['nonsense'\]: there is no such option"):
        torch.compile(torch.sin, backend=BACKEND, options={"nonsense": 1})(torch.ones(3))


def test_parameters_are_compiled_in_until_they_change(caplog):
    model = torch.nn.Linear(64, 8).eval()
    x = torch.randn(4, 64)
    with torch.no_grad():
        fast = torch.compile(model, backend=BACKEND, dynamic=False)
        close([fast(x)], [model(x)])
        assert not [r for r in caplog.records if r.name == "tensorsmith"]
        model.weight += 1
        close([fast(x)], [model(x)])
        close([fast(x)], [model(x)])
    said = [r.getMessage() for r in caplog.records if r.name == "tensorsmith"]
    assert len(said) == 1
    assert "changed" in said[0]


def test_the_cookbook_s_snippet():
    text = (Path(__file__).parents[2] / "docs" / "cookbook.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    model, x = torch.nn.Linear(8, 3).eval(), torch.randn(2, 8)
    names = {"model": model, "x": x, "BACKEND": BACKEND}
    assert 'backend="tensorsmith"' in block
    block = block.replace('"tensorsmith"', "BACKEND").replace('"seconds": 30', '"seconds": 2')
    exec(compile(block, "cookbook.md", "exec"), names)
    close([names["y"]], [model(x)])


def test_from_torch():
    model = Network().eval()
    x, scale = torch.randn(2, 3, 16, 16), torch.tensor(0.5)
    exported = torch.export.export(model, (x, scale))
    proto = tensorsmith.from_torch(exported)
    compiled = tensorsmith.compile(proto, "compiled", untuned=True).load()
    arrays = [x, scale]
    outputs = compiled.run({info.name: value for info, value in zip(compiled.inputs, arrays)})
    close([torch.from_numpy(array) for array in outputs.values()], model(x, scale))
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="neither"):
        tensorsmith.from_torch("a word")


def test_runs_tensors_in_place():
    proto = tensorsmith.from_torch(torch.nn.Linear(16, 4).eval(), (torch.randn(2, 16),))
    model = tensorsmith.compile(proto, "compiled", untuned=True).load(threads=1)
    x = torch.randn(2, 16)
    (name,) = [info.name for info in model.inputs]
    out = torch.empty(2, 4)
    (key,) = [info.name for info in model.outputs]
    assert model.run({name: x}, {key: out})[key] is out
    np.testing.assert_allclose(out.numpy(), model.run({name: x.numpy()})[key], rtol=1e-6)


def test_neural_models_run_on_this_torch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = str(Path(os.environ["TENSORSMITH_TEST_MODELS"]) / "mnist_8" / "model.onnx")
    tensorsmith.tune(model, trials=40, threads=1, seed=2, end_to_end=False)
    # The loader logs the libraries that it loads.
    monkeypatch.setenv("LD_DEBUG", "files")
    monkeypatch.setenv("LD_DEBUG_OUTPUT", str(tmp_path / "loaded"))
    tensorsmith.train("own.model", from_db="tensorsmith.db", model="mlp", parameters={"epochs": 3})
    monkeypatch.delenv("LD_DEBUG")
    loaded = "".join(path.read_text() for path in tmp_path.glob("loaded.*"))
    version = ".".join(torch.__version__.split(".")[:2])
    assert f"calling init: {Path(torch.__file__).parent}/lib/libtorch_cpu.so" in loaded
    assert f"libtensorsmith_net_torch{version}.so" in loaded
    # Also in this process, which has imported torch.
    found = tensorsmith.tune(model, trials=8, threads=1, seed=3, end_to_end=False, cost_model="own.model")
    assert found.trials > 0
