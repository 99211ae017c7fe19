"""A generator an operator: it takes values of the graph under construction and adds a node with random attributes."""
from .registry import GENERATORS, generate

from . import constants, elementwise, indexing, losses, moves, normalization, products, quantized, recurrent, reductions, sampling, signals, transformers, views, windows  # noqa: E402,F401

__all__ = ["GENERATORS", "generate"]
