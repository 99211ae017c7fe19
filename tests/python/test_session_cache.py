"""The cache of compiled models that sessions keep on disk."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import tensorsmith
from conftest import MODELS, random_graph_model
from tensorsmith import compiled_shapes

X = np.random.default_rng(3).standard_normal((2, 8)).astype(np.float32)


def session_of(model, **options):
    options = {"intra_op_num_threads": 1, "compile_in_background": False, **options}
    return tensorsmith.InferenceSession(model, tensorsmith.SessionOptions(**options))


def counts(session):
    found = session.statistics()
    return found.compiled, found.from_cache


def entries():
    folder = Path(os.environ["TENSORSMITH_CACHE"]) / "compiled-1"
    return {path for path in folder.iterdir() if path.name != "locks"}


def expected(model):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X})[0]


# Prints what a session in a separate process did. With a further argument after the model, compiling is an error.
PROGRAM = """
import sys, time, json
import numpy as np
import tensorsmith
from tensorsmith import compiled_shapes
if len(sys.argv) > 2:
    def refuse(*_, **__): raise AssertionError("it compiles")
    compiled_shapes.compile_cancellable = refuse
start = time.perf_counter()
session = tensorsmith.InferenceSession(sys.argv[1], compile_in_background=False)
(given,) = session.get_inputs()
shape = [d if isinstance(d, int) else 2 for d in given.shape]
x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
y = session.run(None, {given.name: x})[0]
seconds = time.perf_counter() - start
found = session.statistics()
told = {"compiled": found.compiled, "from_cache": found.from_cache, "seconds": seconds, "bits": y.tobytes().hex()}
print(json.dumps(told))
"""


def start_process(model, *more):
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(model), *more], stdout=subprocess.PIPE, text=True)


def told_by(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(out)


@pytest.mark.parametrize("name", ["light_squeezenet", "batches"])
def test_a_new_process_does_not_compile(name):
    model = MODELS / name / "model.onnx"
    if name == "batches":
        model = Path("batches.onnx").absolute()
        onnx.save(random_graph_model(), model)
    first = told_by(start_process(model))
    assert (first["compiled"], first["from_cache"]) == (1, 0)
    again = told_by(start_process(model, "compile nothing"))
    assert (again["compiled"], again["from_cache"]) == (0, 1)
    assert again["bits"] == first["bits"]
    if name == "light_squeezenet":  # this model takes seconds to compile
        assert again["seconds"] < first["seconds"] / 2


def test_several_processes_at_once_compile_once():
    model = MODELS / "light_squeezenet" / "model.onnx"
    found = [told_by(process) for process in [start_process(model) for _ in range(4)]]
    assert sum(one["compiled"] for one in found) == 1
    assert sum(one["from_cache"] for one in found) == 3
    assert len({one["bits"] for one in found}) == 1


def test_threads_of_one_process_compile_once():
    model = random_graph_model().SerializeToString()
    session = session_of(model)
    results = []
    threads = [threading.Thread(target=lambda: results.append(session.run(None, {"x": X})[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts(session) == (1, 0)
    for result in results:
        np.testing.assert_allclose(result, expected(model), rtol=1e-4, atol=1e-6)


def test_what_decides_the_code_decides_the_entry(tmp_path, mnist):
    """Other weights, weights in other files, shapes, threads or records compile again; equal ones do not."""
    model = random_graph_model()
    made = []

    def run(model, batch=2, **options):
        session = session_of(model, **options)
        x = np.resize(X, (batch, 8))
        result = session.run(None, {"x": x})[0]
        made.append(counts(session))
        return result

    run(model)
    run(model, batch=3)
    run(model, intra_op_num_threads=2)
    tensorsmith.tune(mnist, trials=2, threads=1, database="tensorsmith.db")
    run(model)
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0])
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(-weights, "w"))
    result = run(changed)
    np.testing.assert_allclose(result, expected(changed.SerializeToString()), rtol=1e-4, atol=1e-6)
    assert made == [(1, 0)] * 5
    made.clear()
    for again in (model, changed):
        run(again)
    assert made == [(0, 1)] * 2

    # The model file stays the same, but the file of its weights changes.
    made.clear()
    path = tmp_path / "outside.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="outside.bin", size_threshold=0)
    run(str(path))
    size = os.path.getsize("outside.bin")
    bits = np.fromfile("outside.bin", np.float32)
    bits.tofile("outside.bin")  # the same contents
    run(str(path))
    (-bits).tofile("outside.bin")
    assert os.path.getsize("outside.bin") == size
    result = run(str(path))
    np.testing.assert_allclose(result, expected(str(path)), rtol=1e-4, atol=1e-6)
    assert made == [(1, 0), (0, 1), (1, 0)]


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: flip(entry / "model" / "weights.bin"),
        lambda entry: flip(entry / "model" / "kernels.so"),
        lambda entry: flip(entry / "model" / "manifest.json"),
        lambda entry: (entry / "model" / "kernels.so").write_bytes(b""),
        lambda entry: (entry / "model" / "weights.bin").unlink(),
        lambda entry: (entry / "entry.json").write_text("rubbish"),
        lambda entry: (entry / "entry.json").write_text("[]"),
    ],
)
def test_a_damaged_entry_is_compiled_again(damage, caplog):
    model = random_graph_model().SerializeToString()
    session_of(model).run(None, {"x": X})
    (entry,) = entries()
    damage(entry)
    with caplog.at_level(logging.WARNING, "tensorsmith"):
        session = session_of(model)
        result = session.run(None, {"x": X})[0]
    assert counts(session) == (1, 0)
    np.testing.assert_allclose(result, expected(model), rtol=1e-4, atol=1e-6)
    said = [r.getMessage() for r in caplog.records if "cache is damaged" in r.getMessage()]
    assert len(said) == 1
    assert "\n" not in said[0]
    assert entries() == {entry}
    whole = session_of(model)
    whole.run(None, {"x": X})
    assert counts(whole) == (0, 1)


def test_the_bound_is_kept():
    model = random_graph_model()

    def run(batch, **options):
        session = session_of(model, **options)
        session.run(None, {"x": np.zeros((batch, 8), np.float32)})
        return counts(session)

    def size_of(entry):
        return sum(path.stat().st_size for path in entry.rglob("*") if path.is_file())

    assert run(1) == (1, 0)
    (one,) = entries()
    bound = 5 * size_of(one) // 2  # room for two of them
    assert run(2, cache_bytes=bound) == (1, 0)
    assert run(1, cache_bytes=bound) == (0, 1)  # now the most recently used
    assert run(3, cache_bytes=bound) == (1, 0)
    assert len(entries()) == 2
    assert sum(map(size_of, entries())) <= bound
    assert run(1, cache_bytes=bound) == (0, 1)
    assert run(3, cache_bytes=bound) == (0, 1)
    assert run(2, cache_bytes=bound) == (1, 0)  # had been evicted
    assert run(4, cache_bytes=1) == (1, 0)  # larger than the bound: not kept
    assert entries() == set()


KILLED = """
import sys, time
from pathlib import Path
import numpy as np
import tensorsmith
from tensorsmith import compiled_shapes
def half(path, folder, **_):
    Path(folder).mkdir()
    (Path(folder) / "manifest.json").write_text("{")
    print("half", flush=True)
    time.sleep(600)
compiled_shapes.compile_cancellable = half
options = tensorsmith.SessionOptions(intra_op_num_threads=1, compile_in_background=False)
tensorsmith.InferenceSession("model.onnx", options).run(None, {"x": np.zeros((int(sys.argv[1]), 8), np.float32)})
"""


def test_a_process_may_be_killed_at_any_time():
    model = random_graph_model()
    onnx.save(model, "model.onnx")
    for batch in (2, 3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(batch)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(entries()) == 2
    assert all(path.name.startswith("new-") for path in entries())
    start = time.monotonic()
    session = session_of("model.onnx")
    result = session.run(None, {"x": X})[0]
    assert time.monotonic() - start < 60  # no dead process holds the lock
    np.testing.assert_allclose(result, expected("model.onnx"), rtol=1e-4, atol=1e-6)
    assert counts(session) == (1, 0)
    (entry,) = entries()  # the leftovers of the killed processes are gone, too
    assert not entry.name.startswith("new-")


def test_a_model_that_changes_while_it_is_compiled_is_not_kept(monkeypatch):
    onnx.save(random_graph_model(), "model.onnx")
    other = random_graph_model()
    other.graph.name = "other"
    compile_model = compiled_shapes.compile_cancellable

    def change(*arguments, **options):
        compile_model(*arguments, **options)
        onnx.save(other, "model.onnx")

    monkeypatch.setattr(compiled_shapes, "compile_cancellable", change)
    session_of("model.onnx").run(None, {"x": X})
    assert entries() == set()


def runs_and_says(caplog, said, **options):
    model = random_graph_model().SerializeToString()
    with caplog.at_level(logging.WARNING, "tensorsmith"):
        session = session_of(model, **options)
        for batch in (2, 3):
            session.run(None, {"x": np.zeros((batch, 8), np.float32)})
    assert counts(session) == (2, 0)
    assert sum(said in r.getMessage() for r in caplog.records) == 1, caplog.text


def test_a_folder_that_others_may_write_is_not_used(caplog, tmp_path):
    """The models in the folder are programs, so others must not be able to write them."""
    session_of(random_graph_model()).run(None, {"x": X})
    (tmp_path / "cache" / "compiled-1").chmod(0o777)
    runs_and_says(caplog, "others may write it")
    assert len(entries()) == 1


def test_a_folder_that_cannot_be_made_is_not_used(caplog):
    Path("file").write_text("no folder")
    runs_and_says(caplog, "not kept on disk", cache_folder="file/cache")


def test_a_full_disk_is_no_error(caplog, monkeypatch):
    compile_model = compiled_shapes.compile_cancellable

    def full(path, folder, **options):
        if "cache" in str(folder):
            raise tensorsmith.errors.Io("no space left on device", str(folder))
        compile_model(path, folder, **options)

    monkeypatch.setattr(compiled_shapes, "compile_cancellable", full)
    runs_and_says(caplog, "no space left")
    assert entries() == set()


def test_without_a_cache_nothing_is_kept(monkeypatch, tmp_path):
    session_of(random_graph_model(), cache_folder="").run(None, {"x": X})
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("TENSORSMITH_CACHE", "")
    session_of(random_graph_model()).run(None, {"x": X})
    assert not (tmp_path / "cache").exists()
    monkeypatch.delenv("TENSORSMITH_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    session_of(random_graph_model()).run(None, {"x": X})
    assert (tmp_path / "home" / ".cache" / "tensorsmith" / "compiled-1").is_dir()


def test_onnx_runtime_s_options_have_the_cache_too():
    model = random_graph_model().SerializeToString()
    for wanted in [(1, 0), (0, 1)]:
        session = tensorsmith.InferenceSession(model, onnxruntime.SessionOptions(), compile_in_background=False)
        session.run(None, {"x": X})
        assert counts(session) == wanted
