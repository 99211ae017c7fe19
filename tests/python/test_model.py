"""Compiled models: results, arrays that are used without a copy, and refused arguments."""

import threading
import time

import numpy as np
import pytest

import tensorsmith
from conftest import MODELS, data_set


@pytest.fixture
def model(mnist):
    return tensorsmith.compile(mnist, "compiled", untuned=True).load(threads=1)


@pytest.mark.parametrize("name", ["mnist_8", "light_squeezenet", "super_resolution_10"])
def test_computes_what_onnx_s_data_has(name):
    path = MODELS / name / "model.onnx"
    inputs, outputs = data_set(path)
    shapes = {key: value.shape for key, value in inputs.items()}
    compiled = tensorsmith.compile(path, "compiled", untuned=True, shapes=shapes)
    results = compiled.load().run(inputs)
    assert results.keys() == outputs.keys()
    for key, expected in outputs.items():
        np.testing.assert_allclose(results[key], expected, rtol=1e-3, atol=1e-4)


def test_says_what_it_takes(model):
    (only,) = model.inputs
    assert (only.name, only.dtype, only.shape) == ("Input3", "f32", (1, 1, 28, 28))
    assert model.outputs[0].shape == (1, 10)
    assert "Input3" in repr(model)


class DlpackOnly:
    """An array that only supports DLPack, as of another library."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_takes_what_others_have(model, mnist):
    inputs, outputs = data_set(mnist)
    (x,), (expected,) = inputs.values(), outputs.values()
    as_fortran = np.asfortranarray(np.repeat(x, 2, axis=3))[:, :, :, ::2]  # neither dense nor in order
    read_only = x.copy()
    read_only.flags.writeable = False
    for given in (x, DlpackOnly(x), as_fortran, read_only, x.tolist()):
        if isinstance(given, list):
            given = np.asarray(given, np.float32)
        (result,) = model.run({"Input3": given}).values()
        np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-3)


def test_writes_into_given_outputs(model, mnist):
    inputs, outputs = data_set(mnist)
    (name,) = outputs
    mine = np.full((1, 10), np.nan, np.float32)
    results = model.run(inputs, {name: mine})
    assert results[name] is mine
    np.testing.assert_allclose(mine, outputs[name], rtol=1e-3, atol=1e-3)
    # Writing to a copy would leave the given array unchanged.
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="contiguous"):
        model.run(inputs, {name: np.zeros((1, 20), np.float32)[:, ::2]})
    fixed = np.zeros((1, 10), np.float32)
    fixed.flags.writeable = False
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="may be written"):
        model.run(inputs, {name: fixed})


def test_new_outputs_are_not_written_again(model):
    first = model.run({"Input3": np.zeros((1, 1, 28, 28), np.float32)})
    copies = {name: array.copy() for name, array in first.items()}
    model.run({"Input3": np.ones((1, 1, 28, 28), np.float32)})
    for name, array in first.items():
        np.testing.assert_array_equal(array, copies[name])


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "input 'Input3': is missing"),
        ({"x": 1}, "input 'x': the model has no such input; it has Input3"),
        ({"Input3": np.zeros((1, 1, 28, 28))}, "input 'Input3': has elements of float64, the model takes float32"),
        (
            {"Input3": np.zeros((1, 28, 28), np.float32)},
            r"input 'Input3': has the shape \(1, 28, 28\), the model takes \(1, 1, 28, 28\)",
        ),
        ({"Input3": "a word"}, "input 'Input3'"),
    ],
)
def test_refuses_what_does_not_fit(model, inputs, said):
    with pytest.raises(tensorsmith.errors.InvalidArgument, match=said) as caught:
        model.run(inputs)
    assert "\n" not in str(caught.value)


def test_other_threads_go_on_meanwhile():
    model = tensorsmith.compile("zoo:resnet18", "compiled", untuned=True).load(threads=1)
    x = np.zeros(model.inputs[0].shape, np.float32)
    model.run({model.inputs[0].name: x})
    counted = 0
    running = True

    def run():
        nonlocal running
        end = time.perf_counter() + 0.5
        while time.perf_counter() < end:
            model.run({model.inputs[0].name: x})
        running = False

    thread = threading.Thread(target=run)
    thread.start()
    while running:
        counted += 1
    thread.join()
    # If run() held the lock, this thread would get it only between runs.
    assert counted > 10_000


def test_missing_and_damaged_folders(tmp_path):
    with pytest.raises(tensorsmith.errors.NotFound, match="nowhere"):
        tensorsmith.load("nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(tensorsmith.Error):
        tensorsmith.load("empty")


def test_benchmark_is_the_time_of_a_run(model, mnist):
    inputs, _ = data_set(mnist)
    latency = model.benchmark(0.05, inputs)
    start = time.perf_counter()
    for _ in range(100):
        model.run(inputs)
    assert latency < 20 * (time.perf_counter() - start) / 100
    assert latency > 1e-7
