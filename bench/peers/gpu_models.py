"""ONNX models for timing on a GPU: matrix products, and the convolutions of a network side by side."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

KINDS = {"f32": (TensorProto.FLOAT, np.float32), "tf32": (TensorProto.FLOAT, np.float32), "f16": (TensorProto.FLOAT16, np.float16)}


def save(path, nodes, inputs, outputs, initializers):
    graph = helper.make_graph(nodes, "case", inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def uniform(rng, shape, element):
    """Returns data like the inputs of `tensorsmith bench`: the power draw of large products depends on their data."""
    return rng.uniform(-1, 1, shape).astype(element)


class Product:
    """y = x w with square matrices, or GELU(x w + b) with the exact GELU (by erf). In the model, TF32 is stored as
    f32."""

    def __init__(self, size, dtype, epilogue=False):
        self.size, self.dtype, self.epilogue = size, dtype, epilogue
        self.kind, self.element = KINDS[dtype]
        rng = np.random.default_rng(size + epilogue)
        draw = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
        self.x = uniform(rng, (size, size), self.element)
        self.w = (draw(size, size) / np.float32(np.sqrt(size))).astype(self.element)
        self.b = draw(size).astype(self.element) if epilogue else None

    def text(self):
        return f"gemm_{self.dtype}_{self.size}" + ("_bias_gelu" if self.epilogue else "")

    def flops(self):
        return 2.0 * self.size ** 3

    def nodes(self, i):
        """Returns the nodes that compute y_i from x_i, and the initializers."""
        name = lambda part: f"{part}_{i}"
        constants = [numpy_helper.from_array(self.w, name("w"))]
        nodes = [helper.make_node("MatMul", [name("x"), name("w")], [name("product" if self.epilogue else "y")],
                                  name=name("gemm"))]
        if not self.epilogue:
            return nodes, constants
        constants += [numpy_helper.from_array(self.b, name("b"))]
        constants += [numpy_helper.from_array(np.array(value, self.element), name(part))
                      for part, value in (("half", 0.5), ("one", 1.0), ("root", 2 ** 0.5))]
        step = lambda op, *names: helper.make_node(op, [name(n) for n in names[:-1]], [name(names[-1])])
        return nodes + [step("Add", "product", "b", "sum"), step("Div", "sum", "root", "scaled"),
                        step("Erf", "scaled", "erf"), step("Add", "erf", "one", "shifted"),
                        step("Mul", "sum", "shifted", "twice"), step("Mul", "twice", "half", "y")], constants


def products_side_by_side(path, products):
    """Writes one model whose i-th product computes the output y_i from the input x_i."""
    nodes, inputs, outputs, initializers = [], [], [], []
    for i, product in enumerate(products):
        own, constants = product.nodes(i)
        nodes += own
        initializers += constants
        shape = [product.size, product.size]
        inputs.append(helper.make_tensor_value_info(f"x_{i}", product.kind, shape))
        outputs.append(helper.make_tensor_value_info(f"y_{i}", product.kind, shape))
    save(path, nodes, inputs, outputs, initializers)


class Convolution:
    """A convolution of a network: the shapes of its input and weights, and the attributes of its node."""

    def __init__(self, input_shape, weight_shape, attributes):
        self.input_shape, self.weight_shape = tuple(input_shape), tuple(weight_shape)
        self.stride = tuple(attributes.get("strides", (1, 1)))
        pads = attributes.get("pads", (0, 0, 0, 0))
        self.padding = tuple(pads[:2])
        self.symmetric = tuple(pads[:2]) == tuple(pads[2:])
        self.groups = attributes.get("group", 1)

    def key(self):
        return self.input_shape, self.weight_shape, self.stride, self.padding, self.groups

    def output_shape(self):
        size = [(n + 2 * p - k) // s + 1
                for n, p, k, s in zip(self.input_shape[2:], self.padding, self.weight_shape[2:], self.stride)]
        return (self.input_shape[0], self.weight_shape[0], *size)

    def flops(self):
        return 2.0 * np.prod(self.output_shape()) * np.prod(self.weight_shape[1:])

    def text(self):
        _, c, h, w = self.input_shape
        out, _, ky, kx = self.weight_shape
        return f"{c}x{h}x{w}->{out} {ky}x{kx}/{self.stride[0]}"


def convolutions_of(onnx_file):
    """Returns the distinct two-dimensional convolutions of a model with fixed shapes, in the model's order."""
    model = shape_inference.infer_shapes(onnx.load(onnx_file))
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
              for v in [*model.graph.input, *model.graph.value_info]}
    shapes |= {i.name: list(i.dims) for i in model.graph.initializer}
    found = {}
    for node in model.graph.node:
        if node.op_type != "Conv" or len(shapes[node.input[0]]) != 4:
            continue
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        conv = Convolution(shapes[node.input[0]], shapes[node.input[1]], attributes)
        if conv.symmetric:
            found.setdefault(conv.key(), conv)
    return list(found.values())


def side_by_side(path, convolutions, dtype):
    """Writes one model whose i-th convolution computes y_i from x_i. Returns the lists of inputs and weights."""
    kind, element = KINDS[dtype]
    rng = np.random.default_rng(0)
    nodes, inputs, outputs, initializers, arrays, weights = [], [], [], [], [], []
    for i, conv in enumerate(convolutions):
        arrays.append(uniform(rng, conv.input_shape, element))
        fan_in = np.prod(conv.weight_shape[1:])
        weights.append((rng.standard_normal(conv.weight_shape) / np.sqrt(fan_in)).astype(element))
        nodes.append(helper.make_node("Conv", [f"x_{i}", f"w_{i}"], [f"y_{i}"], name=f"conv_{i}", strides=conv.stride,
                                      pads=[*conv.padding, *conv.padding], group=conv.groups))
        inputs.append(helper.make_tensor_value_info(f"x_{i}", kind, conv.input_shape))
        outputs.append(helper.make_tensor_value_info(f"y_{i}", kind, conv.output_shape()))
        initializers.append(numpy_helper.from_array(weights[-1], f"w_{i}"))
    save(path, nodes, inputs, outputs, initializers)
    return arrays, weights
