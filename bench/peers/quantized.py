#!/usr/bin/env python3
"""Writes models with one quantized operator each, and with the same operator on f32 and bf16, for models.py and
`tensorsmith bench`.

  quantized.py [--reduced-range] DIRECTORY

The models are DIRECTORY/NAME/model.onnx: matrix products of n = 256 to 1024 (u8 x s8, requantized), and convolutions
of ResNet-50 with constant weights; *_f32 and *_bf16 are their floating-point counterparts. With --reduced-range,
weights are from -64 to 64, as quantizers choose them for processors without VNNI, where sums of products saturate in
other engines.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(0)
# channels, outputs, image, window, stride
CONVOLUTIONS = [(3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (256, 64, 56, 1, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1),
                (512, 512, 7, 3, 1)]


def save(directory, name, node, dtype, shape, out_shape, constants):
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph([node], name, [tensor("x", dtype, shape)], [tensor("y", dtype, out_shape)],
                              [value if isinstance(value, TensorProto) else numpy_helper.from_array(np.array(value), key)
                               for key, value in constants.items()])
    # Convolutions of bf16 need opset 22.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    onnx.checker.check_model(model)
    (directory / name).mkdir(parents=True, exist_ok=True)
    onnx.save(model, directory / name / "model.onnx")


def bfloat16(values, name):
    """Makes a bf16 tensor of the upper halves of f32 values."""
    bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return helper.make_tensor(name, TensorProto.BFLOAT16, values.shape, bits.tobytes(), raw=True)


def all_dtypes(directory, name, quantized_op, op, shape, out_shape, weights, depth, **attributes):
    """Writes the quantized operator and its float versions. depth: number of terms of a sum, which sets the output's
    scale."""
    scales = {"xs": np.float32(0.02), "xz": np.uint8(128), "ws": np.float32(0.01), "wz": np.int8(0),
              "ys": np.float32(0.02 * 0.01 * 60 * depth**0.5), "yz": np.uint8(128)}
    node = helper.make_node(quantized_op, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"], **attributes)
    save(directory, name, node, TensorProto.UINT8, shape, out_shape, {"w": weights, **scales})
    node = helper.make_node(op, ["x", "w"], ["y"], **attributes)
    scaled = weights.astype(np.float32) / np.float32(64 * depth**0.5)
    save(directory, name + "_f32", node, TensorProto.FLOAT, shape, out_shape, {"w": scaled})
    save(directory, name + "_bf16", node, TensorProto.BFLOAT16, shape, out_shape, {"w": bfloat16(scaled, "w")})


def main():
    arguments = sys.argv[1:]
    reduced = "--reduced-range" in arguments
    if reduced:
        arguments.remove("--reduced-range")
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__.strip())
    directory = pathlib.Path(arguments[0])
    low, high = (-64, 65) if reduced else (-127, 128)
    for n in (256, 512, 1024):
        weights = RNG.integers(low, high, (n, n)).astype(np.int8)
        all_dtypes(directory, f"matmul_{n}", "QLinearMatMul", "MatMul", [n, n], [n, n], weights, n)
    for channels, outputs, image, window, stride in CONVOLUTIONS:
        pad = window // 2
        out = (image + 2 * pad - window) // stride + 1
        weights = RNG.integers(low, high, (outputs, channels, window, window)).astype(np.int8)
        all_dtypes(directory, f"conv_{image}_{channels}_{outputs}_{window}x{window}", "QLinearConv", "Conv",
                   [1, channels, image, image], [1, outputs, out, out], weights, channels * window * window,
                   kernel_shape=[window, window], strides=[stride, stride], pads=[pad] * 4)


if __name__ == "__main__":
    main()
