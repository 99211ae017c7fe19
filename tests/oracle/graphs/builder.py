"""A graph under construction: its values with their contents, and functions with which generators read and add
them."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from . import dtypes as d
from .oracles import NotComputed, opset_model, schema_of, split_name, value_info
from .truth import Conflict, GraphTruth, Undefined
from .values import random_array, random_shape


class Skip(Exception):
    """The generator finds no suitable values; another operator is tried."""


class Value:
    def __init__(self, name, array, constant):
        self.name, self.array, self.constant = name, array, constant

    dtype = property(lambda self: self.array.dtype)
    shape = property(lambda self: list(self.array.shape))
    rank = property(lambda self: self.array.ndim)
    size = property(lambda self: self.array.size)


def make_tensor(array, name):
    array = np.asarray(array)
    if array.dtype == d.BF16:
        return helper.make_tensor(name, d.TO_ONNX[d.BF16], array.shape, array.tobytes(), raw=True)
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


class Builder:
    def __init__(self, rng, opset, accepted, specials=0.15, empty=0.02):
        self.rng, self.opset = rng, opset
        self.specials, self.empty = specials, empty
        self.truth = GraphTruth(opset, accepted, int(rng.integers(2**31)))
        self.pool = []  # values that nodes may read
        self.inputs, self.initializers, self.nodes = [], [], []
        self.counter = 0
        self.operators = []
        self.notes = []  # (kind, operator, text) of nodes that were not made
        self.used = set()

    # -- random choices --
    def chance(self, p):
        return bool(self.rng.random() < p)

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def uniform(self, low, high):
        return float(np.float32(self.rng.uniform(low, high)))

    def name(self, stem):
        self.counter += 1
        return f"{stem}{self.counter}"

    # -- types --
    def allowed(self, op, parameter):
        """Returns the dtypes that ONNX's schema allows for a type parameter of the operator in this opset."""
        schema = self.schema(op)
        for constraint in schema.type_constraints:
            if constraint.type_param_str == parameter:
                return [d.FROM_SCHEMA[t] for t in constraint.allowed_type_strs if t in d.FROM_SCHEMA]
        raise KeyError((op, parameter))

    def schema(self, op):
        domain, name = split_name(op)
        try:
            schema = schema_of(name, self.opset, domain)
        except onnx.defs.SchemaError:
            raise Skip(f"no {op} in opset {self.opset}") from None
        if schema is not None and schema.deprecated:
            raise Skip(f"{op} is no operator of opset {self.opset} any more")
        return schema

    def has_schema(self, op, least=1):
        try:
            return onnx.defs.get_schema(op, self.opset, "").since_version >= least
        except onnx.defs.SchemaError:
            return False

    def dtype(self, op, parameter="T", among=d.ALL):
        allowed = [t for t in self.allowed(op, parameter) if t in among]
        if not allowed:
            raise Skip("no such dtype")
        weights = np.array([8.0 if t == d.F32 else 2.0 if t in (d.F64, d.F16, d.I64, d.I32) else 1.0 for t in allowed])
        return allowed[int(self.rng.choice(len(allowed), p=weights / weights.sum()))]

    # -- values --
    def fresh(self, dtype, shape, kind=None, array=None, where=None):
        """Adds a graph input, initializer or Constant with random contents."""
        if array is None:
            array = random_array(self.rng, np.dtype(dtype), shape, kind, self.specials)
        array = np.asarray(array)
        where = where or self.pick(["input", "input", "input", "initializer", "initializer", "constant"])
        name = self.name({"input": "x", "initializer": "w", "constant": "c"}[where])
        if where == "input":
            self.inputs.append(name)
        elif where == "initializer":
            self.initializers.append(name)
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], name=name, value=make_tensor(array, "")))
        self.truth.define(name, array)
        value = Value(name, array, where != "input")
        self.pool.append(value)
        return value

    def constant(self, array, dtype=None):
        """Adds a value that is known at compile time."""
        return self.fresh(
            None, None, array=np.asarray(array, dtype=dtype), where=self.pick(["initializer", "constant"])
        )

    def value(self, dtypes=None, rank=None, shape=None, fits=None, kind=None, reuse=0.8, most=3000, least_extent=None):
        """Returns a value of one of the dtypes, with a rank (or one in a range) or a shape. It is a value of the
        graph if one fits, else one adapted by Cast or Reshape, else a new one."""
        dtypes = list(dtypes if dtypes is not None else d.ALL)
        low, high = (rank, rank) if isinstance(rank, int) else rank or (0, 6)

        def right(v):
            if v.dtype not in dtypes or not low <= v.rank <= high or v.size > most:
                return False
            if shape is not None and v.shape != list(shape):
                return False
            if least_extent is not None and min(v.shape or [1]) < least_extent:
                return False
            return fits is None or fits(v)

        if self.chance(reuse) and self.pool:
            found = [v for v in self.pool if right(v)]
            if found:
                # Prefers late values, which make deep graphs.
                at = max(int(self.rng.integers(len(found))), int(self.rng.integers(len(found))))
                return found[at]
            adapted = self._adapted(dtypes, low, high, shape, right) if self.chance(0.6) else None
            if adapted is not None:
                return adapted
        for _ in range(8):
            own = (
                list(shape)
                if shape is not None
                else random_shape(
                    self.rng, None, low, min(high, max(low, 4)), self.empty if not least_extent else 0, most
                )
            )
            dtype = dtypes[int(self.rng.integers(len(dtypes)))]
            if d.F32 in dtypes and self.chance(0.5):
                dtype = d.F32
            array = random_array(self.rng, dtype, own, kind, self.specials)
            if right(Value("", array, False)):
                return self.fresh(dtype, own, array=array)
        raise Skip("no value fits")

    def _adapted(self, dtypes, low, high, shape, right):
        v = self.pick(self.pool[-12:])
        try:
            if v.dtype not in dtypes:
                to = self.pick(dtypes)
                if d.is_int(to) and d.is_float(v.dtype):
                    return None
                v = self.add("Cast", [v], to=d.TO_ONNX[to])[0]
            wanted = shape
            if wanted is None and not low <= v.rank <= high:
                wanted = self._shape_of_size(v.size, self.integer(low, min(high, low + 2)))
            if wanted is not None and v.shape != list(wanted):
                if wanted is None or np.prod(wanted) != v.size or v.size == 0:
                    return None
                v = self.reshape(v, wanted)
        except (Skip, Undefined, Conflict, NotComputed):
            return None
        return v if right(v) else None

    def _shape_of_size(self, size, rank):
        if rank == 0:
            return [] if size == 1 else None
        shape = [1] * rank
        rest, factor = size, 2
        while rest > 1 and factor <= 64:
            if rest % factor == 0:
                shape[int(self.rng.integers(rank))] *= factor
                rest //= factor
            else:
                factor += 1
        shape[int(self.rng.integers(rank))] *= rest
        return shape

    def reshape(self, v, shape):
        return self.add("Reshape", [v, self.constant(np.array(shape, dtype=np.int64))])[0]

    def broadcastable(self, v, dtype=None, kind=None, smaller=False):
        """Returns a value of the graph, or a new one, that broadcasts with v. smaller: the result has v's shape."""
        dtype = dtype or v.dtype

        def fits(w):
            try:
                shape = np.broadcast_shapes(tuple(w.shape), tuple(v.shape))
            except ValueError:
                return False
            return np.prod(shape) <= 3000 and (not smaller or list(shape) == v.shape)

        found = [w for w in self.pool if w.dtype == dtype and fits(w)]
        if found and self.chance(0.6):
            return self.pick(found)
        shape = [1 if self.chance(0.3) else e for e in v.shape]
        if self.chance(0.3):
            shape = shape[self.integer(0, len(shape)) :]
        if not smaller and len(shape) < 5 and self.chance(0.1):
            shape = [self.integer(1, 3)] + ([1] * (len(v.shape) - len(shape))) + shape
        return self.fresh(dtype, shape, kind)

    # -- nodes --
    def add(self, op, inputs, outputs=1, **attributes):
        """Adds a node and evaluates it. Returns its output values. outputs: their number, or a list with 0 for each
        optional output that is left out."""
        self.schema(op)
        wanted = [1] * outputs if isinstance(outputs, int) else list(outputs)
        names = [self.name("v") if w else "" for w in wanted]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        ins = [v.name if v is not None else "" for v in inputs]
        while ins and not ins[-1]:
            ins.pop()
        domain, op_type = split_name(op)
        node = helper.make_node(op_type, ins, names, name=self.name("n"), domain=domain or None, **attributes)
        try:
            truth = self.truth.add(node)
        except Undefined as error:
            self.notes.append(("undefined", op, str(error)))
            raise
        except Conflict as error:
            self.notes.append(("conflict", op, str(error)))
            self.conflict = (node, [v.array if v is not None else None for v in inputs], str(error))
            raise
        except NotComputed as error:
            self.notes.append(("no oracle", op, str(error)))
            raise
        self.nodes.append(node)
        self.operators.append(op)
        self.used.update(n for n in node.input if n)
        results = []
        for name, array in zip(names, truth.outputs):
            if name and array is None:
                raise NotComputed("an output is missing")
            value = Value(name, array, False) if name else None
            results.append(value)
            if value is not None:
                self.pool.append(value)
        return results

    # -- the whole graph --
    def checkpoint(self):
        return (
            len(self.pool),
            len(self.inputs),
            len(self.initializers),
            len(self.nodes),
            len(self.truth.nodes),
            len(self.operators),
            set(self.used),
        )

    def rollback(self, mark):
        pool, inputs, initializers, nodes, truths, operators, used = mark
        del self.pool[pool:], self.inputs[inputs:], self.initializers[initializers:], self.nodes[nodes:]
        del self.truth.nodes[truths:], self.operators[operators:]
        self.used = used

    def model(self, outputs):
        """Returns the ModelProto and its inputs by name. outputs: names in order."""
        values = self.truth.values
        feeds = [value_info(n, values[n].dtype, values[n].shape) for n in self.inputs]
        results = [value_info(n, values[n].dtype, values[n].shape) for n in outputs]
        tensors = [make_tensor(values[n], n) for n in self.initializers]
        return opset_model(self.nodes, feeds, results, self.opset, tensors), {n: values[n] for n in self.inputs}
