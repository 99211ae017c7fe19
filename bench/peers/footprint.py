"""How soon a model's first output is there, and how much memory that takes, of each engine in a process of its own.

  footprint.py ENGINE RUNTIME MODEL.onnx COMPILED_DIR THREADS

prints JSON: `start_seconds` from loading the model to its first output, with the engine's library loaded already, and `peak_mb`, the most
memory that the process had since then beyond what it had before (VmHWM of /proc/self/status; pages of mapped files that are read count).
ENGINE is `tensorsmith` or one of engines.py. A compiled model was compiled before, as an engine's own cache would be.
"""
import json
import subprocess
import sys
import time

import numpy as np

from engines import PEERS, EngineCannot


def memory(field):
    """Megabytes."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":")) / 1024


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def measure(engine, runtime, onnx_file, directory, threads):
    from models import Compiled, load_library

    library = load_library(runtime)
    if engine != "tensorsmith":
        # For the shapes and types of the inputs; its memory is given back before.
        ours = Compiled(library, directory, 1)
        feed = {name: np.zeros(array.shape, array.dtype) for name, array in ours.inputs.items()}
        ours.close()
        PEERS[engine].load_library()
    before = memory("VmRSS")
    forget_peak()
    start = time.perf_counter()
    if engine == "tensorsmith":
        Compiled(library, directory, threads).run()
    else:
        PEERS[engine](onnx_file, threads, feed).run(feed)
    return {"start_seconds": time.perf_counter() - start, "peak_mb": memory("VmHWM") - before}


def footprint(engine, runtime, onnx_file, directory, threads):
    """Of a process of its own; none where the engine does not take the model."""
    words = [sys.executable, __file__, engine, runtime, onnx_file, directory, str(threads)]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        return None
    return json.loads(result.stdout.splitlines()[-1])


if __name__ == "__main__":
    try:
        print(json.dumps(measure(*sys.argv[1:5], int(sys.argv[5]))))
    except EngineCannot as why:
        sys.exit(str(why))
