#!/usr/bin/env python3
"""Compares Tensorsmith on a GPU with the vendor's libraries: matrix products (cuBLAS) and convolutions of a network
(cuDNN), both through PyTorch, and whole networks with PyTorch and ONNX Runtime, if these are installed.

    bench/peers/gpu.py --tensorsmith BINARY [--device cuda] [--seconds 240] [--sizes 1024,2048,4096,8192]
                       [--product-types f16,f32] [--convolutions resnet50] [--convolution-types f32,f16]
                       [--networks resnet50,bert_base] [--log FILE] [--db FILE]

Each case is an ONNX model. It is tuned for its share of the seconds, its outputs are checked with the peer's, and
both are timed in turns. All products of one size are one model, and so are all convolutions of a network; their
kernels run one after the other, and so do the peer's, on uniform data. The type tf32 is f32 with factors rounded to
TF32, here and by the peer. Times are measured by the device, medians over rounds; a ratio above 1 means that
Tensorsmith is faster. The log gets one JSON line per result; --db keeps all measured programs. Without a GPU
(--device opencl, PoCL) peers compute on the processor: this tests the script, but its ratios have no meaning.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

import from_checkout  # noqa: F401
import gpu_models
import gpu_peers
from peers.engines import EngineCannot

ROUNDS = 3
TOLERANCE = {"f32": 1e-3, "f16": 2e-2, "tf32": 5e-3}  # relative to the largest value of an output
# Shares of the tuning time for products, convolutions and networks. The share of a kind without cases goes to the
# others.
SHARES = {"product": 0.55, "convolution": 0.2, "network": 0.25}


class CaseFailed(Exception):
    """The reason why a case failed, in one line."""


def run(command, seconds=300):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise CaseFailed(f"{' '.join(command[:3])}: not done after {seconds:.0f} s") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"ended with {done.returncode}"]
        raise CaseFailed(f"{' '.join(command[:3])}: {said[-1]}")
    return done.stdout


def difference(name, ours, theirs, tolerance):
    """Returns the largest difference of any output, relative to the largest value of that output."""
    worst = 0.0
    for one, other in zip(ours, theirs, strict=True):
        worst = max(worst, float(np.max(np.abs(one - other)) / max(np.max(np.abs(other)), 1e-30)))
    if not worst <= tolerance:
        raise CaseFailed(f"{name}: an output differs from the peer's by {worst:.2e} of its largest value")
    return worst


class Ours:
    """A model, tuned and run by Tensorsmith."""

    def __init__(self, args, scratch, model, seconds, dtype="f32"):
        self.args, self.scratch, self.model = args, scratch, model
        self.reading = ["--tf32"] if dtype == "tf32" else []
        self.compiled = str(scratch / "out")
        before = time.monotonic()
        run([args.tensorsmith, "tune", model, *self.reading, "--device", args.device, "--seconds", str(max(2, int(seconds))), "--quiet",
             "--skip-end-to-end", "--db", args.db or str(scratch / "gpu.db"), "-o", self.compiled], 60 + 3 * seconds)
        self.tuning_seconds = round(time.monotonic() - before, 1)

    def outputs(self, inputs):
        """Returns the outputs in the model's order, as f32. `inputs` has arrays by name."""
        command = [self.args.tensorsmith, "run", self.compiled, "--output", str(self.scratch / "y"), "--force"]
        for name, array in inputs.items():
            np.save(self.scratch / f"{name}.npy", array)
            command += ["--input", f"{name}={self.scratch / name}.npy"]
        run(command)
        count = len(onnx.load(self.model, load_external_data=False).graph.output)
        return [np.load(self.scratch / "y" / f"output_{i}.npy").astype(np.float32) for i in range(count)]

    def seconds(self):
        return json.loads(run([self.args.tensorsmith, "bench", self.compiled, "--seconds", "1", "--json"]))[0]["median_seconds"]

    def seconds_by_task(self):
        rows = json.loads(run([self.args.tensorsmith, "bench", self.compiled, "--profile", "--json"]))
        return {row["task"]: row["seconds"] / row["calls"] for row in rows}

    def tasks_of_nodes(self):
        """Returns the name of each node's task, by the name of the node."""
        tasks = json.loads(run([self.args.tensorsmith, "tasks", self.model, *self.reading, "--json"]))["tasks"]
        return {node: task["name"] for task in tasks for node in task["nodes"]}


def timed_row(name, ours, peers):
    """Times Tensorsmith's model and all peers in turns. The ratio is the fastest peer's time divided by
    Tensorsmith's."""
    own, theirs = [], {peer_name: [] for peer_name in peers}
    for _ in range(ROUNDS):
        own.append(ours.seconds())
        for peer_name, peer in peers.items():
            theirs[peer_name].append(float(np.median(peer.seconds())))
    row = {"case": name, "tuning_seconds": ours.tuning_seconds, "seconds": float(np.median(own)), "seconds_of_rounds": own}
    if theirs:
        medians = {peer_name: float(np.median(times)) for peer_name, times in theirs.items()}
        fastest = min(medians, key=medians.get)
        row |= {"peer": fastest, "peer_seconds": medians[fastest], "peers_of_rounds": theirs,
                "ratio": medians[fastest] / row["seconds"]}
    return row


def rows_by_task(ours, prefix, node, cases, peers, apart):
    """Returns a row for each case, with the kernel's time and the peer's. Case i is the model's node `node`_i."""
    tasks = ours.tasks_of_nodes()
    own, theirs = [[] for _ in cases], [[] for _ in cases]
    for _ in range(ROUNDS):
        by_task = ours.seconds_by_task()
        of_peers = gpu_peers.calls_in_turns(peers) if peers else []
        for i in range(len(cases)):
            own[i].append(by_task[tasks[f"{node}_{i}"]])
            if peers:
                theirs[i].append(of_peers[i])
    rows = []
    for i, case in enumerate(cases):
        row = {"case": prefix + case.text(), "tuning_seconds": ours.tuning_seconds, "seconds": float(np.median(own[i])),
               "seconds_of_rounds": own[i]}
        row["tflops"] = case.flops() / row["seconds"] / 1e12
        if peers:
            row |= {"peer": "pytorch", "peer_seconds": float(np.median(theirs[i])), "peers_of_rounds": theirs[i],
                    "difference": apart[i]}
            row["ratio"] = row["peer_seconds"] / row["seconds"]
        rows.append(row)
    return rows


def products_case(args, scratch, seconds, products, dtype="f32"):
    """Compares matrix products. With the dtype tf32 all of them are rounded to it, since that is an option of a whole
    model."""
    path = str(scratch / "products.onnx")
    gpu_models.products_side_by_side(path, products)
    ours = Ours(args, scratch, path, seconds, dtype)
    peers = [gpu_peers.matmul(p.x, p.w, p.b, dtype == "tf32") for p in products] if gpu_peers.torch_device() else []
    outputs = ours.outputs({f"x_{i}": p.x for i, p in enumerate(products)}) if peers else []
    apart = [difference(p.text(), [ours_out], [peer.result()], TOLERANCE[p.dtype])
             for p, ours_out, peer in zip(products, outputs, peers)]
    return rows_by_task(ours, "", "gemm", products, peers, apart)


def convolutions_case(args, scratch, seconds, network, dtype):
    """Compares the convolutions of a network, which are side by side in one model. Returns a row for each."""
    source = str(scratch / f"{network}.onnx")
    run([args.tensorsmith, "zoo", "export", network, "-o", source, "--force"])
    convolutions = gpu_models.convolutions_of(source)
    path = str(scratch / f"{network}_convolutions_{dtype}.onnx")
    inputs, weights = gpu_models.side_by_side(path, convolutions, dtype)
    ours = Ours(args, scratch, path, seconds, dtype)
    peers = [gpu_peers.convolution(x, w, c.stride, c.padding, c.groups, dtype == "tf32")
             for c, x, w in zip(convolutions, inputs, weights)] if gpu_peers.torch_device() else []
    outputs = ours.outputs({f"x_{i}": x for i, x in enumerate(inputs)}) if peers else []
    apart = [difference(c.text(), [ours_out], [peer.result()], TOLERANCE[dtype])
             for c, ours_out, peer in zip(convolutions, outputs, peers)]
    return rows_by_task(ours, f"conv_{dtype}_", "conv", convolutions, peers, apart)


def network_case(args, scratch, seconds, network):
    path = str(scratch / f"{network}.onnx")
    run([args.tensorsmith, "zoo", "export", network, "-o", path, "--force"])
    ours = Ours(args, scratch, path, seconds)
    inputs = network_inputs(path)
    peers, missing = {}, {}
    for kind in gpu_peers.NETWORK_PEERS:
        try:
            peers[kind.name] = kind(path, inputs)
        except EngineCannot as error:
            missing[kind.name] = str(error)
    outputs = ours.outputs(inputs) if peers else []
    apart = [difference(f"{network} and {name}", outputs, peer.results(), TOLERANCE["f32"]) for name, peer in peers.items()]
    row = timed_row(f"network_{network}", ours, peers)
    return [row | ({"difference": max(apart)} if apart else {}) | ({"peers_missing": missing} if missing else {})]


def network_inputs(path):
    rng = np.random.default_rng(1)
    inputs = {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        element = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        # Zeros and ones are valid as indices of any table and as a mask.
        inputs[value.name] = rng.standard_normal(shape).astype(element) if np.issubdtype(element, np.floating) else \
            rng.integers(0, 2, shape).astype(element)
    return inputs


def all_cases(args):
    """Returns for each case (kind, name, weight within its kind, function of args, scratch and seconds that returns
    rows)."""
    split = lambda text: [part for part in text.split(",") if part]
    sizes = [int(size) for size in split(args.sizes)]
    cases = [("convolution", f"{network} {dtype}", 1, lambda *a, n=network, d=dtype: convolutions_case(*a, n, d))
             for network in split(args.convolutions) for dtype in split(args.convolution_types)]
    cases += [("network", network, 1, lambda *a, n=network: network_case(*a, n)) for network in split(args.networks)]
    # Ascending sizes: knowledge from small products is tried on the larger ones, whose tuning takes longest.
    types = split(args.product_types)
    for size in sorted(sizes):
        products = [(size, dtype) for dtype in types if dtype != "tf32"]
        if "f16" in types and size == sizes[len(sizes) // 2]:
            products.append((size, "f16", True))
        if products:
            cases.append(("product", f"products of {size}", 1 + size / 4096,
                          lambda *a, products=products: products_case(*a, [gpu_models.Product(*p) for p in products])))
        if "tf32" in types:
            cases.append(("product", f"products of {size} tf32", (1 + size / 4096) / 3,
                          lambda *a, size=size: products_case(*a, [gpu_models.Product(size, "tf32")], "tf32")))
    return cases


def group_of(row):
    """Returns the name of the group in whose mean the row counts."""
    kind, dtype = row["case"].split("_")[:2]
    kind = {"gemm": "product", "conv": "convolution"}.get(kind, kind)
    return "network" if kind == "network" else f"{kind} {dtype}" + (" fused" if row["case"].endswith("gelu") else "")


def print_row(row):
    shown = {k: v for k, v in row.items() if not k.endswith("rounds")}
    print(" ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in shown.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorsmith", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=240, help="tuning time of all cases together")
    parser.add_argument("--sizes", default="1024,2048,4096,8192")
    parser.add_argument("--product-types", default="f16,f32")
    parser.add_argument("--convolutions", default="resnet50", help="networks of the zoo, whose convolutions are timed one by one")
    parser.add_argument("--convolution-types", default="f32,f16")
    parser.add_argument("--networks", default="resnet50,bert_base")
    parser.add_argument("--log")
    parser.add_argument("--db", help="database that keeps all measured programs")
    args = parser.parse_args()
    gpu_peers.prepare_torch()
    place = gpu_peers.torch_device()
    if place is None:
        print("peers: none (no PyTorch)")
    else:
        torch = gpu_peers.torch
        print(f"peers: PyTorch {torch.__version__},",
              torch.cuda.get_device_name(0) if place == "cuda" else "on the processor: ratios are void")
    cases = all_cases(args)
    present = sum(SHARES[kind] for kind in {kind for kind, *_ in cases})
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, name, share, measure in cases:
            of_kind = sum(others for other, _, others, _ in cases if other == kind) / share
            try:
                made = measure(args, pathlib.Path(folder), args.seconds * SHARES[kind] / present / of_kind)
            except (CaseFailed, RuntimeError) as error:  # PyTorch raises RuntimeError
                failed = 1
                made = [{"case": f"{kind} {name}", "error": str(error).splitlines()[0]}]
            for row in made:
                print_row(row)
                if args.log:
                    with open(args.log, "a") as log:
                        log.write(json.dumps(row) + "\n")
            rows += made
    groups = {}
    for row in rows:
        if "ratio" in row:
            groups.setdefault(group_of(row), []).append(row["ratio"])
    for group, ratios in groups.items():
        print(f"{group}: geometric mean of peer / ours {np.exp(np.mean(np.log(ratios))):.3f} over {len(ratios)}, "
              f"least {min(ratios):.3f}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
