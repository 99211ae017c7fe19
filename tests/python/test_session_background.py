"""Sessions that run on ONNX Runtime while they compile."""

import logging
import subprocess
import sys
import threading
import time

import numpy as np
import onnxruntime
import pytest

import tensorsmith
from conftest import MODELS, data_set, random_graph_model
from tensorsmith import compiled_shapes

SEED = 7


def theirs(model, feed):
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feed)


def feed_of(batch):
    return {"x": np.random.default_rng(SEED).standard_normal((batch, 8)).astype(np.float32)}


@pytest.fixture
def gate(monkeypatch):
    """Makes compilations wait until the gate is opened."""
    opened = threading.Event()
    compile_model = compiled_shapes.compile_cancellable

    def gated(*arguments, **options):
        assert opened.wait(60)
        compile_model(*arguments, **options)

    monkeypatch.setattr(compiled_shapes, "compile_cancellable", gated)
    yield opened
    opened.set()


def test_onnx_runtime_answers_until_the_model_is_compiled(gate, caplog):
    model = random_graph_model().SerializeToString()
    with caplog.at_level(logging.WARNING, "tensorsmith"):
        session = tensorsmith.InferenceSession(model)
        for batch in (2, 3, 2):
            np.testing.assert_array_equal(session.run(None, feed_of(batch))[0], theirs(model, feed_of(batch))[0])
        told = session.statistics()
        assert (told.compiled, told.compiling, told.onnx_runtime_runs) == (0, 2, 3)
        assert not session.wait_until_compiled(0.01)
        gate.set()
        assert session.wait_until_compiled(60)
        for batch in (2, 3):
            np.testing.assert_allclose(
                session.run(None, feed_of(batch))[0], theirs(model, feed_of(batch))[0], rtol=1e-4, atol=1e-6
            )
        told = session.statistics()
        assert (told.compiled, told.compiling, told.onnx_runtime_runs) == (2, 0, 3)
    assert len(caplog.records) == 1, caplog.text  # the message appears once
    said = caplog.records[0].getMessage()
    assert "ONNX Runtime answers meanwhile" in said
    assert "x=(2, 8)" in said
    # With compiled shapes on disk, ONNX Runtime is not needed and nothing is logged.
    caplog.clear()
    again = tensorsmith.InferenceSession(model)
    again.run(None, feed_of(2))
    assert again.statistics() == tensorsmith.SessionStatistics(from_cache=1)
    assert not caplog.records


def test_a_model_without_choices_is_there_at_once(gate, mnist):
    inputs, outputs = data_set(mnist)
    (expected,) = outputs.values()
    session = tensorsmith.InferenceSession(str(mnist))
    assert [i.name for i in session.get_inputs()] == list(inputs)
    np.testing.assert_allclose(session.run(None, inputs)[0], expected, rtol=1e-3, atol=1e-3)
    assert session.statistics().onnx_runtime_runs == 1
    gate.set()
    session.wait_until_compiled()
    np.testing.assert_allclose(session.run(None, inputs)[0], expected, rtol=1e-3, atol=1e-3)
    assert session.statistics().onnx_runtime_runs == 1
    assert session.statistics().compiled == 1


@pytest.mark.parametrize("way", ["option", "argument"])
def test_it_can_be_turned_off(way, caplog):
    """All results, the first one included, are then those of the compiled model."""
    model = random_graph_model()
    results = []
    for _ in range(2):
        options = tensorsmith.SessionOptions(cache_folder="", compile_in_background=way != "option")
        more = {} if way == "option" else {"compile_in_background": False}
        with caplog.at_level(logging.WARNING, "tensorsmith"):
            session = tensorsmith.InferenceSession(model, options, **more)
            results += [session.run(None, feed_of(5))[0] for _ in range(3)]
        assert session.statistics() == tensorsmith.SessionStatistics(compiled=1)
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    said = [r.getMessage() for r in caplog.records]
    assert len(said) == 2  # each session logs once that it compiles
    assert "is being compiled for x=(5, 8), which can take seconds" in said[0]


def test_without_onnx_runtime_a_run_waits(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    model = random_graph_model()
    session = tensorsmith.InferenceSession(model)
    result = session.run(None, feed_of(2))[0]
    assert session.statistics() == tensorsmith.SessionStatistics(compiled=1)
    monkeypatch.undo()
    np.testing.assert_allclose(result, theirs(model.SerializeToString(), feed_of(2))[0], rtol=1e-4, atol=1e-6)


def test_bindings_meanwhile(gate):
    model = random_graph_model().SerializeToString()
    session = tensorsmith.InferenceSession(model)
    binding = session.io_binding()
    binding.bind_cpu_input("x", feed_of(2)["x"])
    mine = np.zeros((2, 4), np.float32)
    binding.bind_ortvalue_output("y", tensorsmith.OrtValue.ortvalue_from_numpy(mine))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(mine, theirs(model, feed_of(2))[0])
    binding.bind_ortvalue_output("y", tensorsmith.OrtValue.ortvalue_from_numpy(np.zeros((1, 4), np.float32)))
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="output 'y'"):
        session.run_with_iobinding(binding)


def test_wrong_inputs_have_the_same_errors_meanwhile():
    session = tensorsmith.InferenceSession(random_graph_model())
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="float64"):
        session.run(None, {"x": np.zeros((2, 8))})
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="is missing"):
        session.run(None, {})
    with pytest.raises(tensorsmith.Error):
        session.run(None, {"x": np.zeros((2, 9), np.float32)})


def test_what_cannot_be_compiled_goes_on_by_onnx_runtime(monkeypatch, caplog):
    def fails(*_, **__):
        raise tensorsmith.errors.ResourceExhausted("there is no memory for it", "kernel")

    monkeypatch.setattr(compiled_shapes, "compile_cancellable", fails)
    model = random_graph_model().SerializeToString()
    session = tensorsmith.InferenceSession(model)
    with caplog.at_level(logging.WARNING, "tensorsmith"):
        for _ in range(3):
            np.testing.assert_array_equal(session.run(None, feed_of(2))[0], theirs(model, feed_of(2))[0])
            session.wait_until_compiled()
    said = [r.getMessage() for r in caplog.records if "there is no memory for it" in r.getMessage()]
    assert len(said) == 1
    assert session.statistics().onnx_runtime_runs == 3
    waiting = tensorsmith.InferenceSession(model, compile_in_background=False)
    with pytest.raises(tensorsmith.errors.ResourceExhausted):
        waiting.run(None, feed_of(2))


def test_only_so_many_choices_wait(gate):
    model = random_graph_model()
    session = tensorsmith.InferenceSession(model, tensorsmith.SessionOptions(max_compiled_shapes=2))
    for batch in (1, 2, 3, 4):
        session.run(None, feed_of(batch))
    assert session.statistics().compiling == 2
    assert session.statistics().onnx_runtime_runs == 4


def test_a_program_ends_while_a_model_is_compiled():
    model = MODELS / "light_squeezenet" / "model.onnx"
    program = (
        "import tensorsmith\n"
        f"session = tensorsmith.InferenceSession({str(model)!r})\n"
        "assert session.statistics().compiling == 1\n"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert time.monotonic() - start < 30


def test_a_child_process_has_its_own(gate):
    """A forked child does not have its parent's threads."""
    model = random_graph_model()
    session = tensorsmith.InferenceSession(model)
    session.run(None, feed_of(2))
    assert session.statistics().compiling == 1
    session._shapes._after_fork()
    assert session.statistics().compiling == 0
    session.run(None, feed_of(2))
    assert session.statistics().compiling == 1
