"""Inputs and outputs that stay bound between runs, as in ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import errors

if TYPE_CHECKING:
    from .session import InferenceSession


class OrtValue:
    """An array in the form that ONNX Runtime's bindings use."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Wraps an array in the processor's memory, without a copy."""
        _only_cpu(device_type)
        return OrtValue(array)

    def numpy(self) -> np.ndarray:
        """Returns the array itself."""
        return self._array

    def shape(self) -> list[int]:
        """Returns the array's shape."""
        return list(self._array.shape)

    def device_name(self) -> str:
        """Returns the device whose memory has the array."""
        return "cpu"

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class IOBinding:
    """Inputs and outputs that stay bound between runs."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}
        self._results: list[np.ndarray] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """Binds an input, which each run reads in place."""
        self._inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Binds an input, which each run reads in place."""
        self._inputs[name] = value.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0) -> None:
        """Binds an output, which each run allocates."""
        _only_cpu(device_type)
        self._outputs[name] = None

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Binds an output, which each run writes in place."""
        self._outputs[name] = value.numpy()

    def clear_binding_inputs(self) -> None:
        """Removes the bindings of all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Removes the bindings of all outputs."""
        self._outputs.clear()

    def get_outputs(self) -> list[OrtValue]:
        """Returns the outputs of the last run in the order of binding."""
        return [OrtValue(array) for array in self._results]

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """Returns the outputs of the last run in the order of binding."""
        return list(self._results)


def _only_cpu(device_type: str) -> None:
    if device_type != "cpu":
        raise errors.Unsupported(f"'{device_type}' is not supported: bindings use the processor's memory", "binding")
