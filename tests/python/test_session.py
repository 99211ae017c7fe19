"""InferenceSession, compared with ONNX Runtime's."""

import numpy as np
import onnxruntime
import pytest

import tensorsmith
from conftest import MODELS, data_set, random_graph_model


def both(model):
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    ours = tensorsmith.InferenceSession(model, providers=["CPUExecutionProvider"], compile_in_background=False)
    return ours, theirs


def test_is_as_onnx_runtime_s():
    model = str(MODELS / "light_squeezenet" / "model.onnx")
    ours, theirs = both(model)
    for mine, its in zip(
        [*ours.get_inputs(), *ours.get_outputs()], [*theirs.get_inputs(), *theirs.get_outputs()], strict=True
    ):
        assert (mine.name, mine.type, list(mine.shape)) == (its.name, its.type, list(its.shape))
    assert ours.get_providers() == theirs.get_providers()
    seed = 3
    x = np.random.default_rng(seed).standard_normal(ours.get_inputs()[0].shape).astype(np.float32)
    feed = {ours.get_inputs()[0].name: x}
    for mine, its in zip(ours.run(None, feed), theirs.run(None, feed), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-3, atol=1e-5, err_msg=f"seed {seed}")
    name = ours.get_outputs()[0].name
    (one,) = ours.run([name], feed)
    np.testing.assert_array_equal(one, ours.run(None, feed)[0])


def test_chosen_batches():
    model = random_graph_model().SerializeToString()
    ours, theirs = both(model)
    assert [list(i.shape) for i in ours.get_inputs()] == [list(i.shape) for i in theirs.get_inputs()]
    random = np.random.default_rng(7)
    for batch in (1, 3, 1, 5):
        feed = {"x": random.standard_normal((batch, 8)).astype(np.float32)}
        np.testing.assert_allclose(ours.run(None, feed)[0], theirs.run(None, feed)[0], rtol=1e-4, atol=1e-6)


def test_lengths_of_dimensions_in_the_options():
    model = random_graph_model().SerializeToString()
    x = np.random.default_rng(4).standard_normal((3, 8)).astype(np.float32)
    results = []
    for library in (tensorsmith, onnxruntime):
        options = library.SessionOptions()
        options.add_free_dimension_override_by_name("batch", 3)
        session = library.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        assert list(session.get_inputs()[0].shape) == [3, 8]
        if library is tensorsmith:
            assert session.wait_until_compiled()
            assert session.statistics().compiled == 1  # already before the first run
        results.append(session.run(None, {"x": x})[0])
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-6)


def test_a_session_keeps_so_many_shapes():
    options = tensorsmith.SessionOptions(intra_op_num_threads=1, max_compiled_shapes=2, compile_in_background=False)
    session = tensorsmith.InferenceSession(random_graph_model(), options)
    for batch in (1, 2, 3):
        session.run(None, {"x": np.zeros((batch, 8), np.float32)})
    assert [dict(key)["x"][0] for key in session._shapes.choices()] == [2, 3]


def test_runs_a_compiled_folder(mnist):
    tensorsmith.compile(mnist, "compiled", untuned=True)
    inputs, outputs = data_set(mnist)
    session = tensorsmith.InferenceSession("compiled")
    np.testing.assert_allclose(session.run(None, inputs)[0], *outputs.values(), rtol=1e-3, atol=1e-3)


def test_options_of_onnx_runtime(mnist):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = tensorsmith.InferenceSession(str(mnist), options)
    assert session.get_session_options() is options


@pytest.mark.parametrize(
    ("providers", "said"),
    [(["TensorrtExecutionProvider"], "none of them is here"), ([], None), (None, None)],
)
def test_providers(mnist, providers, said):
    if said is None:
        session = tensorsmith.InferenceSession(str(mnist), providers=providers)
        assert session.get_providers() == ["CPUExecutionProvider"]
        return
    with pytest.raises(tensorsmith.errors.InvalidArgument, match=said):
        tensorsmith.InferenceSession(str(mnist), providers=providers)


def test_names_that_are_not_there(mnist):
    session = tensorsmith.InferenceSession(str(mnist))
    inputs, _ = data_set(mnist)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="no such output"):
        session.run(["nothing"], inputs)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="is missing"):
        session.run(None, {})


def test_rubbish_is_no_model():
    with pytest.raises(tensorsmith.errors.Corrupt, match="not an ONNX model"):
        tensorsmith.InferenceSession(b"rubbish")
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="is no model"):
        tensorsmith.InferenceSession(17)


def test_bindings(mnist):
    inputs, outputs = data_set(mnist)
    (name,), (expected,) = inputs, outputs.values()
    results = {}
    for library in (tensorsmith, onnxruntime):
        session = library.InferenceSession(str(mnist), providers=["CPUExecutionProvider"])
        if library is tensorsmith:
            assert session.wait_until_compiled()
        binding = session.io_binding()
        binding.bind_cpu_input(name, inputs[name])
        binding.bind_output(session.get_outputs()[0].name)
        session.run_with_iobinding(binding)
        results[library] = binding.copy_outputs_to_cpu()[0]
        mine = np.zeros_like(expected)
        value = library.OrtValue.ortvalue_from_numpy(mine)
        binding.clear_binding_outputs()
        binding.bind_ortvalue_output(session.get_outputs()[0].name, value)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(value.numpy(), results[library])
        assert value.shape() == list(expected.shape)
        assert value.device_name().lower() == "cpu"
    np.testing.assert_allclose(results[tensorsmith], results[onnxruntime], rtol=1e-3, atol=1e-3)
