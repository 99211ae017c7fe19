"""Compares compiled models with other engines, in one interleaved run.

  python -m tensorsmith.peers --threads 1,2 NAME=MODEL.onnx:COMPILED_DIR ...

--peers names the other engines: onnxruntime (default), openvino, inductor, litert. In each round the engines run one
after the other for a slice of time; a round's ratio is the quotient of two median latencies. Printed are medians over
the rounds, the median ratio (above 1 Tensorsmith is faster) and the 10th and 90th percentile of the rounds' ratios.
Outputs are compared first (rtol 1e-3, atol 1e-4 by default). If they differ, the engine is not timed, and the exit
code is 1. All engines prepare for the shapes that the model was compiled for and compute in the model's own types
(OpenVINO's bf16 for f32 models is off). An engine that cannot run a model is left out, and a line gives the reason.
--footprint adds the seconds until the first output and the memory. `tensorsmith report --peers FILE` can display the
output of --json.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Sequence
from typing import Any

from .compare import Settings, compare
from .engines import PEERS
from .footprint import footprint
from .own_model import load_error, loader


def _rows(name: str, onnx_file: str, directory: str, threads: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Returns a row for each engine that was compared."""
    ours = args.load(directory, threads)
    settings = Settings(args.rounds, args.slice, args.pause, args.seed, args.rtol, args.atol)
    rows = []
    for one in compare(ours, onnx_file, args.peers, threads, settings):
        if one.problem is not None:
            args.failed = args.failed or one.outputs_differ
            error = "error: " if one.outputs_differ else ""
            print(f"{error}{name}: {one.engine}: {one.problem}; not compared", file=sys.stderr)
            continue
        assert one.tensorsmith_seconds is not None
        assert one.engine_seconds is not None
        rows.append(
            {
                "model": name,
                "threads": threads,
                "peer": one.engine,
                "tensorsmith_ms": 1e3 * one.tensorsmith_seconds,
                "peer_ms": 1e3 * one.engine_seconds,
                "ratio": one.ratio,
                "ratio_p10": one.ratio_p10,
                "ratio_p90": one.ratio_p90,
            }
        )
    ours.close()
    return rows


def _footprints(
    name: str, onnx_file: str, directory: str, threads: int, args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Returns the footprints of all engines. Their processes are interleaved; a footprint is a median of three."""
    engines = ["tensorsmith", *args.peers]
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    for _ in range(3):
        for engine in engines:
            one = footprint(engine, args.runtime, onnx_file, directory, threads)
            if one is not None:
                found[engine].append(one)
    rows = []
    for engine, ones in found.items():
        if not ones:
            continue
        row: dict[str, Any] = {"model": name, "threads": threads, "engine": engine}
        for key in ("start_seconds", "peak_mb"):
            row[key] = statistics.median(one[key] for one in ones)
        rows.append(row)
        if not args.json:
            print(
                f"{name:<22} {threads:>7} {engine:<12} first output after {1e3 * row['start_seconds']:.0f} ms, "
                f"{row['peak_mb']:.0f} MB",
                flush=True,
            )
    return rows


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")


def _geometric_means(results: Sequence[dict[str, Any]], quiet: bool) -> dict[str, float]:
    """Returns the geometric means of the ratios by engine, and for the fastest engine of each model and threads."""
    ratios_of: dict[str, list[float]] = {}
    least: dict[tuple[str, int], float] = {}
    for r in results:
        ratios_of.setdefault(r["peer"], []).append(r["ratio"])
        key = (r["model"], r["threads"])
        least[key] = min(least.get(key, math.inf), r["ratio"])
    if len(ratios_of) > 1:
        ratios_of["the fastest of them"] = list(least.values())
    means = {}
    for peer, ratios in ratios_of.items():
        means[peer] = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        if not quiet:
            print(f"{peer}: geometric mean {means[peer]:.3f}, worst {min(ratios):.3f}")
    return means


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "models",
        nargs="+",
        metavar="NAME=MODEL.onnx:COMPILED_DIR",
        help="in COMPILED_DIR, {threads} stands for the number of threads",
    )
    parser.add_argument(
        "--runtime", default="", help="libtensorsmith_runtime.so that runs the compiled models instead of the package"
    )
    parser.add_argument(
        "--peers", default="onnxruntime", help="other engines (separated by commas): " + ", ".join(PEERS)
    )
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas (default: 1,2)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--slice", type=float, default=0.1, help="seconds that an engine runs in a round")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between the engines")
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs")
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--atol", type=float, default=1e-4)
    parser.add_argument(
        "--footprint", action="store_true", help="print the time to the first output and the memory, too"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()
    args.peers = args.peers.split(",")
    for peer in args.peers:
        if peer not in PEERS:
            sys.exit(f"error: --peers '{peer}' is not one of {', '.join(PEERS)}")
    if not args.runtime and __package__ == "peers":
        parser.error("--runtime is needed where the package tensorsmith is not installed")
    return args


def main() -> None:
    """Runs the command."""
    args = _parse()
    args.load = loader(args.runtime)
    args.failed = False
    results: list[dict[str, Any]] = []
    footprints: list[dict[str, Any]] = []
    if not args.json:
        print("ratio > 1: Tensorsmith is faster")
        print(f"{'model':<22} {'threads':>7} {'tensorsmith ms':>15} {'peer ms':>11} {'ratio':>7}   p10 .. p90   peer")
    for threads in [int(t) for t in args.threads.split(",")]:
        for spec in args.models:
            name, _, rest = spec.partition("=")
            onnx_file, _, directory = rest.rpartition(":")
            if not name or not onnx_file:
                sys.exit(f"error: '{spec}' is not NAME=MODEL.onnx:COMPILED_DIR")
            directory = directory.replace("{threads}", str(threads))
            try:
                rows = _rows(name, onnx_file, directory, threads, args)
            except load_error(args.runtime) as error:
                sys.exit(f"error: {error}")
            results += rows
            if args.footprint:
                footprints += _footprints(name, onnx_file, directory, threads, args)
            for r in [] if args.json else rows:
                print(
                    f"{r['model']:<22} {threads:>7} {r['tensorsmith_ms']:>15.3f} {r['peer_ms']:>11.3f} "
                    f"{r['ratio']:>7.3f}   {r['ratio_p10']:.3f} .. {r['ratio_p90']:.3f}   {r['peer']}",
                    flush=True,
                )
    means = _geometric_means(results, args.json)
    if args.json:
        document = {
            "processor": _processor(),
            "results": results,
            "geometric_means": means,
            "footprints": footprints,
        }
        print(json.dumps(document))
    sys.exit(1 if args.failed else 0)


if __name__ == "__main__":
    main()
