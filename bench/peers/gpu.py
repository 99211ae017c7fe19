#!/usr/bin/env python3
"""Tensorsmith on a GPU: products of matrices beside cuBLAS, by way of PyTorch where it is installed, and networks alone.

    bench/peers/gpu.py --tensorsmith BINARY [--device cuda] [--seconds 240] [--sizes 1024,2048,4096,8192]
                       [--networks resnet50,bert_base] [--log FILE]

Each case is an ONNX model that is tuned for its share of the seconds, checked against PyTorch where it has a peer, and timed in turns with the peer. Times are the device's own, medians of rounds; a ratio above 1
means that Tensorsmith is faster. One JSON line a case goes to the log.
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
from onnx import TensorProto, helper

ROUNDS = 3
try:
    import torch
    TORCH = torch if torch.cuda.is_available() else None
except ImportError:
    TORCH = None


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:4])}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return done.stdout


def matmul_model(path, m, n, k, dtype, epilogue):
    """y = x w, or GELU(x w + b) by the error function."""
    kind = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16}[dtype]
    element = {"f32": np.float32, "f16": np.float16}[dtype]
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((k, n)) / np.sqrt(k)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"])]
    out = "product"
    if epilogue:
        weights |= {"b": rng.standard_normal(n), "half": np.array(0.5), "one": np.array(1.0), "root": np.array(2 ** 0.5)}
        nodes += [helper.make_node("Add", ["product", "b"], ["sum"]), helper.make_node("Div", ["sum", "root"], ["scaled"]),
                  helper.make_node("Erf", ["scaled"], ["erf"]), helper.make_node("Add", ["erf", "one"], ["shifted"]),
                  helper.make_node("Mul", ["sum", "shifted"], ["twice"]), helper.make_node("Mul", ["twice", "half"], ["y"])]
        out = "y"
    graph = helper.make_graph(
        nodes, "gemm", [helper.make_tensor_value_info("x", kind, [m, k])], [helper.make_tensor_value_info(out, kind, [m, n])],
        [onnx.numpy_helper.from_array(value.astype(element), name) for name, value in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return {name: value.astype(element) for name, value in weights.items()}


def median_seconds(call, bytes_touched):
    """Of a PyTorch call on copies of its operands, more than the second cache holds, by events."""
    copies = max(1, min(16, int(2 * TORCH.cuda.get_device_properties(0).L2_cache_size / max(bytes_touched, 1)) + 1))
    for i in range(3):
        call(i % copies)
    TORCH.cuda.synchronize()
    times = []
    for i in range(20):
        start, end = TORCH.cuda.Event(enable_timing=True), TORCH.cuda.Event(enable_timing=True)
        start.record()
        call(i % copies)
        end.record()
        TORCH.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return float(np.median(times))


class MatmulPeer:
    def __init__(self, m, n, k, dtype, epilogue, weights):
        TORCH.backends.cuda.matmul.allow_tf32 = False
        kind = {"f32": TORCH.float32, "f16": TORCH.float16}[dtype]
        self.bytes = (m * k + k * n + m * n) * (4 if dtype == "f32" else 2)
        self.x = [TORCH.randn(m, k, device="cuda", dtype=kind) for _ in range(16)]
        self.w = [TORCH.from_numpy(weights["w"]).cuda() for _ in range(16)]
        self.b = TORCH.from_numpy(weights["b"]).cuda() if epilogue else None

    def call(self, i):
        if self.b is None:
            return self.x[i] @ self.w[i]
        return TORCH.nn.functional.gelu(TORCH.addmm(self.b, self.x[i], self.w[i]))

    def seconds(self):
        return median_seconds(self.call, self.bytes)

    def result(self, x):
        self.x[0] = TORCH.from_numpy(x).cuda()
        return self.call(0).float().cpu().numpy()


class Case:
    def __init__(self, name, model, flops, peer=None, tolerance=1e-3):
        self.name, self.model, self.flops, self.peer, self.tolerance = name, model, flops, peer, tolerance


def matmul_case(scratch, m, n, k, dtype, epilogue=False):
    name = f"gemm_{dtype}_{m}x{n}x{k}" + ("_bias_gelu" if epilogue else "")
    path = str(scratch / f"{name}.onnx")
    weights = matmul_model(path, m, n, k, dtype, epilogue)
    peer = MatmulPeer(m, n, k, dtype, epilogue, weights) if TORCH else None
    return Case(name, path, 2.0 * m * n * k, peer, 2e-2 if dtype == "f16" else 1e-3)


def check(args, scratch, case, compiled):
    """The largest relative difference from PyTorch, or none."""
    if case.peer is None:
        return None
    model = onnx.load(case.model, load_external_data=False)
    value = model.graph.input[0]
    shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
    element = np.float16 if value.type.tensor_type.elem_type == TensorProto.FLOAT16 else np.float32
    x = np.random.default_rng(1).standard_normal(shape).astype(element)
    np.save(scratch / "x.npy", x)
    run([args.tensorsmith, "run", compiled, "--input", f"{value.name}={scratch / 'x.npy'}", "--output", str(scratch / "y"),
         "--force"])
    ours = onnx.numpy_helper.to_array(onnx.load_tensor(str(scratch / "y" / "output_0.pb"))).astype(np.float32)
    theirs = case.peer.result(x)
    difference = float(np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-30))
    if difference > case.tolerance:
        raise RuntimeError(f"{case.name}: differs from PyTorch by {difference:.2e} of the largest value")
    return difference


def measure(args, scratch, case, seconds):
    compiled = str(scratch / "out")
    before = time.monotonic()
    run([args.tensorsmith, "tune", case.model, "--device", args.device, "--seconds", str(max(2, int(seconds))), "--quiet",
         "--db", str(scratch / "gpu.db"), "-o", compiled])
    tuning = time.monotonic() - before
    difference = check(args, scratch, case, compiled)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(json.loads(run([args.tensorsmith, "bench", compiled, "--seconds", "1", "--json"]))[0]["median_seconds"])
        if case.peer is not None:
            theirs.append(case.peer.seconds())
    row = {"case": case.name, "tuning_seconds": round(tuning, 1), "seconds": float(np.median(ours)),
           "seconds_of_rounds": ours}
    if case.flops:
        row["tflops"] = case.flops / row["seconds"] / 1e12
    if theirs:
        row |= {"peer_seconds": float(np.median(theirs)), "peer_of_rounds": theirs, "difference": difference}
        row["ratio"] = row["peer_seconds"] / row["seconds"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorsmith", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=240, help="for all tuning together")
    parser.add_argument("--sizes", default="1024,2048,4096,8192")
    parser.add_argument("--networks", default="resnet50,bert_base")
    parser.add_argument("--log")
    args = parser.parse_args()
    sizes = [int(s) for s in args.sizes.split(",") if s]
    networks = [n for n in args.networks.split(",") if n]
    failed = 0
    log = open(args.log, "a", buffering=1) if args.log else None
    print("peer:", f"PyTorch {TORCH.__version__}, {TORCH.cuda.get_device_name(0)}" if TORCH else "none (no PyTorch with CUDA)")
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        cases = [lambda s=s, d=d: matmul_case(scratch, s, s, s, d) for d in ("f16", "f32") for s in sizes]
        if sizes:
            s = sizes[len(sizes) // 2]
            cases.append(lambda: matmul_case(scratch, s, s, s, "f16", epilogue=True))
        cases += [lambda n=n: Case(n, f"zoo:{n}", 0) for n in networks]
        for make in cases:
            case = make()
            # A network has many tasks: half of the time is theirs.
            share = args.seconds / 2 / max(len(networks), 1) if case.model.startswith("zoo:") else \
                args.seconds / 2 / max(len(cases) - len(networks), 1)
            try:
                row = measure(args, scratch, case, share)
            except RuntimeError as error:
                failed = 1
                row = {"case": case.name, "error": str(error)}
            print(" ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()
                           if not k.endswith("rounds")), flush=True)
            if log:
                log.write(json.dumps(row) + "\n")
    ratios = {}
    if log:
        for line in open(args.log):
            row = json.loads(line)
            if "ratio" in row:
                ratios.setdefault(row["case"].split("_")[1] + ("_fused" if "gelu" in row["case"] else ""), []).append(row["ratio"])
    for kind, values in ratios.items():
        print(f"{kind}: geometric mean of peer / ours {np.exp(np.mean(np.log(values))):.3f} over {len(values)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
