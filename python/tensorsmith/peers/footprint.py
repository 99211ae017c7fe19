"""Time to a model's first output, and the memory that this takes, for each engine in a separate process.

    footprint ENGINE RUNTIME MODEL.onnx COMPILED_DIR THREADS

run as a module, prints JSON: `start_seconds` from loading the model to its first output, with the engine's library
already loaded, and `peak_mb`, the peak memory of the process in that time, less its memory before (VmHWM of
/proc/self/status; pages of mapped files count if they were read). ENGINE is `tensorsmith` or an engine of engines.py;
RUNTIME is the comparison's --runtime, and may be empty. A compiled model was compiled earlier, like the content of an
engine's own cache.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from .engines import PEERS, EngineCannot
from .own_model import loader


def _memory(field: str) -> float:
    """Returns a field of /proc/self/status in megabytes."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":")) / 1024


def _forget_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def _measure(engine: str, runtime: str, onnx_file: str, directory: str, threads: int) -> dict[str, float]:
    load = loader(runtime)
    if engine != "tensorsmith":
        # Loaded only to get the inputs' shapes and types; its memory is freed before the measurement.
        ours = load(directory, 1)
        feed = {name: np.zeros(array.shape, array.dtype) for name, array in ours.inputs.items()}
        ours.close()
        PEERS[engine].load_library()
    before = _memory("VmRSS")
    _forget_peak()
    start = time.perf_counter()
    if engine == "tensorsmith":
        load(directory, threads).run()
    else:
        PEERS[engine](onnx_file, threads, feed).run(feed)
    return {"start_seconds": time.perf_counter() - start, "peak_mb": _memory("VmHWM") - before}


def footprint(engine: str, runtime: str, onnx_file: str, directory: str, threads: int) -> dict[str, float] | None:
    """Returns the footprint measured in a separate process; None if the engine cannot run the model."""
    assert __package__ is not None
    root = str(Path(__file__).absolute().parents[__package__.count(".") + 1])
    # Appended to the path, since modules of this package have common names.
    program = (
        f"import runpy, sys; sys.path.append({root!r}); "
        f"runpy.run_module({__package__ + '.footprint'!r}, run_name='__main__', alter_sys=True)"
    )
    words = [sys.executable, "-c", program, engine, runtime, onnx_file, directory, str(threads)]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        return None
    return json.loads(result.stdout.splitlines()[-1])


if __name__ == "__main__":
    try:
        print(json.dumps(_measure(*sys.argv[1:5], int(sys.argv[5]))))
    except EngineCannot as why:
        sys.exit(str(why))
