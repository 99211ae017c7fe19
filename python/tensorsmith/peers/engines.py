"""Other engines that run ONNX models on the processor, each prepared for the shapes of given inputs.

An engine's class is constructed with the model's file, a number of threads and the inputs, arrays by name. `run`
takes such inputs and returns the outputs; `load_library` does in advance what takes the same time for all models.
"""

import contextlib
import os
import re
import sys


class EngineCannot(Exception):
    """An engine, or a converter for it, cannot run this model. The reason is one line."""


def first_line(error):
    return f"{type(error).__name__}: " + (str(error).strip().splitlines() or [""])[0][:160]


@contextlib.contextmanager
def silenced():
    """Suppresses standard output and error, also of C++ code: converters report each of their passes."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        yield
    finally:
        for number, original in zip((1, 2), kept):
            os.dup2(original, number)
            os.close(original)
        os.close(nothing)


class OnnxRuntime:
    """A session of ONNX Runtime."""

    name = "onnxruntime"
    packages = "onnxruntime"

    @staticmethod
    def load_library():
        import onnxruntime  # noqa: F401

    def __init__(self, onnx_file, threads, inputs):
        import onnxruntime

        self.version = f"ONNX Runtime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        for given in self.open_inputs(onnx_file):
            for dim, extent in zip(given.shape, inputs[given.name].shape):
                if isinstance(dim, str):
                    options.add_free_dimension_override_by_name(dim, extent)
        self.session = onnxruntime.InferenceSession(onnx_file, options, providers=["CPUExecutionProvider"])

    @staticmethod
    def open_inputs(onnx_file):
        """Returns the model's inputs with symbolic dimensions by name."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(onnx_file, options, providers=["CPUExecutionProvider"]).get_inputs()

    def run(self, feed):
        return self.session.run(None, feed)


class OpenVino:
    """A model compiled by OpenVINO."""

    name = "openvino"
    packages = "openvino"

    @staticmethod
    def load_library():
        import openvino  # noqa: F401

    def __init__(self, onnx_file, threads, inputs):
        import openvino

        self.version = f"OpenVINO {openvino.__version__.split('-')[0]}"
        core = openvino.Core()
        model = core.read_model(onnx_file)
        model.reshape({given.any_name: inputs[given.any_name].shape for given in model.inputs})
        compiled = core.compile_model(
            model,
            "CPU",
            {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"},
        )
        self.request = compiled.create_infer_request()

    def run(self, feed):
        return list(self.request.infer(feed, share_inputs=True, share_outputs=True).values())


class Inductor:
    """A PyTorch module compiled by Inductor, with frozen weights: PyTorch's fastest way on a processor."""

    name = "inductor"
    packages = "torch onnx2torch"

    @staticmethod
    def load_library():
        import torch._inductor.config  # noqa: F401

    def __init__(self, onnx_file, threads, inputs):
        import torch
        import torch._inductor.config

        from .torch_module import torch_module

        self.torch = torch
        self.version = f"PyTorch Inductor {torch.__version__.split('+')[0]}"
        torch.set_num_threads(threads)
        torch._inductor.config.freezing = True
        torch._inductor.config.cpp.threads = threads  # the number is compiled into the code
        torch._dynamo.reset()
        tensors = self.tensors(inputs)
        try:
            with torch.no_grad(), silenced():
                self.compiled = torch.compile(torch_module(onnx_file, tensors))
                self.compiled(*tensors)
        except Exception as error:
            raise EngineCannot(first_line(error)) from error

    def tensors(self, feed):
        return [self.torch.from_numpy(array) for array in feed.values()]

    def run(self, feed):
        with self.torch.no_grad():
            outputs = self.compiled(*self.tensors(feed))
        return [output.numpy() for output in (outputs if isinstance(outputs, (tuple, list)) else [outputs])]


class LiteRt:
    """A model converted for LiteRT, whose delegate XNNPACK runs it in f32."""

    name = "litert"
    packages = "litert-torch torch onnx2torch"

    @staticmethod
    def load_library():
        with silenced():
            import litert_torch  # noqa: F401

    def __init__(self, onnx_file, threads, inputs):
        import importlib.metadata
        import tempfile

        with silenced():
            import litert_torch
        import torch
        from ai_edge_litert.interpreter import Interpreter

        from .torch_module import torch_module

        self.version = f"LiteRT {importlib.metadata.version('ai-edge-litert')}"
        tensors = [torch.from_numpy(array) for array in inputs.values()]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.tflite")
            try:
                with torch.no_grad(), silenced():
                    litert_torch.convert(torch_module(onnx_file, tensors), tuple(tensors)).export(path)
                    self.interpreter = Interpreter(path, num_threads=threads)
                    self.interpreter.allocate_tensors()
            except Exception as error:
                raise EngineCannot(first_line(error)) from error

        # The numbers in their names are their positions in the model.
        def place(details):
            return [int(number) for number in re.findall(r"\d+", details["name"])]

        self.inputs = sorted(self.interpreter.get_input_details(), key=place)
        self.outputs = sorted(self.interpreter.get_output_details(), key=place)

    def run(self, feed):
        for details, array in zip(self.inputs, feed.values()):
            self.interpreter.set_tensor(details["index"], array.astype(details["dtype"], copy=False))
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(details["index"]) for details in self.outputs]


PEERS = {peer.name: peer for peer in (OnnxRuntime, OpenVino, Inductor, LiteRt)}
