"""Exceptions: their bases in Python, and messages in terms of the Python package."""

import errno
import pickle
import subprocess

import numpy as np
import onnx
import onnx.reference
import pytest

import tensorsmith
from conftest import random_graph_model
from tensorsmith import errors


@pytest.mark.parametrize(
    ("ours", "python_s"),
    [
        (errors.InvalidArgument, ValueError),
        (errors.NotFound, FileNotFoundError),
        (errors.NotFound, LookupError),
        (errors.Unsupported, NotImplementedError),
        (errors.NotInstalled, ImportError),
        (errors.Corrupt, ValueError),
        (errors.Io, OSError),
        (errors.Timeout, TimeoutError),
        (errors.ResourceExhausted, MemoryError),
        (errors.CommandFailed, subprocess.CalledProcessError),
    ],
)
def test_each_is_one_of_python_s_own(ours, python_s):
    error = ours("is wrong", "the place")
    with pytest.raises(python_s, match="^the place: is wrong$"):
        raise error
    assert isinstance(error, tensorsmith.Error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ours
    assert (str(again), again.place, again.reason) == ("the place: is wrong", "the place", "is wrong")
    assert str(ours("is wrong")) == "is wrong"


def test_a_missing_file_is_a_missing_file():
    for call in (
        lambda: tensorsmith.compile("nowhere.onnx"),
        lambda: tensorsmith.InferenceSession("nowhere.onnx"),
        lambda: tensorsmith.load("nowhere"),
        lambda: tensorsmith.Database("nowhere.db", read_only=True),
    ):
        with pytest.raises(FileNotFoundError, match=r"^[^\n]*nowhere[^\n]*$") as caught:
            call()
        assert caught.value.errno == errno.ENOENT
        assert "nowhere" in caught.value.filename


def test_a_failed_command_says_what_ran():
    with pytest.raises(subprocess.CalledProcessError) as caught:
        tensorsmith.run_command("predict", "nowhere.onnx", quiet=True)
    assert caught.value.returncode == 1
    assert caught.value.cmd == [tensorsmith.command_path(), "predict", "nowhere.onnx"]


def test_the_arguments_that_an_error_names_do():
    model = random_graph_model()
    with pytest.raises(errors.InvalidArgument, match=r"^[^\n]*batch[^\n]*$") as caught:
        tensorsmith.compile(model, untuned=True)
    said = str(caught.value)
    assert "--" not in said
    for argument in ('dims={"batch": 1}', 'shapes={"x": (1, 8)}'):
        assert argument in said
        given = eval(f"dict({argument})")
        compiled = tensorsmith.compile(model, "compiled", untuned=True, **given)
        assert compiled.load().inputs[0].shape == (1, 8)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(errors.InvalidArgument, match=r"shapes={\"x\": \("):
        tensorsmith.compile(model, untuned=True)


def test_dimensions_by_name():
    model = random_graph_model()
    assert tensorsmith.compile(model, "compiled", untuned=True, dims={"batch": 3}).load().inputs[0].shape == (3, 8)
    assert tensorsmith.tasks(model, dims={"batch": 3}) == tensorsmith.tasks(model, shapes={"x": (3, 8)})
    assert tensorsmith.predict(model, "epyc-7452", threads=1, dims={"batch": 3}).seconds > 0
    with pytest.raises(errors.InvalidArgument, match="'bacth'.*'batch'"):
        tensorsmith.compile(model, untuned=True, dims={"bacth": 3})
    with pytest.raises(errors.InvalidArgument, match=r"^dims\['batch'\]: 0 is no length"):
        tensorsmith.compile(model, untuned=True, dims={"batch": 0})


def test_options_of_the_command_line_are_arguments():
    for given in ({"shapes": {"x": (1, 3, 8, 8)}}, {"bounded": True}, {"tf32": True}, {"absent": ["x"]}):
        with pytest.raises(errors.InvalidArgument) as caught:
            tensorsmith.compile("zoo:resnet18", **given)
        assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("; --bounded gives it the length", "; bounded=True gives it the length"),
        ("compile it with --device opencl:1", 'compile it with device="opencl:1"'),
        ("--threads 999: are too many", "threads=999: are too many"),
        ("those of --db are not looked at", "those of database= are not looked at"),
        ("name its file (--lm)", "name its file (language_model=)"),
        ("start `tensorsmith worker --db ...` there", "start `tensorsmith worker --db ...` there"),
        ("nothing to change - here -- at all", "nothing to change - here -- at all"),
    ],
)
def test_words_of_the_command_line(text, wanted):
    assert errors.in_python(text) == wanted


def test_an_input_without_a_shape_is_chosen_by_the_first_run():
    model = random_graph_model()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    session = tensorsmith.InferenceSession(model, compile_in_background=False)
    x = np.ones((2, 8), np.float32)
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-4, atol=1e-6)
