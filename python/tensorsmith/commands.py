"""The command `tensorsmith` that comes with the package, and functions that run it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import errors

PathLike = str | os.PathLike[str]


def _announce_torch() -> None:
    """Lets neural cost models use the torch of this Python, if it has one. torch is located but not imported."""
    if "TENSORSMITH_TORCH_FOLDER" in os.environ:
        return
    try:
        found = importlib.util.find_spec("torch")
    except (ImportError, ValueError):  # ValueError: a previous import of torch failed
        return
    if found is not None and found.origin is not None:
        os.environ["TENSORSMITH_TORCH_FOLDER"] = str(Path(found.origin).parent)


_announce_torch()


def command_path() -> str:
    """Returns the path of this package's program `tensorsmith`."""
    return str(Path(__file__).parent / "bin" / "tensorsmith")


def run_command(*arguments: PathLike | int | float, quiet: bool = False) -> str:
    """Runs `tensorsmith ARGUMENTS...` and returns its standard output. Progress and notes go to standard error unless
    `quiet`.

    Raises:
        errors.CommandFailed: the command failed; the reason is its own message.
    """
    words = [command_path(), *(os.fspath(a) if isinstance(a, os.PathLike) else str(a) for a in arguments)]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    lines: list[str] = []
    try:
        # The output is short enough for the pipe's buffer.
        output = _read(process, lines, quiet)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if process.returncode != 0:
        prefix = "tensorsmith: error: "
        said = [line[len(prefix) :] for line in lines if line.startswith(prefix)] or lines[-1:] or ["failed"]
        raise errors.CommandFailed(said[-1], returncode=process.returncode, cmd=words)
    return output


def _read(process: subprocess.Popen[str], lines: list[str], quiet: bool) -> str:
    def forward() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line.rstrip("\n"))
            if not quiet and not line.startswith("tensorsmith: error: "):
                sys.stderr.write(line)

    reader = threading.Thread(target=forward, daemon=True)
    reader.start()
    assert process.stdout is not None
    output = process.stdout.read()
    process.wait()
    reader.join()
    return output


def _run_for_function(*words: PathLike | int | float, quiet: bool) -> str:
    """Runs a command for a function whose arguments are the command's options; errors name the arguments."""
    try:
        return run_command(*words, quiet=quiet)
    except errors.CommandFailed as error:
        raise errors.CommandFailed(errors.in_python(error.reason), returncode=error.returncode, cmd=error.cmd) from None


def _flags(options: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple)):
            for one in value:
                words += [flag, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
        else:
            words += [flag, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words


def train(
    output: PathLike,
    *,
    from_db: PathLike | Sequence[PathLike] = (),
    store: PathLike | None = None,
    split: PathLike | None = None,
    model: str | None = None,
    parameters: dict[str, Any] | None = None,
    seed: int = 0,
    quiet: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Trains a cost model on measured programs and writes it to `output`. Runs `tensorsmith train` in a process.

    Args:
        output: file of the model.
        from_db: databases with the records for training; or
        store, split: a store of programs, and the file of a split into parts (see `tensorsmith dataset`).
        model: kind of the model; default: "tensorsmith".
        parameters: hyper-parameters by name.
        seed: the same seed, data and parameters give the same model.
        quiet: no progress on standard error.
        options: further options of the command by name (`max_tasks=50`, `init="base.model"`).

    Returns:
        A dict: model, records, workloads, devices, seconds, bytes, validation and test scores.

    Raises:
        errors.CommandFailed: the command failed; the reason is its own message.
    """
    databases = [from_db] if isinstance(from_db, (str, os.PathLike)) else list(from_db)
    flags = _flags(
        {
            "output": output,
            "from_db": databases,
            "store": store,
            "split": split,
            "model": model,
            "param": [f"{name}={_value(value)}" for name, value in (parameters or {}).items()],
            "seed": seed,
            "quiet": quiet,
            **options,
        }
    )
    return json.loads(_run_for_function("train", *flags, "--json", quiet=quiet))


def evaluate(
    model: PathLike, store: PathLike, split: PathLike, *, part: str = "test", quiet: bool = True, **options: Any
) -> dict[str, Any]:
    """Evaluates the predictions of a cost model on measured programs. Runs `tensorsmith eval` in a process.

    Args:
        model: file that `train` wrote.
        store, split, part: the programs; default: the split's test part.
        options: further options of the command by name.

    Returns:
        Scores over all programs and for each device.

    Raises:
        errors.CommandFailed: the command failed; the reason is its own message.
    """
    flags = _flags({"model": model, "store": store, "split": split, "part": part, **options})
    output = _run_for_function("eval", *flags, "--json", quiet=quiet)
    return json.loads(output.strip().splitlines()[-1])


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def main() -> None:
    """Replaces this process by the command."""
    program = command_path()
    os.execv(program, [program, *sys.argv[1:]])
