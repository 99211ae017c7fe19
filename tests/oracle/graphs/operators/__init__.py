"""One generator per operator: it reads values of the graph under construction and adds a node with random attributes.
Each module of this package registers its generators."""

import importlib
import pkgutil

from .registry import GENERATORS, generate

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["GENERATORS", "generate"]
