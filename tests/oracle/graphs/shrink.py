"""Shrinks a failing case: fewer outputs and nodes, inputs in place of intermediate values, default attributes, simple
contents."""

import copy
import time

import numpy as np

from . import dtypes as d
from .builder import make_tensor
from .files import to_array
from .oracles import value_info


class Shrinker:
    """Shrinks a case while fails(model, inputs) says that it still has the same kind of failure."""

    def __init__(self, fails, values, seconds=60):
        self.fails, self.values = fails, values
        self.deadline = time.monotonic() + seconds

    def shrink(self, model, inputs):
        best = (model, dict(inputs))
        changed = True
        while changed and time.monotonic() < self.deadline:
            changed = False
            for step in (
                self.outputs,
                self.cut,
                self.bypass,
                self.attributes,
                self.constants,
                self.extents,
                self.contents,
                self.initializers,
            ):
                for candidate in step(*best):
                    if time.monotonic() > self.deadline:
                        break
                    candidate = cleaned(*candidate)
                    if size(*candidate) >= size(*best):
                        continue
                    try:
                        if self.fails(*candidate):
                            best = candidate
                            changed = True
                            break
                    except Exception:  # malformed: not a candidate
                        continue
                if changed:
                    break
        return best

    def outputs(self, model, inputs):
        """Yields the model with a single output, and with one output less."""
        count = len(model.graph.output)
        if count < 2:
            return
        for keep in [[i] for i in range(count)] + [[j for j in range(count) if j != i] for i in range(count)]:
            m = copy.deepcopy(model)
            kept = [m.graph.output[i] for i in keep]
            del m.graph.output[:]
            m.graph.output.extend(kept)
            yield m, inputs

    def cut(self, model, inputs):
        """Yields the model with the outputs of a node replaced by inputs with the same values."""
        for i in range(len(model.graph.node)):
            node = model.graph.node[i]
            if node.op_type == "Constant" or any(o not in self.values for o in node.output if o):
                continue
            m = copy.deepcopy(model)
            own = dict(inputs)
            used = {n for x in m.graph.node for n in x.input} | {o.name for o in m.graph.output}
            for o in node.output:
                if o and o in used:
                    own[o] = self.values[o]
                    m.graph.input.append(value_info(o, self.values[o].dtype, self.values[o].shape))
            del m.graph.node[i]
            names = {o for o in node.output if o}
            kept = [o for o in m.graph.output if o.name not in names]
            if kept and len(kept) < len(m.graph.output):
                del m.graph.output[:]
                m.graph.output.extend(kept)
            yield m, own

    def bypass(self, model, inputs):
        """Yields the model with the readers of a node reading the node's input."""
        for i, node in enumerate(model.graph.node):
            if not node.input or len([o for o in node.output if o]) != 1:
                continue
            out = node.output[0]
            for name in node.input:
                a, b = self.values.get(name), self.values.get(out)
                if not name or a is None or b is None or a.dtype != b.dtype or a.shape != b.shape:
                    continue
                if any(o.name == out for o in model.graph.output):
                    continue
                m = copy.deepcopy(model)
                del m.graph.node[i]
                for x in m.graph.node:
                    for k, n in enumerate(x.input):
                        if n == out:
                            x.input[k] = name
                yield m, inputs

    def attributes(self, model, inputs):
        for i, node in enumerate(model.graph.node):
            if node.op_type == "Constant":
                continue
            for k in range(len(node.attribute)):
                m = copy.deepcopy(model)
                del m.graph.node[i].attribute[k]
                yield m, inputs
            # Drops optional inputs and outputs at the end.
            if len(node.input) > 1:
                m = copy.deepcopy(model)
                del m.graph.node[i].input[-1]
                yield m, inputs

    def constants(self, model, inputs):
        """Yields the model with Constant nodes replaced by initializers."""
        for i, node in enumerate(model.graph.node):
            if node.op_type != "Constant":
                continue
            m = copy.deepcopy(model)
            tensor = m.graph.node[i].attribute[0].t
            tensor.name = node.output[0]
            m.graph.initializer.append(tensor)
            del m.graph.node[i]
            yield m, inputs

    def contents(self, model, inputs):
        """Yields the case with inputs of zeros, ones and small integers."""
        for name, x in inputs.items():
            for simple in simpler(x):
                if complexity(simple) < complexity(x):
                    yield model, {**inputs, name: simple}

    def extents(self, model, inputs):
        """Yields the case with all dimensions of one extent shortened."""
        tensors = {t.name: to_array(t) for t in model.graph.initializer}
        arrays = {**tensors, **inputs}
        for extent in sorted({e for x in arrays.values() for e in x.shape if e > 1}, reverse=True):
            for less in sorted({1, 2, extent // 2, extent - 1}):
                if not 0 < less < extent:
                    continue
                cut = {
                    n: np.ascontiguousarray(x[tuple(slice(0, less if e == extent else e) for e in x.shape)])
                    for n, x in arrays.items()
                }
                m = copy.deepcopy(model)
                del m.graph.initializer[:]
                m.graph.initializer.extend(make_tensor(cut[n], n) for n in tensors)
                infos = [value_info(i.name, cut[i.name].dtype, cut[i.name].shape) for i in m.graph.input]
                del m.graph.input[:]
                m.graph.input.extend(infos)
                for o in m.graph.output:
                    o.type.tensor_type.ClearField("shape")
                yield m, {n: cut[n] for n in inputs}

    def initializers(self, model, inputs):
        """Yields the model with initializers of simple contents."""
        for i, tensor in enumerate(model.graph.initializer):
            x = to_array(tensor)
            for simple in simpler(x):
                if complexity(simple) < complexity(x):
                    m = copy.deepcopy(model)
                    m.graph.initializer[i].CopyFrom(make_tensor(simple, tensor.name))
                    yield m, inputs


def simpler(x):
    with np.errstate(all="ignore"):
        yield np.zeros_like(x)
        yield np.ones_like(x)
        if d.is_float(x.dtype):
            w = d.wide(x)
            if np.isfinite(w).all():
                yield d.narrow(np.rint(w), x.dtype)
                yield d.narrow(np.rint(w * 4) / 4, x.dtype)
            else:
                yield d.narrow(np.where(np.isfinite(w), 0.0, w), x.dtype)
                yield d.narrow(np.where(np.isfinite(w), np.rint(np.where(np.isfinite(w), w, 0)), w), x.dtype)


def complexity(x):
    if x.size == 0:
        return 0
    if d.is_float(x.dtype):
        w = d.wide(x)
        return int((w != 0).sum()) + int((w != np.rint(w)).sum()) + int((w * 4 != np.rint(w * 4)).sum())
    return int((x != 0).sum()) + int((x.astype(np.float64) != 1).sum())


def size(model, inputs):
    nodes = [n for n in model.graph.node if n.op_type != "Constant"]
    return (
        len(nodes) + len(model.graph.output),
        len(model.graph.node),
        sum(len(n.input) for n in nodes),
        sum(len(n.attribute) for n in nodes),
        sum(x.size for x in inputs.values()),
        sum(t.ByteSize() for t in model.graph.initializer),
        sum(complexity(x) for x in inputs.values()),
        sum(complexity(to_array(t)) for t in model.graph.initializer),
    )


def cleaned(model, inputs):
    """Returns the model without unneeded nodes, initializers and inputs."""
    m = copy.deepcopy(model)
    needed = {o.name for o in m.graph.output}
    kept = []
    for node in reversed(m.graph.node):
        if any(o in needed for o in node.output):
            kept.append(node)
            needed.update(n for n in node.input if n)
    kept = [copy.deepcopy(n) for n in reversed(kept)]
    for node in kept:
        while node.input and not node.input[-1]:
            del node.input[-1]
        unused = [o for o in node.output if o and o not in needed]
        # Drops unread outputs at the end, except for those that the operator must have.
        while (
            len(node.output) > 1
            and (not node.output[-1] or node.output[-1] in unused)
            and node.op_type not in ("TopK", "Split", "DynamicQuantizeLinear", "Adagrad", "Adam", "Momentum")
        ):
            del node.output[-1]
    del m.graph.node[:]
    m.graph.node.extend(kept)
    for field in (m.graph.initializer, m.graph.input):
        own = [x for x in field if x.name in needed]
        del field[:]
        field.extend(own)
    names = {i.name for i in m.graph.input}
    return m, {n: x for n, x in inputs.items() if n in names}
