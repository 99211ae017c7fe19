"""The program under test: a process that reads requests and runs models (tests/oracle/runner)."""

import json
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import tempfile

import numpy as np

from . import dtypes as d

TIMEOUT = 60.0


class Crash(Exception):
    """The process ended or hung."""


class Runner:
    def __init__(self, program, scratch=None):
        self.program = str(program)
        base = scratch or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="fuzz_graphs_", dir=base))
        self.process = None

    def close(self):
        self._stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def _start(self):
        self.errors = open(self.directory / "stderr", "w+b")
        # The runner ends with its parent; its stderr carries the sanitizers' messages.
        self.process = subprocess.Popen(
            [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )

    def run(self, model, inputs, runs, timeout=TIMEOUT):
        """Returns the runner's answer with each run's outputs: answer["runs"][i]["outputs"], arrays or None."""
        case = self.directory / "case"
        shutil.rmtree(case, ignore_errors=True)
        case.mkdir()
        (case / "model.onnx").write_bytes(model.SerializeToString())
        for i, info in enumerate(model.graph.input):
            (case / f"input_{i}.bin").write_bytes(np.ascontiguousarray(inputs[info.name]).tobytes())
        answer = self._ask({"directory": str(case), "runs": runs}, timeout)
        for r, run in enumerate(answer["runs"]):
            if "stage" in run:
                run["outputs"] = None
                continue
            if run["same_as"] >= 0:
                run["outputs"] = answer["runs"][run["same_as"]]["outputs"]
                continue
            run["outputs"] = []
            for i, info in enumerate(answer["outputs"]):
                dtype = d.FROM_RUNNER[info["dtype"]]
                raw = (case / f"output_{r}_{i}.bin").read_bytes()
                if dtype == d.BOOL:
                    bytes_ = np.frombuffer(raw, np.uint8)
                    if bytes_.size and bytes_.max() > 1:
                        run["stage"], run["error"] = "outputs", f"output {i}: a bool is a byte of {bytes_.max()}"
                run["outputs"].append(np.frombuffer(raw, dtype).reshape(info["shape"]))
        return answer

    def _ask(self, request, timeout):
        if self.process is None:
            self._start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._crashed() from None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout):
                self._stop()
                raise Crash(f"no answer within {timeout:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise self._crashed()
        return json.loads(line)

    def _crashed(self):
        code = self.process.wait()
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace").strip().splitlines()
        self._stop()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Crash(how + (": " + text[-1][:300] if text else ""))


def operators(program):
    return subprocess.run([str(program), "--operators"], check=True, capture_output=True, text=True).stdout.split()


def devices(program):
    return subprocess.run([str(program), "--devices"], check=True, capture_output=True, text=True).stdout.split()
