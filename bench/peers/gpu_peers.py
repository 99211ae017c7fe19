"""Other engines on a GPU, timed in the same way as `tensorsmith bench` times a model: as one CUDA graph between two
events. A kernel that runs before them keeps the device busy until everything is launched, so that launch overhead
does not count.

PyTorch calls cuBLAS and cuDNN, in f32 without TF32 unless TF32 is requested. Networks run in PyTorch and in ONNX
Runtime, in both as one CUDA graph. Without a GPU (device "cpu") the same code uses the clock: this tests it, but the
times have no meaning.
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
TURNS = 7  # number of runs, as in `bench --profile`
HOLD_CYCLES = 80_000  # about 40 us, the time for which the runtime holds the device


def torch_device():
    """Returns PyTorch's device: "cuda", "cpu", or None without PyTorch."""
    if torch is None:
        return None
    return "cuda" if torch.cuda.is_available() else "cpu"


def allow_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def prepare_torch():
    if torch is not None:
        allow_tf32(False)
        torch.backends.cudnn.benchmark = True  # chooses cuDNN's algorithms by measuring, like tuning


def call_seconds(call, device):
    """Returns the seconds of one call, measured by events on a GPU and by the clock elsewhere."""
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
    """Returns the seconds of each of RUNS runs after a warm-up."""
    for _ in range(3):
        call()
    if device == "cuda":
        torch.cuda.synchronize()
    return [call_seconds(call, device) for _ in range(RUNS)]


def seconds_in_turns(calls, device):
    """Returns the least time of each call. The calls take turns, as `bench --profile` runs the kernels of a model."""
    least = [float("inf")] * len(calls)
    for turn in range(TURNS + 1):
        for i, call in enumerate(calls):
            seconds = call_seconds(call, device)
            if turn > 0:  # the first turn is a warm-up
                least[i] = min(least[i], seconds)
    return least


def replay_of(compute, device):
    """Captures compute() in a CUDA graph. Returns a function that replays it and returns the outputs; off a GPU,
    compute."""
    if device != "cuda":
        return compute
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # libraries choose algorithms here, which they cannot do in a capture
            compute()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = compute()

    def replay():
        graph.replay()
        return outputs

    replay.compute = compute  # keeps the tensors alive that the graph reads
    return replay


class TorchCall:
    """A function of arrays, run on PyTorch's device. With tf32, products may be rounded to TF32."""

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
    """Returns the least time of each TorchCall, all of them run in turns."""
    with torch.no_grad():
        return seconds_in_turns([call.replay for call in calls], torch_device())


def matmul(x, w, bias=None, tf32=False):
    """Returns a TorchCall for x w or, with a bias, for the exact GELU(x w + bias)."""
    if bias is None:
        return TorchCall([x, w], lambda x, w: x @ w, tf32)
    fused = lambda x, w, b: torch.nn.functional.gelu(torch.addmm(b, x, w))
    return TorchCall([x, w, bias], fused, tf32)


def convolution(x, w, stride, padding, groups, tf32=False):
    conv = lambda x, w: torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)
    return TorchCall([x, w], conv, tf32)


class TorchNetwork:
    """A network in PyTorch; on a GPU it is replayed as one CUDA graph."""

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
    """A network in ONNX Runtime with the CUDA provider and one CUDA graph; inputs and outputs are on the device."""

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
        """Returns seconds by the clock, as a session has no events. They include the graph's launch, about 10 us."""
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
