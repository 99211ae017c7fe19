#!/usr/bin/env python3
"""Prints the --shape options that `tensorsmith compile` needs for a model, one word per line.

  print_shapes.py MODEL.onnx [NAME=EXTENT ...]

Symbolic dimensions are 1 unless an extent is given; names that the model does not have are ignored.
"""
import sys

import from_checkout  # noqa: F401
from peers.engines import OnnxRuntime


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    dims = {}
    for text in sys.argv[2:]:
        name, _, extent = text.rpartition("=")
        if not name or not extent.isdigit() or int(extent) < 1:
            sys.exit(f"error: '{text}' is not NAME=EXTENT")
        dims[name] = int(extent)
    for given_input in OnnxRuntime.open_inputs(sys.argv[1]):
        if all(isinstance(dim, int) for dim in given_input.shape):
            continue
        extents = [dim if isinstance(dim, int) else dims.get(dim, 1) for dim in given_input.shape]
        print("--shape", f"{given_input.name}={'x'.join(map(str, extents))}", sep="\n")


if __name__ == "__main__":
    main()
