"""Loaded compiled models."""

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
        """NumPy's type of the elements; uint16 for bf16, whose bits it holds."""
        return numpy_dtype(self.dtype)


class Model:
    """A compiled model. Threads that run the same model run it one after the other; other Python threads continue
    meanwhile.

    Args:
        directory: folder that `tune` or `compile` wrote. Its kernels are machine code: load only models that you
        would
            also run as a program.
        threads: number of threads, the caller included; 0: one per core that this process may use.
        device: for a model for GPUs, the GPU: "cuda:1"; default: the first one.
    """

    def __init__(self, directory: str | os.PathLike[str], threads: int = 0, device: str = "") -> None:
        self._native = _native.Model(os.fspath(directory), threads, device, False)
        self.inputs = tuple(TensorInfo(*info) for info in self._native.inputs)
        self.outputs = tuple(TensorInfo(*info) for info in self._native.outputs)

    @property
    def name(self) -> str:
        """Name of the model's file."""
        return self._native.name

    @property
    def num_threads(self) -> int:
        """Number of threads."""
        return self._native.num_threads

    def run(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """Runs the model once.

        Args:
            inputs: NumPy arrays by name, or objects with DLPack (`__dlpack__`, such as torch's tensors), with the
                model's shapes and element types. Contiguous arrays at multiples of 64 bytes are read in place; others
                are copied.
            outputs: arrays by name, which receive outputs; for the other outputs new arrays are made.

        Returns:
            All outputs by name: the given arrays and new NumPy arrays (others read them by DLPack:
            `torch.from_dlpack`).

        Raises:
            errors.InvalidArgument: the model has no such name, or another shape or element type.
        """
        given = self._in_order("input", self.inputs, inputs, None)
        made = self._in_order("output", self.outputs, outputs or {}, _new_array)
        self._native.run(given, made)
        return {info.name: array for info, array in zip(self.outputs, made)}

    def benchmark(self, seconds: float = 1.0, inputs: Mapping[str, Any] | None = None) -> float:
        """Returns the median latency of a run in seconds. Repeats the run for about `seconds`, after one that does
        not count. Inputs that are not given are normally distributed; integers are 0."""
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
    """Returns numbers and lists as arrays, and tensors of torch without their gradients."""
    if isinstance(value, np.ndarray):
        return value
    if getattr(value, "requires_grad", False):
        return value.detach()
    if hasattr(value, "__dlpack__"):
        return value
    return np.asarray(value)


def load(directory: str | os.PathLike[str], threads: int = 0, device: str = "") -> Model:
    """Loads a model that `tune` or `compile` wrote: see `Model`."""
    return Model(directory, threads, device)
