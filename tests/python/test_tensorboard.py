"""Event files, read with TensorBoard."""

import sqlite3

import pytest

import tensorsmith

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def curves(folder):
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    return {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}


def test_of_a_search(mnist):
    tensorsmith.run_command(
        "tune", mnist, "-o", "out", "--trials", 20, "--threads", 1, "--tensorboard", "logs", "--quiet", quiet=True
    )
    found = curves("logs")
    best = found["model/best_ms"]
    assert [e.step for e in best] == sorted({e.step for e in best})
    assert best[-1].step == 20
    # Winners are measured again, so the curve may rise a little.
    assert best[-1].value < 1.1 * found["model/untuned_ms"][-1].value
    with sqlite3.connect("tensorsmith.db") as connection:
        failed = connection.execute("select count(*) from record where outcome != 'ok'").fetchone()[0]
        names = {name for (name,) in connection.execute("select name from task")}
    assert found["search/failures"][-1].value == failed
    tasks = {tag.removeprefix("task/").removesuffix("_ms") for tag in found if tag.startswith("task/")}
    assert tasks <= names
    assert tasks


def test_of_a_training(mnist):
    tensorsmith.tune(mnist, trials=40, threads=1, seed=2, end_to_end=False)
    tensorsmith.train("own.model", from_db="tensorsmith.db", model="mlp", parameters={"epochs": 3}, tensorboard="logs")
    found = curves("logs")
    assert [e.step for e in found["loss/train"]] == [1, 2, 3]


def test_members_are_runs_of_their_own(mnist, tmp_path):
    tensorsmith.tune(mnist, trials=100, threads=1, seed=2, end_to_end=False)
    tensorsmith.run_command("dataset", "import", "tensorsmith.db", "-o", "own.store", quiet=True)
    tensorsmith.run_command("dataset", "split", "own.store", "--kind", "within-task", "-o", "own.split", quiet=True)
    parameters = {"rounds": 7, "members": 2, "min_child_weight": 2}
    words = ["train", "--model", "tensorsmith", "--store", "own.store", "--split", "own.split", "--quiet"]
    words += [word for name, value in parameters.items() for word in ("--param", f"{name}={value}")]
    tensorsmith.run_command(*words, "-o", "own.model", "--tensorboard", "logs", quiet=True)
    runs = {folder.name: curves(folder) for folder in (tmp_path / "logs").iterdir()}
    members = {"cpu-nests-member-1", "cpu-nests-member-2", "cpu-nests-rank-1"}
    assert members <= set(runs)
    assert all(run.startswith("cpu-nests-device-") for run in set(runs) - members)
    for run, found in runs.items():
        steps = [e.step for e in found["loss/train"]]
        assert steps == list(range(1, len(steps) + 1)), run
        assert found["loss/train"][-1].value < found["loss/train"][0].value, run
        assert [e.step for e in found["loss/validation"]] == steps, run
    assert len(runs["cpu-nests-member-1"]["loss/train"]) == 7
    # Programs that are evaluated only for the curves do not change the model.
    tensorsmith.run_command(*words, "-o", "plain.model", quiet=True)
    assert (tmp_path / "own.model").read_bytes() == (tmp_path / "plain.model").read_bytes()


def test_a_file_in_the_folder_s_place(mnist, tmp_path):
    (tmp_path / "logs").write_text("dear reader")
    with pytest.raises(tensorsmith.errors.CommandFailed, match="logs: is not a folder"):
        tensorsmith.run_command("tune", mnist, "-o", "out", "--trials", 1, "--tensorboard", "logs", quiet=True)
