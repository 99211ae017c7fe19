"""Other engines on a GPU, timed as `tensorsmith bench` times a model: one CUDA graph between two of the device's events,
behind a kernel that keeps the device busy until all is launched, so that no time of a launch is counted.

PyTorch calls cuBLAS and cuDNN, in f32 without TF32 unless that is asked for; networks run in PyTorch and in ONNX Runtime, both as one CUDA graph.
Without a GPU (device "cpu") the same code runs by the clock, to try it out: its times say nothing.
"""
import time

import numpy as np

import from_checkout  # noqa: F401
from peers.engines import EngineCannot, first_line

try:
    import torch
except ImportError:
    torch = None

RUNS = 20
TURNS = 7  # as often `bench --profile` runs a model
HOLD_CYCLES = 80_000  # some 40 us, as long as the runtime holds the device


def torch_device():
    """Where PyTorch computes: "cuda", "cpu", or None without PyTorch."""
    if torch is None:
        return None
    return "cuda" if torch.cuda.is_available() else "cpu"


def allow_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def prepare_torch():
    if torch is not None:
        allow_tf32(False)
        torch.backends.cudnn.benchmark = True  # measures its algorithms, as tuning does


def call_seconds(call, device):
    """One call, in seconds: events on a GPU, the clock elsewhere."""
    if device != "cuda":
        before = time.perf_counter()
        call()
        return time.perf_counter() - before
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(HOLD_CYCLES)
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


def seconds_of(call, device):
    """All runs after a warm-up."""
    for _ in range(3):
        call()
    if device == "cuda":
        torch.cuda.synchronize()
    return [call_seconds(call, device) for _ in range(RUNS)]


def seconds_in_turns(calls, device):
    """The least time of each call, one after the other as `bench --profile` runs the kernels of a model."""
    least = [float("inf")] * len(calls)
    for turn in range(TURNS + 1):
        for i, call in enumerate(calls):
            seconds = call_seconds(call, device)
            if turn > 0:  # the first warms up
                least[i] = min(least[i], seconds)
    return least


def replay_of(compute, device):
    """compute() as a CUDA graph: a function that runs it and gives its outputs. Elsewhere compute itself."""
    if device != "cuda":
        return compute
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries choose their algorithms here, which a capture does not allow
            compute()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = compute()

    def replay():
        graph.replay()
        return outputs

    replay.compute = compute  # holds the tensors that the graph reads
    return replay


class TorchCall:
    """A function of arrays on the device. tf32: products may round to it."""

    def __init__(self, arrays, compute, tf32=False):
        self.device = torch_device()
        tensors = [torch.from_numpy(a).to(self.device) for a in arrays]
        allow_tf32(tf32)
        with torch.no_grad():
            self.replay = replay_of(lambda: compute(*tensors), self.device)
        allow_tf32(False)

    def result(self):
        with torch.no_grad():
            return self.replay().float().cpu().numpy()


def calls_in_turns(calls):
    """The least time of each TorchCall, in turns."""
    with torch.no_grad():
        return seconds_in_turns([call.replay for call in calls], torch_device())


def matmul(x, w, bias=None, tf32=False):
    """bias: with it GELU(x w + bias), by the error function."""
    if bias is None:
        return TorchCall([x, w], lambda x, w: x @ w, tf32)
    fused = lambda x, w, b: torch.nn.functional.gelu(torch.addmm(b, x, w))
    return TorchCall([x, w, bias], fused, tf32)


def convolution(x, w, stride, padding, groups, tf32=False):
    conv = lambda x, w: torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)
    return TorchCall([x, w], conv, tf32)


class TorchNetwork:
    """A network in PyTorch, on a GPU replayed as one CUDA graph."""

    name = "pytorch"

    def __init__(self, onnx_file, inputs):
        if torch is None:
            raise EngineCannot("PyTorch is not installed")
        self.device = torch_device()
        try:
            from torch_module import torch_module
            host = [torch.from_numpy(a) for a in inputs.values()]
            module = torch_module(onnx_file, host).to(self.device)
            tensors = [t.to(self.device) for t in host]
            with torch.no_grad():
                self.replay = replay_of(lambda: module(*tensors), self.device)
        except Exception as error:
            raise EngineCannot(first_line(error)) from error

    def seconds(self):
        with torch.no_grad():
            return seconds_of(self.replay, self.device)

    def results(self):
        with torch.no_grad():
            outputs = self.replay()
        outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        return [o.float().cpu().numpy() for o in outputs]


class OnnxRuntimeNetwork:
    """A session of ONNX Runtime with its CUDA provider and one CUDA graph, inputs and outputs on the device."""

    name = "onnxruntime"

    def __init__(self, onnx_file, inputs):
        try:
            import onnxruntime
        except ImportError as error:
            raise EngineCannot("ONNX Runtime is not installed") from error
        on_gpu = "CUDAExecutionProvider" in onnxruntime.get_available_providers() and torch_device() != "cpu"
        if torch_device() == "cuda" and not on_gpu:
            raise EngineCannot("this ONNX Runtime has no CUDA provider; onnxruntime-gpu has")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        cuda = ("CUDAExecutionProvider", {"enable_cuda_graph": "1", "use_tf32": "0",
                                          "cudnn_conv_algo_search": "EXHAUSTIVE"})
        try:
            self.session = onnxruntime.InferenceSession(onnx_file, options,
                                                        providers=[cuda] if on_gpu else ["CPUExecutionProvider"])
            place = "cuda" if on_gpu else "cpu"
            self.binding = self.session.io_binding()
            for name, array in inputs.items():
                self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, place, 0))
            for output in self.session.get_outputs():
                shape = [int(d) for d in output.shape]
                element = {"tensor(float)": np.float32, "tensor(float16)": np.float16}[output.type]
                self.binding.bind_ortvalue_output(
                    output.name, onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, element, place, 0))
            for _ in range(3):
                self.run()
        except Exception as error:
            raise EngineCannot(first_line(error)) from error

    def run(self):
        self.session.run_with_iobinding(self.binding)
        self.binding.synchronize_outputs()

    def seconds(self):
        """By the clock: a session has no events. The launch of its graph, some 10 us, is part of it."""
        times = []
        for _ in range(RUNS):
            before = time.perf_counter()
            self.run()
            times.append(time.perf_counter() - before)
        return times

    def results(self):
        self.run()
        return [np.asarray(o, dtype=np.float32) for o in self.binding.copy_outputs_to_cpu()]


NETWORK_PEERS = (TorchNetwork, OnnxRuntimeNetwork)
