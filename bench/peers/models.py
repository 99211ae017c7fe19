#!/usr/bin/env python3
"""Whole models beside other engines: `python -m tensorsmith.peers`, from a checkout without the package.

  models.py --runtime libtensorsmith_runtime.so --threads 1,2 NAME=MODEL.onnx:COMPILED_DIR ...
"""
import from_checkout  # noqa: F401
from peers.__main__ import main

main()
