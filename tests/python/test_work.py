"""tune, compile, predict, the database, and training from Python."""

import inspect
import json
import logging
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import tensorsmith
from conftest import data_set
from tensorsmith import _native
from tensorsmith.work import import_of


def test_tunes_and_goes_on(mnist):
    events = []
    first = tensorsmith.tune(mnist, trials=12, threads=1, seed=1, progress=events.append)
    assert first.directory == "mnist_8.tensorsmith"
    assert first.trials == 12
    assert {e["phase"] for e in events} >= {"untuned", "search", "write"}
    compared = [e["end_to_end"] for e in events if "end_to_end" in e]
    assert compared == [first.report["end_to_end"]]
    measured = [e["trials"] for e in events if "trials" in e]
    assert measured == sorted(measured)
    assert measured[-1] == 12
    inputs, outputs = data_set(mnist)
    np.testing.assert_allclose(first.load().run(inputs)["Plus214_Output_0"], *outputs.values(), rtol=1e-3, atol=1e-3)
    with sqlite3.connect("tensorsmith.db") as connection:
        (count,) = connection.execute("select count(*) from record").fetchone()
    with tensorsmith.Database() as database:
        assert len(database) == count
        assert count >= 12
        records = database.records()
        assert len(records) == count
        task = database.tasks()[0]["key"]
        of_task = database.records(task=task)
        assert of_task == [r for r in records if r["task"] == task]
        fastest = min((r for r in of_task if r["outcome"] == "ok"), key=lambda r: r["best_estimate"])
        assert database.best(task, fastest["device"], threads=1) == fastest
        assert database.devices()[0]["key"] == fastest["device"]
        database.check()
        database.export_jsonl("records.jsonl")
    with tensorsmith.Database("copy.db") as copy:
        assert copy.import_jsonl("records.jsonl")["records"] == count
        assert len(copy) == count
    again = tensorsmith.tune(mnist, trials=4, threads=1, seed=1)
    assert again.resumed == count
    known = tensorsmith.compile(mnist, "compiled", threads=1)
    assert known.tuned_tasks > 0


def test_the_speed_up_is_that_of_the_report(mnist):
    tuned = tensorsmith.tune(mnist, "tuned", trials=12, threads=1, seed=1)
    words = ["report", "tensorsmith.db", "tuned", "--json", "--cost-model", "none"]
    (model,) = json.loads(tensorsmith.run_command(*words, quiet=True))["models"]
    whole = model["end_to_end"]
    assert (tuned.speedup, tuned.spread, tuned.warning) == (whole["speedup"], whole["spread"], whole["warning"])
    assert (tuned.untuned_seconds, tuned.tuned_seconds) == (whole["untuned_seconds"], whole["tuned_seconds"])
    assert f"{tuned.speedup:.2f}x" in repr(tuned)
    assert tuned.warning is None or tuned.warning in repr(tuned)
    for task in tuned.tasks:
        assert not task.kept or task.untuned_seconds == task.tuned_seconds
    unrun = tensorsmith.tune(mnist, "unrun", trials=12, threads=1, seed=1, end_to_end=False)
    assert (unrun.speedup, unrun.untuned_seconds, unrun.tuned_seconds) == (None, None, None)
    assert unrun.estimate.ratio == unrun.estimate.untuned_seconds / unrun.estimate.tuned_seconds
    assert f"estimate {unrun.estimate.ratio:.2f}x" in repr(unrun)


def test_a_bar_shows_progress(mnist, capsys):
    tensorsmith.tune(mnist, trials=3, threads=1, progress=True)
    assert "3/3" in capsys.readouterr().err


def test_ctrl_c_keeps_the_best_so_far(mnist):
    program = (
        "import tensorsmith\n"
        "def told(event):\n"
        "    if event.get('trials') == 3: print('measured', flush=True)\n"
        f"try:\n    tensorsmith.tune({str(mnist)!r}, 'tuned', seconds=120, threads=1, progress=told)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "measured\n"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "interrupted\n"
    assert process.wait() == 0
    assert time.monotonic() - start < 60
    inputs, outputs = data_set(mnist)
    np.testing.assert_allclose(
        tensorsmith.load("tuned").run(inputs)["Plus214_Output_0"], *outputs.values(), rtol=1e-3, atol=1e-3
    )


def test_an_error_of_the_callback_ends_the_search(mnist):
    def told(event):
        if event.get("trials") == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tensorsmith.tune(mnist, seconds=120, threads=1, progress=told)


def test_says_what_is_wrong(mnist):
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="say how long"):
        tensorsmith.tune(mnist)
    with pytest.raises(tensorsmith.errors.NotFound, match="nowhere.onnx"):
        tensorsmith.tune("nowhere.onnx", seconds=1)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="less than 0"):
        tensorsmith.compile(mnist, threads=-1)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="seed: -1 is less than 0"):
        tensorsmith.tune(mnist, seconds=1, seed=-1)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="list is no model"):
        tensorsmith.tune([mnist], seconds=1)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match=r"shapes\['x'\]"):
        tensorsmith.compile(mnist, shapes={"x": (0, 3)})
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="strategy|annealing"):
        tensorsmith.tune(mnist, seconds=1, strategy="nonsense")
    with pytest.raises(tensorsmith.Error, match="nothing"):
        tensorsmith.predict(mnist, "nothing")
    # Every message is one line, also that of one of Python's own exceptions.
    with pytest.raises(ValueError, match="^[^\n]*$"):
        tensorsmith.tune(mnist)


def test_settings_are_those_of_the_table():
    schema = json.loads(_native.tune_settings())
    parameters = inspect.signature(tensorsmith.tune).parameters
    for name, setting in schema["properties"].items():
        default = parameters[name].default
        assert default == setting["default"] or default in ("", ()), name
    assert set(schema["properties"]) <= set(parameters)
    with pytest.raises(TypeError, match="strategie"):
        tensorsmith.tune("model.onnx", seconds=1, strategie="random")


def test_settings_have_limits(mnist):
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="batch: 0 is not a number from 1 to 1024"):
        tensorsmith.tune(mnist, seconds=1, batch=0)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="epsilon: 1.5 is not a number from 0 to 1"):
        tensorsmith.tune(mnist, seconds=1, epsilon=1.5)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="frozen: 3 is not a value of type boolean"):
        tensorsmith.tune(mnist, seconds=1, frozen=3)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="inf is not finite"):
        tensorsmith.tune(mnist, seconds=float("inf"))
    arguments = {"device": "local", "threads": 1, "database": "a.db", "strategy": "", "worker": "", "progress": None}
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="trails: is not a setting of a search"):
        _native.tune(str(mnist), import_of(), "out", "out", settings=json.dumps({"trails": 3}), **arguments)


def test_objective(mnist):
    result = tensorsmith.tune(mnist, trials=6, threads=1, seed=1, objective="memory", end_to_end=False)
    assert result.report["objective"] == "memory"
    for task in result.report["tasks"]:
        if task["trials"]:
            assert 0 <= task["best_cost"] <= task["default_cost"]
    assert tensorsmith.compile(mnist, "small", threads=1, objective="memory").tuned_tasks > 0
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="1:8: expected an expression"):
        tensorsmith.tune(mnist, seconds=1, objective="memory*")
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="no variable is called size"):
        tensorsmith.compile(mnist, "none", objective="size")


def test_compiles_without_measuring(mnist, caplog):
    here = tensorsmith.compile_unmeasured(mnist, "guessed", threads=1)
    assert not Path("tensorsmith.db").exists()
    assert {task.name for task in here.tasks} == {task["name"] for task in tensorsmith.tasks(mnist)}
    told = json.loads(
        tensorsmith.run_command("tune", mnist, "-o", "same", "--no-measure", "--threads", 1, "--json", quiet=True)
    )
    assert [(task.name, task.chosen, task.expected_gain) for task in here.tasks] == [
        (task["name"], task["chosen"], task["expected_gain"]) for task in told["tasks"]
    ]
    inputs, outputs = data_set(mnist)
    np.testing.assert_allclose(here.load().run(inputs)["Plus214_Output_0"], *outputs.values(), rtol=1e-3, atol=1e-3)
    with caplog.at_level(logging.WARNING, "tensorsmith"):
        elsewhere = tensorsmith.compile_unmeasured(
            mnist, "elsewhere", device="epyc-7763", cost_model="none", database="typo.db"
        )
    assert any("typo.db does not exist" in said.getMessage() for said in caplog.records)
    assert all(task.chosen in ("untuned", "fast elsewhere", "predicted") for task in elsewhere.tasks)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="xgboost"):
        tensorsmith.compile_unmeasured(mnist, "no", cost_model="xgboost")


def test_a_folder_with_other_things_stays(mnist):
    folder = Path("mine")
    folder.mkdir()
    (folder / "letter.txt").write_text("dear reader")
    with pytest.raises(tensorsmith.Error, match="mine"):
        tensorsmith.tune(mnist, folder, trials=1)
    with pytest.raises(tensorsmith.Error, match="mine"):
        tensorsmith.compile(mnist, folder)
    assert (folder / "letter.txt").read_text() == "dear reader"


def test_predicts(mnist):
    here = tensorsmith.predict(mnist, "local", threads=1)
    assert here.least_seconds <= here.seconds
    assert here.low_seconds < here.seconds < here.high_seconds
    assert here.seconds == pytest.approx(here.report["seconds"])
    assert {t.name for t in here.tasks} == {t["name"] for t in tensorsmith.tasks(mnist)}
    with pytest.warns(UserWarning, match="for 4 threads, but the model was trained only on runs with 1 or 2 threads"):
        elsewhere = tensorsmith.predict(mnist, "epyc-7452", threads=4)
    roofline = tensorsmith.predict(mnist, "epyc-7452", threads=4, roofline=True)
    assert roofline.seconds == pytest.approx(elsewhere.least_seconds, rel=1e-6)


def test_says_the_same_as_the_command(mnist):
    # A named device, since the attributes of this one are measured by each of the two and differ between them.
    options = ("--device", "epyc-7452", "--untuned", "--threads", 1, "--json")
    told = json.loads(tensorsmith.run_command("predict", mnist, *options, quiet=True))
    ours = tensorsmith.predict(mnist, "epyc-7452", untuned=True, threads=1)
    assert ours.seconds == pytest.approx(told["seconds"], rel=1e-6)
    with pytest.raises(tensorsmith.errors.CommandFailed, match="nowhere") as caught:
        tensorsmith.run_command("predict", "nowhere.onnx", quiet=True)
    assert caught.value.returncode == 1
    assert tensorsmith.__version__ in tensorsmith.run_command("--version")


def test_trains_and_evaluates(mnist):
    tensorsmith.tune(mnist, trials=40, threads=1, seed=2, end_to_end=False)
    report = tensorsmith.train("own.model", from_db="tensorsmith.db", model="xgboost", parameters={"rounds": 20})
    assert report["records"] > 0
    assert Path("own.model").stat().st_size == report["bytes"]
    scores = tensorsmith.evaluate("own.model", "own.model.store", "own.model.split")
    assert scores
    with pytest.raises(tensorsmith.errors.CommandFailed, match="nonsense"):
        tensorsmith.train("other.model", from_db="tensorsmith.db", parameters={"nonsense": 1})


def test_inputs_become_constants(tmp_path):
    """Contents of an input are part of the compiled model, as numbers or as an array of the input's type."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Mul", ["r", "f"], ["y"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "constants",
        [
            value("x", TensorProto.FLOAT, [6]),
            value("s", TensorProto.INT64, [2]),
            value("f", TensorProto.FLOAT, []),
        ],
        [value("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    constants = {"s": [3, -1], "f": 0.5}
    compiled = tensorsmith.compile(model, tmp_path / "fixed", untuned=True, constants=constants).load()
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(compiled.run({"x": x})["y"], x.reshape(3, 2) / 2)
    with pytest.raises(tensorsmith.errors.InvalidArgument, match=r"no input of this name \(did you mean 's'"):
        tensorsmith.compile(model, tmp_path / "wrong", untuned=True, constants={"ss": [3, 2]})
    with pytest.raises(tensorsmith.errors.InvalidArgument, match="constants"):
        tensorsmith.compile(model, tmp_path / "wrong", untuned=True, constants={"s": "three"})
