"""Compiled models beside other engines, in one interleaved run.

`tensorsmith.compare_engines` and `python -m tensorsmith.peers` measure with this, and so does bench/peers of the
repository, which has no built package: nothing here imports the rest of the package unless a model is loaded by it.
"""
