#!/usr/bin/env python3
"""Times operators that have an algorithm (docs/operators.md) at sizes n, 10 n and 100 n, beside ONNX Runtime.

    build/peers/venv/bin/python bench/peers/algorithms.py --tensorsmith build/release/tensorsmith \\
        --runtime build/release/src/runtime/libtensorsmith_runtime.so --threads 2

The models are made here, compiled untuned, and run in turns with ONNX Runtime on the same inputs; the outputs are compared
first. DFT is compared with numpy in double precision instead, since ONNX Runtime's DFT of many points is inaccurate: the errors
of both are printed, and the ratio is not. growth: the time divided by that of the size before, where ten times are expected, or a little more for n log n.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import from_checkout  # noqa: F401
from peers.compare import Settings, compare, fill, slice_of_runs
from peers.engines import PEERS
from peers.own_model import loader

F = TensorProto.FLOAT


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model_of(node, inputs, initializers, outputs, opset=18):
    graph = helper.make_graph([node], node.op_type, inputs, [onnx.ValueInfoProto(name=o) for o in outputs], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def value(name, *shape):
    return helper.make_tensor_value_info(name, F, shape)


def topk(n, rng):
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"])
    return model_of(node, [value("x", 1, n)], [constant("k", np.array([min(n, 300)], np.int64))], ["v", "i"])


def cumsum(n, rng):
    node = helper.make_node("CumSum", ["x", "a"], ["y"])
    return model_of(node, [value("x", 8, n // 8)], [constant("a", np.array(1, np.int64))], ["y"])


def scatter_nd(n, rng):
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
    indices = rng.permutation(n // 16)[:, None].astype(np.int64)
    return model_of(node, [value("x", n // 16, 16), value("u", n // 16, 16)], [constant("i", indices)], ["y"])


def scatter_add(n, rng):
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction="add")
    indices = rng.integers(0, n // 64, (n // 16, 16)).astype(np.int64)
    return model_of(node, [value("x", n // 64, 16), value("u", n // 16, 16)], [constant("i", indices)], ["y"])


def dft(n, rng):
    node = helper.make_node("DFT", ["x"], ["y"], axis=1)
    return model_of(node, [value("x", 1, n, 1)], [], ["y"], opset=17)


def stft(n, rng):
    node = helper.make_node("STFT", ["x", "s", "w"], ["y"])
    return model_of(node, [value("x", 1, n, 1)],
                    [constant("s", np.array(160, np.int64)), constant("w", np.hanning(400).astype(np.float32))], ["y"])


def einsum(n, rng):
    rows = n // 64
    node = helper.make_node("Einsum", ["a", "b", "c"], ["y"], equation="ij,jk,kl->il")
    return model_of(node, [value("a", rows, 64), value("b", 64, 48), value("c", 48, 64)], [], ["y"])


def lstm(hidden):
    def make(n, rng):
        scale = hidden**-0.5
        weights = [constant(name, rng.uniform(-scale, scale, shape).astype(np.float32))
                   for name, shape in (("w", (1, 4 * hidden, hidden)), ("r", (1, 4 * hidden, hidden)), ("b", (1, 8 * hidden)))]
        node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=hidden)
        return model_of(node, [value("x", n, 1, hidden)], weights, ["y", "h", "c"])
    return make


def loop(n, rng):
    """A state of 64 numbers goes through a small layer n times; the states are collected. They stay away from 0, where
    denormal numbers are slow."""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["s", "m"], ["p"]), helper.make_node("Tanh", ["p"], ["t"]),
         helper.make_node("Identity", ["t"], ["kept"]), helper.make_node("Identity", ["go"], ["more"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         value("s", 1, 64)],
        [helper.make_tensor_value_info("more", TensorProto.BOOL, []), value("t", 1, 64), value("kept", 1, 64)],
        [constant("m", (rng.standard_normal((64, 64)) / 6).astype(np.float32))])
    node = helper.make_node("Loop", ["n", "", "x"], ["y", "all"], body=body)
    return model_of(node, [value("x", 1, 64)], [constant("n", np.array(n, np.int64))], ["y", "all"])


CASES = {"TopK, 300 largest": (topk, 2400), "CumSum": (cumsum, 8000), "ScatterND": (scatter_nd, 16384),
         "ScatterElements, add": (scatter_add, 16384), "DFT": (dft, 2000), "STFT, frames of 400": (stft, 4800),
         "Einsum of three matrices": (einsum, 6400),
         "LSTM of 128, n steps": (lstm(128), 50), "LSTM of 512, n steps": (lstm(512), 50), "Loop of n turns": (loop, 200)}


def compare_with_numpy(ours, file, threads, settings):
    """Returns our seconds, our largest error and that of ONNX Runtime, as shares of the largest value of the transform."""
    fill(ours.inputs, settings.seed)
    (x,) = ours.inputs.values()
    transform = np.fft.fft(x[..., 0].astype(np.float64), axis=1)
    wanted = np.stack([transform.real, transform.imag], axis=-1)
    ours.run()
    theirs = PEERS["onnxruntime"](file, threads, ours.inputs).run(ours.inputs)[0]
    own_error, other_error = (float(np.abs(y - wanted).max() / np.abs(wanted).max()) for y in (ours.outputs[0], theirs))
    return statistics.median(slice_of_runs(ours.run, settings.slice_seconds) for _ in range(settings.rounds)), own_error, other_error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorsmith", required=True)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="part of the names of the operators")
    arguments = parser.parse_args()
    load = loader(arguments.runtime)
    settings = Settings(rounds=arguments.rounds, rtol=1e-3, atol=1e-2)
    print(f"{'operator':28} {'n':>9} {'us':>10} {'growth':>7} {'ratio':>7}   p10 .. p90   (above 1: Tensorsmith is faster)")
    failed = False
    for name, (make, smallest) in CASES.items():
        if arguments.only not in name:
            continue
        before = None
        for n in (smallest, 10 * smallest, 100 * smallest):
            with tempfile.TemporaryDirectory() as scratch:
                file, compiled = str(pathlib.Path(scratch) / "model.onnx"), str(pathlib.Path(scratch) / "compiled")
                onnx.save(make(n, np.random.default_rng(1)), file)
                subprocess.run([arguments.tensorsmith, "compile", file, "--untuned", "--threads", str(arguments.threads), "-o",
                                compiled], check=True, stdout=subprocess.DEVNULL)
                ours = load(compiled, arguments.threads)
                if name == "DFT":
                    seconds, error, other_error = compare_with_numpy(ours, file, arguments.threads, settings)
                else:
                    (result,) = compare(ours, file, ["onnxruntime"], arguments.threads, settings)
                ours.close()
            if name == "DFT":
                growth = "" if before is None else f"{seconds / before:.1f}"
                before = seconds
                failed = failed or error > 1e-5
                print(f"{name:28} {n:9} {1e6 * seconds:10.1f} {growth:>7}           error {error:.1e}, ONNX Runtime {other_error:.1e}",
                      flush=True)
                continue
            if result.problem is not None:
                print(f"{name:28} {n:9} {result.problem}", flush=True)
                failed = failed or result.outputs_differ
                before = None
                continue
            growth = "" if before is None else f"{result.tensorsmith_seconds / before:.1f}"
            before = result.tensorsmith_seconds
            print(f"{name:28} {n:9} {1e6 * before:10.1f} {growth:>7} {result.ratio:7.2f}   {result.ratio_p10:.2f} .. "
                  f"{result.ratio_p90:.2f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
