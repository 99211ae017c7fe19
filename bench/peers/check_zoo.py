#!/usr/bin/env python3
"""Checks the network zoo with ONNX and ONNX Runtime.

  check_zoo.py --tensorsmith build/release/tensorsmith [--threads N] [--full-size] [NAME ...]

For each network (without names, for all): the exported file passes ONNX's checker and strict shape inference, and the
outputs of the untuned compiled model equal ONNX Runtime's (rtol 1e-3, atol 1e-4 of the largest output). Networks are
small and have batch 2; with --full-size they have their usual size and batch 1. Needs the packages of
requirements.txt. The exit code is 1 if a network fails.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

SMALL = {"alexnet": 64, "dcgan": 32, "inception_v3": 80, "vit_b_16": 32}
LIMITS = {"attention_mask": 2, "token_type_ids": 2}


def inputs_of(session, rng):
    feed = {}
    for given in session.get_inputs():
        if given.type == "tensor(int64)":
            feed[given.name] = rng.integers(0, LIMITS.get(given.name, 30000), given.shape)
        else:
            feed[given.name] = rng.standard_normal(given.shape).astype(np.float32)
    return feed


def save(path, array):
    path.write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())


def check(network, folder, args):
    run = lambda *words: subprocess.run([args.tensorsmith, *map(str, words)], check=True, capture_output=True, text=True)
    name = network["name"]
    model = folder / "model.onnx"
    size = []
    if not args.full_size:
        size = ["--batch", 2] + (["--size", SMALL.get(name, 40)] if "size" in network else ["--sequence", 9])
    run("zoo", "export", name, *size, "--seed", args.seed, "-o", model)
    proto = onnx.load(model)
    onnx.checker.check_model(proto, full_check=True)
    onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True)
    del proto
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = inputs_of(session, np.random.default_rng(args.seed))
    expected = session.run(None, feed)
    del session
    for i, array in enumerate(feed.values()):
        save(folder / f"input_{i}.pb", array)
    for i, array in enumerate(expected):
        if not np.isfinite(array).all():
            raise ValueError("an output is not finite")
        save(folder / f"output_{i}.pb", array)
    run("compile", model, "-o", folder / "compiled", "--untuned", "--threads", args.threads)
    largest = max(float(np.abs(array).max()) for array in expected)
    report = run("run", folder / "compiled", "--check", folder, "--threads", args.threads, "--rtol", 1e-3, "--atol",
                 1e-4 * largest, "--json")
    worst = max(o["worst_absolute_difference"] for o in json.loads(report.stdout)["outputs"])
    return f"largest difference {worst:.2g} of {largest:.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--tensorsmith", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--full-size", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    networks = json.loads(subprocess.run([args.tensorsmith, "zoo", "list", "--json"], check=True, capture_output=True).stdout)
    failed = 0
    for network in networks:
        if args.names and network["name"] not in args.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                line = "ok, " + check(network, pathlib.Path(folder), args)
            except subprocess.CalledProcessError as error:
                line = "FAILED: " + (error.stderr.strip() or error.stdout.strip())
            except Exception as error:  # a failure becomes the network's line of the report
                line = f"FAILED: {error}"
            failed += not line.startswith("ok")
            print(f"{network['name']}: {line}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
