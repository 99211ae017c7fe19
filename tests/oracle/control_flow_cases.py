"""Random models of Loop, Scan, If, RNN, GRU and LSTM, nested, whose outputs ONNX Runtime computes. For
scripts/conformance.

Run alone, checks more of them:
    build/oracle/bin/python tests/oracle/control_flow_cases.py --tensorsmith build/dev/tensorsmith --seed 7 --cases 1000
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ELEMENTWISE = ["Tanh", "Sigmoid", "Relu", "Neg", "Softsign", "Abs"]
PAIRWISE = ["Add", "Mul", "Sub", "Max", "Min"]
TAKE_BETA = ["Affine", "HardSigmoid", "ScaledTanh"]
TAKE_ALPHA = TAKE_BETA + ["Elu", "LeakyRelu", "ThresholdedRelu"]
ACTIVATIONS = TAKE_ALPHA + ["Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"]


class Body:
    """A graph under construction: its nodes, and the names of its f32 values of each shape."""

    def __init__(self, case, outer=None):
        self.case, self.outer = case, outer
        self.nodes, self.initializers = [], []
        self.values = dict()

    def visible(self, shape):
        own = self.values.get(shape, [])
        return own + (self.outer.visible(shape) if self.outer is not None else [])

    def define(self, name, shape):
        self.values.setdefault(tuple(shape), []).append(name)
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        names = [self.case.name("v") for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=self.case.name(op), **attributes))
        return names

    def constant(self, array):
        name = self.case.name("w")
        array = np.asarray(array)
        if self.case.chance(0.3):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def graph(self, inputs, outputs):
        infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
        results = [helper.make_tensor_value_info(n, t, s) for n, t, s in outputs]
        return helper.make_graph(self.nodes, self.case.name("body"), infos, results, self.initializers)


class Case:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.count = 0
        self.opset = self.pick([13, 17, 21])

    def chance(self, p):
        return bool(self.rng.random() < p)

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def array(self, *shape, scale=0.5):
        return np.asarray(scale * self.rng.standard_normal(shape), np.float32)

    def shape(self):
        return self.pick([(1, 16), (3, 16), (2, 5), (7,), (1, 3, 4), ()])

    def read(self, body, shape):
        found = body.visible(tuple(shape))
        if found and not self.chance(0.15):
            return self.pick(found)
        return body.define(body.constant(self.array(*shape)), shape)

    def compute(self, body, shape, steps):
        """Adds some nodes; the last one's value has the shape."""
        for _ in range(steps):
            kind = self.integer(0, 9)
            if kind < 4:
                made = body.node(self.pick(PAIRWISE), [self.read(body, shape), self.read(body, shape)])
            elif kind < 7 or len(shape) < 2:
                made = body.node(self.pick(ELEMENTWISE), [self.read(body, shape)])
            elif kind < 9:
                weight = body.constant(self.array(shape[-1], shape[-1], scale=0.5 * shape[-1] ** -0.5))
                made = body.node("MatMul", [self.read(body, shape), weight])
            else:
                total = body.node("ReduceMean", [self.read(body, shape)], axes=[-1], keepdims=1)[0] \
                    if self.opset < 18 else body.node("ReduceMax", [self.read(body, shape), body.constant(np.array([-1]))])[0]
                made = body.node("Sub", [self.read(body, shape), total])
            # Keeps values of long loops in range.
            body.define(body.node("Tanh", made)[0], shape)
        return body.values[tuple(shape)][-1]

    def truth(self, body):
        """Returns a condition that is known only at run time."""
        shape = self.shape()
        total = body.node("ReduceSum", [self.read(body, shape)], keepdims=0)[0]
        return body.node(self.pick(["Less", "Greater"]), [total, body.constant(np.float32(self.rng.normal()))])[0]

    def branch(self, body, depth):
        shapes = [self.shape() for _ in range(self.integer(1, 2))]
        condition = self.truth(body)
        graphs = []
        for _ in range(2):
            inner = Body(self, body)
            for shape in shapes:
                self.fill(inner, depth)
            outputs = []
            for shape in shapes:
                made = self.compute(inner, shape, self.integer(1, 4))
                outputs.append(inner.node("Identity", [self.read(inner, shape) if self.chance(0.15) else made])[0])
            graphs.append(inner.graph([], [(o, TensorProto.FLOAT, s) for o, s in zip(outputs, shapes)]))
        for name, shape in zip(body.node("If", [condition], len(shapes), then_branch=graphs[0], else_branch=graphs[1]), shapes):
            body.define(name, shape)

    def loop(self, body, depth):
        states = [self.shape() for _ in range(self.integer(1, 3))]
        turns = self.pick([1, 2, 5, 40, 300])
        kind = self.pick(["known", "known", "condition", "counted"])
        results = [self.shape() for _ in range(self.integer(0, 2))] if kind == "known" else []
        inner = Body(self, body)
        turn, go = self.name("turn"), self.name("go")
        given = [inner.define(self.name("state"), s) for s in states]
        if self.chance(0.4):
            number = inner.node("Cast", [turn], to=TensorProto.FLOAT)[0]
            inner.define(inner.node("Mul", [number, inner.constant(np.float32(0.01))])[0], ())
        self.fill(inner, depth)
        outputs = [self.compute(inner, s, self.integer(1, 4)) for s in states]
        if self.chance(0.2):
            outputs[0] = given[0]  # a state that does not change, or that another one becomes
        if len(states) > 1 and states[0] == states[1] and self.chance(0.5):
            outputs[0], outputs[1] = given[1], given[0]
        outputs = [inner.node("Identity", [o])[0] for o in outputs]
        made = [inner.node("Identity", [self.compute(inner, s, self.integer(1, 2))])[0] for s in results]
        if kind == "condition":
            more = self.truth(inner)
        else:
            more = inner.node("Identity", [go])[0]
        graph = inner.graph(
            [(turn, TensorProto.INT64, []), (go, TensorProto.BOOL, [])] + [(g, TensorProto.FLOAT, s) for g, s in zip(given, states)],
            [(more, TensorProto.BOOL, [])] + [(o, TensorProto.FLOAT, s) for o, s in zip(outputs + made, states + results)])
        count = body.constant(np.array(turns, np.int64))
        if kind == "counted":
            count = body.node("Cast", [body.node("Abs", [self.read(body, ())])[0]], to=TensorProto.INT64)[0]
            count = body.node("Add", [count, body.constant(np.array(turns % 7, np.int64))])[0]
        names = body.node("Loop", [count, "" if self.chance(0.7) else body.constant(np.array(True))] +
                          [self.read(body, s) for s in states], len(states) + len(results), body=graph)
        for name, shape in zip(names, states):
            body.define(name, shape)
        for name, shape in zip(names[len(states):], results):
            self.use_sequence(body, name, turns, shape, 0)

    def use_sequence(self, body, name, turns, shape, axis):
        """Reduces a tensor of slices to one slice, so that other nodes can read it."""
        weights = [1] * (len(shape) + 1)
        weights[axis] = turns
        product = body.node("Mul", [name, body.constant(self.array(*weights, scale=1 / turns))])[0]
        if self.opset < 18 and self.chance(0.5):
            body.define(body.node("ReduceMean", [product], axes=[axis], keepdims=0)[0], shape)
        else:
            body.define(body.node("ReduceSum", [product, body.constant(np.array([axis]))], keepdims=0)[0], shape)

    def scan(self, body, depth):
        states = [self.shape() for _ in range(self.integer(1, 2))]
        slices = [self.shape() for _ in range(self.integer(1, 2))]
        results = [self.shape() for _ in range(self.integer(1, 2))]
        turns = self.pick([1, 3, 20, 150])
        axes = [self.integer(0, len(s)) for s in slices]
        out_axes = [self.integer(0, len(s)) for s in results]
        inner = Body(self, body)
        given = [inner.define(self.name("state"), s) for s in states]
        read = [inner.define(self.name("slice"), s) for s in slices]
        self.fill(inner, depth)
        outputs = [inner.node("Identity", [self.compute(inner, s, self.integer(1, 4))])[0] for s in states]
        made = [inner.node("Identity", [self.compute(inner, s, 1)])[0] for s in results]
        typed = lambda names, shapes: [(n, TensorProto.FLOAT, s) for n, s in zip(names, shapes)]
        graph = inner.graph(typed(given + read, states + slices), typed(outputs + made, states + results))
        tensors = [body.node("Sin", [body.constant(self.array(*s[:a], turns, *s[a:], scale=2))])[0] if self.chance(0.5)
                   else body.constant(self.array(*s[:a], turns, *s[a:])) for s, a in zip(slices, axes)]
        names = body.node("Scan", [self.read(body, s) for s in states] + tensors, len(states) + len(results), body=graph,
                          num_scan_inputs=len(slices), scan_input_axes=axes, scan_output_axes=out_axes,
                          scan_input_directions=[self.integer(0, 1) for _ in slices],
                          scan_output_directions=[self.integer(0, 1) for _ in results])
        for name, shape in zip(names, states):
            body.define(name, shape)
        for name, shape, axis in zip(names[len(states):], results, out_axes):
            self.use_sequence(body, name, turns, shape, axis)

    def recurrence(self, body, depth):
        op, gates = self.pick([("RNN", 1), ("GRU", 3), ("LSTM", 4)])
        hidden, width, batch = self.pick([16, 5, 8]), self.pick([3, 16]), self.pick([1, 1, 3])
        steps = self.pick([1, 6, 33, 200])
        direction = self.pick(["forward", "reverse", "bidirectional"])
        both = 2 if direction == "bidirectional" else 1
        x = body.node("Sin", [body.constant(self.array(steps, batch, width, scale=2))])[0]
        inputs = [x] + [body.constant(self.array(both, gates * hidden, n, scale=n ** -0.5)) for n in (width, hidden)]
        inputs.append(body.constant(self.array(both, 2 * gates * hidden)) if self.chance(0.6) else "")
        inputs.append(body.constant(self.rng.integers(1, steps + 1, batch).astype(np.int32)) if self.chance(0.3) else "")
        for _ in range(2 if op == "LSTM" else 1):
            inputs.append(body.constant(self.array(both, batch, hidden)) if self.chance(0.4) else "")
        if op == "LSTM":
            inputs.append(body.constant(self.array(both, 3 * hidden)) if self.chance(0.3) else "")
        attributes = dict(hidden_size=hidden, direction=direction)
        if op == "GRU":
            attributes["linear_before_reset"] = self.integer(0, 1)
        if self.chance(0.2):
            attributes["clip"] = 1.5
        if self.chance(0.2):
            # With other gates, or without clipping, rounding errors may grow from step to step.
            gate = {"RNN": [], "GRU": ["Sigmoid"], "LSTM": ["HardSigmoid"]}[op]
            names = []
            for _ in range(both):
                names += gate + [self.pick(ACTIVATIONS) for _ in range(2 if op == "LSTM" else 1)]
            attributes["activations"] = names
            attributes["clip"] = 1.0
            # ONNX Runtime's default for ThresholdedRelu is not that of ONNX, so all parameters are given, in the order of
            # the activations that take them.
            for key, takers in (("activation_alpha", TAKE_ALPHA), ("activation_beta", TAKE_BETA)):
                values = [float(self.rng.uniform(0.1, 0.6)) for n in names if n in takers]
                if values:
                    attributes[key] = values
        outputs = body.node(op, inputs, 3 if op == "LSTM" else 2, **attributes)
        self.use_sequence(body, outputs[0], steps, (both, batch, hidden), 0)
        for name in outputs[1:]:
            body.define(name, (both, batch, hidden))
        self.collapse(body, (both, batch, hidden))

    def collapse(self, body, shape):
        """Makes a value of a shape that other nodes use."""
        x = body.node("Flatten", [self.read(body, shape)], axis=0)[0]
        weight = body.constant(self.array(int(np.prod(shape)), 16, scale=0.2))
        body.define(body.node("MatMul", [x, weight])[0], (1, 16))

    def fill(self, body, depth):
        if depth > 0 and self.chance(0.35):
            self.pick([self.branch, self.loop, self.scan])(body, depth - 1)

    def model(self):
        main = Body(self)
        feeds = {}
        for _ in range(self.integer(2, 4)):
            shape = self.shape()
            name = main.define(self.name("x"), shape)
            feeds[name] = self.array(*shape, scale=1)
        infos = [(n, TensorProto.FLOAT, x.shape) for n, x in feeds.items()]
        for _ in range(self.integer(1, 3)):
            self.pick([self.branch, self.loop, self.loop, self.scan, self.recurrence])(main, 2)
            self.compute(main, self.shape(), 1)
        produced = {n for node in main.nodes for n in node.output}
        outputs = []
        for shape, names in main.values.items():
            for name in names[-2:]:
                if name in produced and name not in outputs:
                    outputs.append(name)
        graph = helper.make_graph(main.nodes, "case", [helper.make_tensor_value_info(*i) for i in infos],
                                  [onnx.ValueInfoProto(name=o) for o in outputs], main.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9), feeds


def complete(model, feeds):
    """Returns the outputs of ONNX Runtime, whose types and shapes become those of the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = session.run(None, feeds)
    for info, array in zip(model.graph.output, outputs):
        info.CopyFrom(helper.make_tensor_value_info(info.name, TensorProto.FLOAT, array.shape))
    return outputs


def all_cases(first=0, count=150):
    """Yields (name, model, inputs, outputs). Leaves out those that overflow: activations may be unbounded."""
    for seed in range(first, first + count):
        model, feeds = Case(seed).model()
        outputs = complete(model, feeds)
        if all(np.isfinite(y).all() for y in outputs):
            yield f"control_flow_{seed}", model, list(feeds.values()), outputs


def main():
    from conformance import write_case
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorsmith", required=True)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the cases that differ")
    arguments = parser.parse_args()
    tool = pathlib.Path(arguments.tensorsmith).resolve()
    wrong = total = 0
    for name, model, inputs, outputs in all_cases(arguments.seed, arguments.cases):
        total += 1
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / name
            write_case(folder, model, [(inputs, outputs)])
            out = pathlib.Path(scratch) / "compiled"
            for command in (["compile", folder / "model.onnx", "-o", out], ["run", out, "--check", folder]):
                done = subprocess.run([tool, *command], capture_output=True, text=True, cwd=scratch)
                if done.returncode == 0:
                    continue
                wrong += 1
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                print(f"{name}: {last[0] if last else f'{command[0]} ended with {done.returncode}'}", flush=True)
                if arguments.keep:
                    write_case(arguments.keep / name, model, [(inputs, outputs)])
                break
    print(f"{total - wrong} of {total} agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
