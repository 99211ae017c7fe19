#!/usr/bin/env python3
"""Whole models: latency of compiled models against other engines, in one interleaved run.

  models.py --runtime libtensorsmith_runtime.so --threads 1,2 NAME=MODEL.onnx:COMPILED_DIR ...

--peers names the others: onnxruntime (default), openvino, inductor, litert (engines.py). In each round the engines run one after the other for a slice of time;
a round's ratio is the quotient of two median latencies. Printed: medians over the rounds, the median ratio (> 1: Tensorsmith is
faster) and the 10th and 90th percentile of the rounds' ratios. Outputs are compared first (rtol 1e-3, atol 1e-4 by default); where
they differ the two are not compared, and the exit code is 1. All engines prepare for the shapes that the model was compiled for and compute in the
model's own types (OpenVINO's bf16 for f32 models is off). A peer that cannot take a model says so and is left out. --footprint adds the
seconds to the first output and the memory (footprint.py).

  models.py --print-shapes MODEL.onnx [--dim NAME=EXTENT ...]

prints the --shape options that `tensorsmith compile` needs for the model: symbolic dimensions are 1 unless --dim says otherwise;
names that the model does not have are ignored.
"""
import argparse
import ctypes
import json
import math
import statistics
import sys
import time

import numpy as np

from engines import PEERS, EngineCannot, OnnxRuntime
from footprint import footprint

DTYPES = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, None,
          np.float32, np.float64]


def aligned(shape, dtype):
    """A zeroed array at an address divisible by 64: the runtime uses such tensors in place."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size].view(dtype).reshape(shape)


class Compiled:
    """A compiled model through the C interface."""

    def __init__(self, library, directory, threads):
        self.lib = library
        self.model = ctypes.c_void_p()
        self.check(library.ts_model_load(directory.encode(), threads, ctypes.byref(self.model)))
        self.inputs = {}
        for i in range(library.ts_model_num_inputs(self.model)):
            self.inputs[library.ts_model_input_name(self.model, i).decode()] = self.tensor("input", i)
        self.outputs = [self.tensor("output", i) for i in range(library.ts_model_num_outputs(self.model))]
        pointers = lambda arrays: (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        self.input_pointers = pointers(list(self.inputs.values()))
        self.output_pointers = pointers(self.outputs)

    def check(self, status):
        if status:
            sys.exit("error: " + self.lib.ts_last_error().decode())

    def tensor(self, kind, i):
        lib = self.lib
        rank = getattr(lib, f"ts_model_{kind}_rank")(self.model, i)
        dims = getattr(lib, f"ts_model_{kind}_dims")(self.model, i)
        return aligned([dims[d] for d in range(rank)], DTYPES[getattr(lib, f"ts_model_{kind}_dtype")(self.model, i)])

    def run(self):
        self.check(self.lib.ts_model_run(self.model, self.input_pointers, self.output_pointers))

    def close(self):
        self.lib.ts_model_free(self.model)


def load_library(path):
    lib = ctypes.CDLL(path)
    lib.ts_last_error.restype = ctypes.c_char_p
    lib.ts_model_load.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    lib.ts_model_free.argtypes = [ctypes.c_void_p]
    lib.ts_model_run.argtypes = [ctypes.c_void_p] * 3
    for kind in ("input", "output"):
        count = getattr(lib, f"ts_model_num_{kind}s")
        count.argtypes, count.restype = [ctypes.c_void_p], ctypes.c_size_t
        for what, result in (("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
                             ("dims", ctypes.POINTER(ctypes.c_int64))):
            function = getattr(lib, f"ts_model_{kind}_{what}")
            function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t], result
    return lib


def slice_of_runs(run, seconds):
    """The median latency of the runs that fit into `seconds`, at least two, after one that does not count."""
    run()
    times = []
    stop = time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < stop:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def percentile(values, p):
    return float(np.percentile(np.array(values), p))


def print_shapes(onnx_file, given):
    dims = {}
    for text in given:
        name, _, extent = text.rpartition("=")
        if not name or not extent.isdigit() or int(extent) < 1:
            sys.exit(f"error: --dim '{text}' is not NAME=EXTENT")
        dims[name] = int(extent)
    for given_input in OnnxRuntime.open_inputs(onnx_file):
        if all(isinstance(dim, int) for dim in given_input.shape):
            continue
        extents = [dim if isinstance(dim, int) else dims.get(dim, 1) for dim in given_input.shape]
        print("--shape", f"{given_input.name}={'x'.join(map(str, extents))}", sep="\n")


def compare(library, name, onnx_file, directory, threads, args):
    """A row for each peer."""
    ours = Compiled(library, directory, threads)
    rng = np.random.default_rng(args.seed)
    for array in ours.inputs.values():
        if np.issubdtype(array.dtype, np.floating):
            array[...] = rng.standard_normal(array.shape).astype(array.dtype)
        else:
            # All values of bytes, so that sums which saturate are seen; others may be indices.
            byte = array.dtype in (np.uint8, np.int8)
            low, high = (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max) if byte else (0, 1)
            array[...] = rng.integers(low, high + 1, array.shape)
    ours.run()
    peers = []
    for peer_name in args.peers:
        try:
            peer = PEERS[peer_name](onnx_file, threads, ours.inputs)
        except EngineCannot as why:
            print(f"{name}: {peer_name}: {why}; not compared", file=sys.stderr)
            continue
        wanted = peer.run(ours.inputs)
        worst = max(float(np.max(np.abs(got.astype(np.float64) - np.asarray(want).astype(np.float64)), initial=0))
                    for got, want in zip(ours.outputs, wanted))
        if all(np.allclose(got, want, rtol=args.rtol, atol=args.atol) for got, want in zip(ours.outputs, wanted)):
            peers.append(peer)
        else:
            print(f"error: {name}: the outputs differ from those of {peer.version} by up to {worst:g}; not compared",
                  file=sys.stderr)
            args.failed = True
    own_times, peer_times = [], [[] for _ in peers]
    for _ in range(args.rounds):
        own_times.append(slice_of_runs(ours.run, args.slice))
        time.sleep(args.pause)
        for peer, times in zip(peers, peer_times):
            times.append(slice_of_runs(lambda peer=peer: peer.run(ours.inputs), args.slice))
            time.sleep(args.pause)  # other engines' threads spin for a while
    ours.close()
    rows = []
    for peer, times in zip(peers, peer_times):
        ratios = [theirs / own for theirs, own in zip(times, own_times)]
        rows.append({"model": name, "threads": threads, "peer": peer.version,
                     "tensorsmith_ms": 1e3 * statistics.median(own_times), "peer_ms": 1e3 * statistics.median(times),
                     "ratio": statistics.median(ratios), "ratio_p10": percentile(ratios, 10),
                     "ratio_p90": percentile(ratios, 90)})
    return rows


def print_footprints(name, onnx_file, directory, threads, args):
    """Of all engines, interleaved; medians of three processes each."""
    engines = ["tensorsmith", *args.peers]
    found = {engine: [] for engine in engines}
    for _ in range(3):
        for engine in engines:
            one = footprint(engine, args.runtime, onnx_file, directory, threads)
            if one is not None:
                found[engine].append(one)
    rows = []
    for engine, ones in found.items():
        if not ones:
            continue
        row = {"model": name, "threads": threads, "engine": engine}
        for key in ("start_seconds", "peak_mb"):
            row[key] = statistics.median(one[key] for one in ones)
        rows.append(row)
        if not args.json:
            print(f"{name:<22} {threads:>7} {engine:<12} first output after {1e3 * row['start_seconds']:.0f} ms, "
                  f"{row['peak_mb']:.0f} MB", flush=True)
    return rows


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")


def fastest_peers(results):
    """The ratio to the fastest peer, for each model and number of threads."""
    least = {}
    for r in results:
        key = (r["model"], r["threads"])
        least[key] = min(least.get(key, math.inf), r["ratio"])
    return list(least.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="NAME=MODEL.onnx:COMPILED_DIR",
                        help="in COMPILED_DIR, {threads} stands for the number of threads")
    parser.add_argument("--runtime", help="libtensorsmith_runtime.so")
    parser.add_argument("--print-shapes", metavar="MODEL.onnx")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=EXTENT")
    parser.add_argument("--peers", default="onnxruntime", help="other engines, by commas: " + ", ".join(PEERS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--slice", type=float, default=0.1, help="seconds an engine runs in a round")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between the engines")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-4)
    parser.add_argument("--footprint", action="store_true", help="also the time to the first output, and the memory")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.print_shapes:
        print_shapes(args.print_shapes, args.dim)
        return
    if not args.models or not args.runtime:
        parser.error("models and --runtime are needed")
    args.failed = False
    args.peers = args.peers.split(",")
    for peer in args.peers:
        if peer not in PEERS:
            sys.exit(f"error: --peers '{peer}' is not one of {', '.join(PEERS)}")
    library = load_library(args.runtime)
    results, footprints = [], []
    if not args.json:
        print("ratio > 1: Tensorsmith is faster")
        print(f"{'model':<22} {'threads':>7} {'tensorsmith ms':>15} {'peer ms':>11} {'ratio':>7}   p10 .. p90   peer")
    for threads in [int(t) for t in args.threads.split(",")]:
        for spec in args.models:
            name, _, rest = spec.partition("=")
            onnx_file, _, directory = rest.rpartition(":")
            if not name or not onnx_file:
                sys.exit(f"error: '{spec}' is not NAME=MODEL.onnx:COMPILED_DIR")
            rows = compare(library, name, onnx_file, directory.replace("{threads}", str(threads)), threads, args)
            results += rows
            if args.footprint:
                footprints += print_footprints(name, onnx_file, directory.replace("{threads}", str(threads)), threads, args)
            for r in [] if args.json else rows:
                print(f"{r['model']:<22} {threads:>7} {r['tensorsmith_ms']:>15.3f} {r['peer_ms']:>11.3f} "
                      f"{r['ratio']:>7.3f}   {r['ratio_p10']:.3f} .. {r['ratio_p90']:.3f}   {r['peer']}",
                      flush=True)
    ratios_of = {}
    for r in results:
        ratios_of.setdefault(r["peer"], []).append(r["ratio"])
    if len(ratios_of) > 1:
        ratios_of["the fastest of them"] = fastest_peers(results)
    means = {}
    for peer, ratios in ratios_of.items():
        means[peer] = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        if not args.json:
            print(f"{peer}: geometric mean {means[peer]:.3f}, worst {min(ratios):.3f}")
    if args.json:
        print(json.dumps({"processor": processor(), "results": results, "geometric_means": means, "footprints": footprints}))
    sys.exit(1 if args.failed else 0)


if __name__ == "__main__":
    main()
