"""Cases of ONNX Runtime's own operators (com.microsoft), whose outputs ONNX Runtime computes. For scripts/conformance."""
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

F32, I8, U8, I32, I64 = np.float32, np.int8, np.uint8, np.int32, np.int64


class Cases:
    """Collects cases: name, node and inputs. An input of None is omitted."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.cases = []

    def normal(self, *shape, scale=1.0):
        return (scale * self.rng.standard_normal(shape)).astype(F32)

    def bytes(self, dtype, *shape):
        info = np.iinfo(dtype)
        return self.rng.integers(info.min, info.max + 1, shape).astype(dtype)

    def add(self, name, op, inputs, outputs=1, domain="com.microsoft", constants=(), **attributes):
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
        while names and not names[-1]:
            names.pop()
        node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain,
                                **{k: v for k, v in attributes.items() if v is not None})
        given = {n: np.asarray(x) for n, x in zip(names, inputs) if n}
        self.cases.append((name, node, given, {f"x{i}" for i in constants}))


def float_cases(c):
    x = c.normal(2, 5, 12)
    c.add("bias_gelu", "BiasGelu", [x, c.normal(12)])
    c.add("gelu", "Gelu", [x])
    c.add("fast_gelu", "FastGelu", [x])
    c.add("fast_gelu_bias", "FastGelu", [x, c.normal(12)])
    c.add("quick_gelu", "QuickGelu", [x])
    c.add("quick_gelu_alpha", "QuickGelu", [x], alpha=1.3)
    for n, (ta, tb, alpha) in enumerate([(0, 0, 1.0), (1, 0, 0.5), (0, 1, 2.0), (1, 1, 1.0)]):
        a = c.normal(3, 5, 4) if ta else c.normal(3, 4, 5)
        b = c.normal(3, 6, 5) if tb else c.normal(3, 5, 6)
        c.add(f"fused_matmul_{n}", "FusedMatMul", [a, b], transA=ta, transB=tb, alpha=alpha)
    c.add("fused_matmul_batch", "FusedMatMul", [c.normal(4, 3, 5), c.normal(3, 5, 6)], transBatchA=1)
    for n, (activation, parameters) in enumerate(
            [("Relu", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4]), ("Tanh", None)]):
        c.add(f"fused_conv_{n}", "FusedConv", [c.normal(1, 4, 9, 7), c.normal(6, 2, 3, 3), c.normal(6)], group=2,
              pads=[1, 1, 1, 1], strides=[2, 1], activation=activation, activation_params=parameters)
    c.add("fused_conv_sum", "FusedConv", [c.normal(1, 3, 6, 6), c.normal(5, 3, 1, 1), c.normal(5), c.normal(1, 5, 6, 6)],
          activation="Relu")
    c.add("fused_gemm", "FusedGemm", [c.normal(4, 6), c.normal(5, 6), c.normal(5)], transB=1, alpha=0.5, activation="Relu")
    for n, bias in enumerate([None, c.normal(12)]):
        c.add(f"skip_layer_norm_{n}", "SkipLayerNormalization", [x, c.normal(2, 5, 12), c.normal(12), c.normal(12), bias],
              epsilon=1e-5)
        c.add(f"skip_simplified_{n}", "SkipSimplifiedLayerNormalization", [x, c.normal(2, 5, 12), c.normal(12), bias],
              epsilon=1e-6)
    c.add("simplified_layer_norm", "SimplifiedLayerNormalization", [x, c.normal(12)], domain="", axis=-1, epsilon=1e-5)
    positions = np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]], I64)
    for n, (shape, heads, interleaved) in enumerate([((2, 5, 24), None, 0), ((2, 5, 24), None, 1), ((2, 3, 5, 8), None, 0)]):
        c.add(f"rotary_{n}", "RotaryEmbedding", [c.normal(*shape), positions, c.normal(16, 4), c.normal(16, 4)],
              num_heads=heads, interleaved=interleaved)
    c.add("rotary_offset", "RotaryEmbedding", [c.normal(2, 5, 24), np.array([2], I64), c.normal(16, 4), c.normal(16, 4)])


def attention_cases(c):
    for n, (length, past, buffer, total, window) in enumerate(
            [(1, 7, 8, 8, -1), (1, 7, 7, 8, -1), (4, 0, 0, 4, -1), (1, 11, 16, 12, 5), (3, 5, 8, 8, -1)]):
        kv = [c.normal(1, 2, buffer, 16) if buffer else None for _ in range(2)]
        c.add(f"group_query_{n}", "GroupQueryAttention",
              [c.normal(1, length, 64), c.normal(1, length, 32), c.normal(1, length, 32), *kv,
               np.array([total - 1], I32), np.array(total, I32)], outputs=3, constants=[6], num_heads=4, kv_num_heads=2,
              local_window_size=window)
    c.add("group_query_rotary", "GroupQueryAttention",
          [c.normal(1, 1, 64), c.normal(1, 1, 32), c.normal(1, 1, 32), c.normal(1, 2, 8, 16), c.normal(1, 2, 8, 16),
           np.array([6], I32), np.array(7, I32), c.normal(16, 8), c.normal(16, 8)], outputs=3, constants=[6], num_heads=4,
          kv_num_heads=2, do_rotary=1)
    c.add("multi_head", "MultiHeadAttention", [c.normal(2, 5, 12), c.normal(2, 7, 12), c.normal(2, 7, 12)], num_heads=3)
    c.add("multi_head_bias", "MultiHeadAttention",
          [c.normal(2, 5, 12), c.normal(2, 7, 12), c.normal(2, 7, 12), c.normal(36)], num_heads=3)
    c.add("multi_head_causal", "MultiHeadAttention", [c.normal(2, 5, 12) for _ in range(3)], num_heads=2, unidirectional=1)
    c.add("multi_head_mask", "MultiHeadAttention",
          [c.normal(2, 5, 12), c.normal(2, 7, 12), c.normal(2, 7, 12), None,
           np.array([[1] * 7, [1] * 4 + [0] * 3], I32)], num_heads=3)


def bert_cases(c):
    ids, segments = c.rng.integers(0, 30, (2, 5)).astype(I32), c.rng.integers(0, 2, (2, 5)).astype(I32)
    tables = [c.normal(30, 12), c.normal(16, 12), c.normal(2, 12)]
    mask = np.array([[1] * 5, [1] * 3 + [0] * 2], I32)
    c.add("embed", "EmbedLayerNormalization", [ids, segments, *tables, c.normal(12), c.normal(12), mask], outputs=2)
    c.add("embed_sum", "EmbedLayerNormalization", [ids, None, tables[0], tables[1], None, c.normal(12), c.normal(12)], outputs=3)
    data, weights, bias = c.normal(2, 5, 12), c.normal(12, 36, scale=0.3), c.normal(36)
    c.add("attention", "Attention", [data, weights, bias], num_heads=3)
    c.add("attention_mask", "Attention", [data, weights, bias, mask], num_heads=3)
    c.add("attention_lengths", "Attention", [data, weights, bias, np.array([5, 3], I32)], num_heads=3)
    c.add("attention_causal", "Attention", [data, weights, bias], num_heads=2, unidirectional=1)
    c.add("attention_past", "Attention", [data, weights, bias, None, c.normal(2, 2, 3, 4, 4)], outputs=2, num_heads=3)


def quantized_cases(c):
    scale = lambda v: np.array(v, F32)
    for dtype in (U8, I8):
        zero = lambda: c.bytes(dtype, 1)[0]
        name = np.dtype(dtype).name
        a, b = c.bytes(dtype, 2, 6, 5), c.bytes(dtype, 2, 6, 5)
        for op in ("QLinearAdd", "QLinearMul"):
            c.add(f"{op}_{name}", op, [a, scale(0.1), zero(), b, scale(0.05), zero(), scale(0.2), zero()])
            c.add(f"{op}_{name}_broadcast", op, [a, scale(0.02), zero(), b[:1, :, :1], scale(0.05), zero(), scale(0.03), zero()])
        for op, attributes in (("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearSigmoid", {})):
            c.add(f"{op}_{name}", op, [a, scale(0.1), zero(), scale(0.02), zero()], **attributes)
        image = c.bytes(dtype, 1, 4, 8, 8)
        c.add(f"QLinearGlobalAveragePool_{name}", "QLinearGlobalAveragePool", [image, scale(0.1), zero(), scale(0.03), zero()])
        c.add(f"QLinearAveragePool_{name}", "QLinearAveragePool", [image, scale(0.1), zero(), scale(0.07), zero()],
              kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        c.add(f"QLinearConcat_{name}", "QLinearConcat",
              [scale(0.1), zero(), a, scale(0.1), zero(), b, scale(0.05), zero()], axis=1)
        c.add(f"QLinearWhere_{name}", "QLinearWhere",
              [c.rng.random((2, 6, 5)) > 0.5, a, scale(0.1), zero(), b, scale(0.05), zero(), scale(0.08), zero()])
        c.add(f"QLinearSoftmax_{name}", "QLinearSoftmax", [a, scale(0.05), zero(), scale(1 / 256), np.array(0 if dtype == U8 else -128, dtype)],
              axis=-1, opset=13)
        weights = c.bytes(I8, 6, 7)
        matrix = c.bytes(dtype, 5, 6)
        c.add(f"QGemm_{name}", "QGemm", [matrix, scale(0.02), zero(), weights, scale(0.03), np.array(0, I8),
                                         c.rng.integers(-900, 900, 7).astype(I32), scale(0.5), zero()])
        c.add(f"QGemm_{name}_float", "QGemm", [matrix, scale(0.02), zero(), weights, scale(0.03), np.array(0, I8)])
        c.add(f"MatMulIntegerToFloat_{name}", "MatMulIntegerToFloat",
              [matrix, weights, scale(0.02), c.rng.random(7).astype(F32), zero(), None, c.normal(7)])
    c.add("DynamicQuantizeMatMul", "DynamicQuantizeMatMul",
          [c.normal(5, 6), c.bytes(I8, 6, 7), scale(0.02), np.array(3, I8), c.normal(7)])


def recurrent_cases(c):
    # One step, since a later one quantizes a state that depends on how activations are rounded.
    for n, (both, scales) in enumerate([(1, (1,)), (2, (2,)), (1, (1, 32))]):
        scale = np.full(scales, 0.01, F32)
        zero = np.zeros(scales, I8)
        c.add(f"dynamic_quantize_lstm_{n}", "DynamicQuantizeLSTM",
              [c.normal(1, 3, 5), c.bytes(I8, both, 5, 32), c.bytes(I8, both, 8, 32), c.normal(both, 64), None,
               c.normal(both, 3, 8, scale=0.5), c.normal(both, 3, 8, scale=0.5), None, scale, zero, scale, zero],
              outputs=3, constants=[1, 2, 3, 8, 9, 10, 11], direction="bidirectional" if both == 2 else "forward",
              hidden_size=8)


def all_cases():
    """Yields (name, model, inputs, outputs) with the outputs of ONNX Runtime."""
    c = Cases(seed=54)
    float_cases(c)
    attention_cases(c)
    bert_cases(c)
    quantized_cases(c)
    recurrent_cases(c)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # DynamicQuantizeLSTM quantizes by the rows of a thread
    for name, node, given, constants in c.cases:
        infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                 for n, x in given.items() if n not in constants]
        initializers = [numpy_helper.from_array(given[n], n) for n in constants]
        # The types and shapes of the outputs are what ONNX Runtime says.
        graph = helper.make_graph([node], name, infos, [onnx.ValueInfoProto(name=o) for o in node.output], initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                                  ir_version=9)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        inputs = {n: x for n, x in given.items() if n not in constants}
        outputs = session.run(None, inputs)
        for info, array in zip(model.graph.output, outputs):
            info.CopyFrom(helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        yield name, model, list(inputs.values()), outputs


