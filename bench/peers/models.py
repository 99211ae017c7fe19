#!/usr/bin/env python3
"""Compares whole models with other engines: runs `python -m tensorsmith.peers` from a checkout, without the package.

  models.py --runtime libtensorsmith_runtime.so --threads 1,2 NAME=MODEL.onnx:COMPILED_DIR ...
"""
import from_checkout  # noqa: F401
from peers.__main__ import main

main()
