"""Checks with TVM what `db export --format metaschedule` writes, and writes down the loops that TVM makes of it.

    python3 -m venv tvm
    tvm/bin/pip install apache-tvm==0.27.0.post1 numpy
    tvm/bin/python tests/oracle/metaschedule.py tests/data/metaschedule_export

The folder has database_workload.json and database_tuning_record.json, as tests/record/metaschedule_export_test.cc
writes them with TENSORSMITH_UPDATE_GOLDEN=1. TVM loads the database, replays each record, compiles the program for
this processor and runs it; the values are compared with NumPy. loops.golden.jsonl gets the loops around each block
of each record without those that run once: extent and kind, sorted by their text. TVM is no dependency of the tests.
"""

import json
import pathlib
import sys

import numpy
import tvm
from tvm import s_tir
from tvm.s_tir import meta_schedule

LOOP_KINDS = {0: "none", 1: "parallel", 2: "vectorize", 3: "unroll"}


def windows(x, kernel, stride, value):
    """Returns the 3 x 3 windows of the last two dimensions, padded by one element of this value."""
    padded = numpy.pad(x, [(0, 0)] * (x.ndim - 2) + [(1, 1), (1, 1)], constant_values=value)
    found = numpy.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(-2, -1))
    return found[..., ::stride, ::stride, :, :]


def conv2d(x, weight, bias):
    sums = numpy.einsum("nchwrs,kcrs->nkhw", windows(x, 3, 1, 0), weight)
    return numpy.maximum(sums + bias[:, None, None], 0)


def softmax(x):
    powers = numpy.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def layer_norm(x, scale, shift):
    centered = x - x.mean(axis=1, keepdims=True)
    variance = (centered**2).mean(axis=1, keepdims=True)
    return centered / numpy.sqrt(variance + 1e-5) * scale + shift


# By the name of a block that a module has: the module's result as a function of its inputs, in their order.
REFERENCES = {
    "matmul": lambda a, b, bias: numpy.maximum(a @ b + bias, 0),
    "conv2d": conv2d,
    "depthwise": lambda x, weight: numpy.einsum("nchwrs,crs->nchw", windows(x, 3, 2, 0), weight),
    "softmax": softmax,
    "layer_norm": layer_norm,
    "max_pool": lambda x: windows(x, 3, 2, -numpy.inf).max(axis=(-2, -1)),
    "silu_chain": lambda x, y: ((x + y) / (1 + numpy.exp(-(x + y))) * 0.5).T,
}


def blocks_of(statement, loops=()):
    """Yields the name of each block, with the loops around it that run more than once."""
    kind = type(statement).__name__
    if kind == "For":
        extent = int(statement.extent)
        around = (*loops, [extent, LOOP_KINDS[int(statement.kind)]]) if extent != 1 else loops
        yield from blocks_of(statement.body, around)
    elif kind == "SeqStmt":
        for part in statement.seq:
            yield from blocks_of(part, loops)
    elif statement.block.name_hint == "root":
        yield from blocks_of(statement.block.body, loops)
    else:
        yield statement.block.name_hint, list(loops)


def error_of(name, module, arguments):
    """Runs the module and returns its largest error, relative to the largest value."""
    rng = numpy.random.default_rng(7)
    tensors = [rng.uniform(-1, 1, [int(d) for d in a.shape]).astype(str(a.dtype)) for a in arguments]
    expected = REFERENCES[name](*(t.astype("float64") for t in tensors[:-1]))
    placed = [tvm.runtime.tensor(t) for t in tensors]
    tvm.compile(module, target="llvm")["main"](*placed)
    return numpy.abs(placed[-1].numpy() - expected).max() / numpy.abs(expected).max()


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def main():
    folder = pathlib.Path(sys.argv[1])
    files = [folder / "database_workload.json", folder / "database_tuning_record.json"]
    database = meta_schedule.database.JSONDatabase(*map(str, files), allow_missing=False)
    workload_lines, record_lines = ([json.loads(x) for x in f.read_text().splitlines()] for f in files)
    workloads = [meta_schedule.database.Workload.from_json(x) for x in workload_lines]
    assert len(database) == len(record_lines), "the database has left out records"
    loops, errors = [], []
    for number, content in record_lines:
        workload = workloads[number]
        record = meta_schedule.database.TuningRecord.from_json(content, workload)
        assert database.query_tuning_record(workload.mod, record.target, "main"), "the workload is not found"
        schedule = s_tir.Schedule(workload.mod)
        record.trace.apply_to_schedule(schedule, remove_postproc=False)
        name = next(n for n, _ in blocks_of(workload.mod["main"].body) if n in REFERENCES)
        errors.append(error_of(name, schedule.mod, record.args_info))
        print(f"{name}: error {errors[-1]:.1e}")
        blocks = [b for n, b in blocks_of(schedule.mod["main"].body) if not n.endswith("_init")]
        loops.append(compact(sorted(blocks, key=compact)))
    assert max(errors) < 1e-5, "values are wrong"
    (folder / "loops.golden.jsonl").write_text("".join(line + "\n" for line in loops))
    print(f"{len(loops)} records of {len(workloads)} workloads, largest error {max(errors):.1e}")


if __name__ == "__main__":
    main()
