"""Comparison of compiled models with other engines, in one interleaved run.

`tensorsmith.compare_engines`, `python -m tensorsmith.peers` and the repository's bench/peers measure with this
package. bench/peers has no built package, so nothing here imports the rest of the package unless that loads the
compiled model.
"""
