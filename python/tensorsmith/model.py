"""Compiled models, loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from . import _native, errors
from .dtypes import aligned_empty, numpy_dtype, random_array


@dataclass(frozen=True)
class TensorInfo:
    """An input or an output of a compiled model."""

    name: str
    dtype: str  #: "f32", "i64", "bool", ...
    shape: tuple[int, ...]

    @property
    def numpy_dtype(self) -> np.dtype:
        """NumPy's type of the elements (uint16, the bits, of bf16)."""
        return numpy_dtype(self.dtype)


class Model:
    """A compiled model. Runs of one model by several threads happen one after the other; other threads of Python go on
    meanwhile.

    Args:
        directory: what `tune` or `compile` wrote. Its kernels are machine code: load only what you would run as a
            program.
        threads: how many compute, the caller included; 0: one a core that this process may use.
        device: of a model for GPUs, which one: "cuda:1"; by default the first.
    """

    def __init__(self, directory: str | os.PathLike[str], threads: int = 0, device: str = "") -> None:
        self._native = _native.Model(os.fspath(directory), threads, device, False)
        self.inputs = tuple(TensorInfo(*info) for info in self._native.inputs)
        self.outputs = tuple(TensorInfo(*info) for info in self._native.outputs)

    @property
    def name(self) -> str:
        """The name of the model's file."""
        return self._native.name

    @property
    def num_threads(self) -> int:
        """Threads that compute."""
        return self._native.num_threads

    def run(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """Runs the model once.

        Args:
            inputs: by name, NumPy arrays or objects with DLPack (`__dlpack__`, as torch's tensors), of the model's
                shapes and element types. They are read in place where they are contiguous and lie at a multiple of 64
                bytes, else copied.
            outputs: by name, arrays that are written instead of new ones; others are made.

        Returns:
            All outputs by name: those given, and new NumPy arrays, which others read by DLPack (`torch.from_dlpack`).

        Raises:
            errors.InvalidArgument: a name, a shape or an element type that the model does not have.
        """
        given = self._in_order("input", self.inputs, inputs, None)
        made = self._in_order("output", self.outputs, outputs or {}, _new_array)
        self._native.run(given, made)
        return {info.name: array for info, array in zip(self.outputs, made)}

    def benchmark(self, seconds: float = 1.0, inputs: Mapping[str, Any] | None = None) -> float:
        """The median latency of a run, in seconds: repeated for about so long, after a run that does not count. Inputs
        that are not given are normally distributed, integers 0."""
        arrays = {info.name: random_array(info.shape, info.dtype) for info in self.inputs} | dict(inputs or {})
        outputs = self.run(arrays)
        times: list[float] = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            self.run(arrays, outputs)
            times.append(time.perf_counter() - start)
        return median(times)

    def __repr__(self) -> str:
        def text(infos: tuple[TensorInfo, ...]) -> str:
            return ", ".join(f"{i.name}: {i.dtype}{list(i.shape)}" for i in infos)

        return f"<tensorsmith.Model {self.name!r}: {text(self.inputs)} -> {text(self.outputs)}>"

    def _in_order(self, role, infos, given, make):
        names = {info.name for info in infos}
        for name in given:
            if name not in names:
                raise errors.InvalidArgument(
                    f"the model has no such {role}; it has {', '.join(sorted(names)) or 'none'}",
                    f"{role} '{name}'",
                )
        arrays = []
        for info in infos:
            if info.name in given:
                arrays.append(_plain(given[info.name]))
            elif make is not None:
                arrays.append(make(info))
            else:
                raise errors.InvalidArgument("is missing", f"{role} '{info.name}'")
        return arrays


def _new_array(info: TensorInfo) -> np.ndarray:
    return aligned_empty(info.shape, info.numpy_dtype)


def _plain(value: Any) -> Any:
    """Numbers and lists as arrays; of torch's tensors what is behind a gradient."""
    if isinstance(value, np.ndarray):
        return value
    if getattr(value, "requires_grad", False):
        return value.detach()
    if hasattr(value, "__dlpack__"):
        return value
    return np.asarray(value)


def load(directory: str | os.PathLike[str], threads: int = 0, device: str = "") -> Model:
    """Loads what `tune` or `compile` wrote: see `Model`."""
    return Model(directory, threads, device)
