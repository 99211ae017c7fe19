"""Fourier transforms and windows."""

import numpy as np

from .. import dtypes as d
from .registry import operator


@operator("DFT")
def dft(b, op):
    components = b.pick([1, 2])
    shape = [b.integer(1, 2)] + [b.integer(1, 9) for _ in range(b.integer(1, 2))] + [components]
    axis = b.integer(1, len(shape) - 2)
    if b.chance(0.3):  # several products, one product of a prime length, a convolution
        shape[axis] = b.pick([65, 66, 70, 96, 128, 130, 67, 127, 521])
    x = b.value(b.allowed(op, "T1"), shape=shape)
    length = b.constant(np.array(b.integer(1, 12), dtype=np.int64)) if b.chance(0.3) else None
    inverse = b.pick([None, 0, 1])
    onesided = b.pick([None, 0, 1]) if components == 1 and not inverse else None
    if b.opset >= 20:
        b.add(op, [x, length, b.constant(np.array(axis, dtype=np.int64))], inverse=inverse, onesided=onesided)
    else:
        b.add(op, [x, length], axis=axis, inverse=inverse, onesided=onesided)


@operator("STFT")
def stft(b, op):
    components = 1
    length = b.integer(8, 20)
    frame = b.integer(2, 8)
    if b.chance(0.3):
        length, frame = 200, b.pick([65, 80, 100, 71])
    x = b.value(b.allowed(op, "T1"), shape=[b.integer(1, 2), length, components])
    step = b.constant(np.array(b.integer(1, 4), dtype=np.int64))
    window = b.fresh(x.dtype, [frame], "unit") if b.chance(0.6) else None
    size = b.constant(np.array(frame, dtype=np.int64)) if window is None or b.chance(0.5) else None
    b.add(op, [x, step, window, size], onesided=b.pick([None, 0, 1]))


@operator("BlackmanWindow", "HammingWindow", "HannWindow")
def window(b, op):
    size = b.constant(np.array(b.integer(1, 12), dtype=b.pick([np.int64, np.int32])))
    dtype = b.pick([None, d.F32, d.F64, d.F16])
    b.add(op, [size], periodic=b.pick([None, 0, 1]), output_datatype=None if dtype is None else d.TO_ONNX[dtype])


@operator("MelWeightMatrix")
def mel_weight_matrix(b, op):
    low = b.uniform(0, 100)
    inputs = [
        np.int64(b.integer(1, 6)),
        np.int64(b.pick([16, 32, 64])),
        np.int64(8192),
        np.float32(low),
        np.float32(low + 2000),
    ]
    b.add(op, [b.constant(np.array(i)) for i in inputs])
