"""Matrix products and sums of products."""

import numpy as np

from .. import dtypes as d
from ..builder import Skip
from .registry import operator


def matrix_extent(b):
    return b.pick([1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 0 if b.chance(b.empty) else 6])


@operator("MatMul", weight=4)
def matmul(b, op):
    x = b.value(b.allowed(op, "T"), rank=(1, 4))
    depth = x.shape[-1]
    found = [v for v in b.pool if v.dtype == x.dtype and v.rank >= 1 and v.shape[-2 if v.rank > 1 else 0] == depth]
    if found and b.chance(0.5):
        y = b.pick(found)
    else:
        shape = [depth, matrix_extent(b)] if b.chance(0.85) else [depth]
        if x.rank > 2 and len(shape) == 2 and b.chance(0.5):
            shape = [1 if b.chance(0.3) else e for e in x.shape[:-2]] + shape
        y = b.fresh(x.dtype, shape)
    check_batches(x, y)
    b.add(op, [x, y])


def check_batches(x, y):
    try:
        batch = np.broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    except ValueError:
        raise Skip("batches do not fit") from None
    if np.prod(batch) * (x.shape[-2] if x.rank > 1 else 1) * (y.shape[-1] if y.rank > 1 else 1) > 5000:
        raise Skip("too large")


@operator("Gemm", weight=3)
def gemm(b, op):
    x = b.value(b.allowed(op, "T"), rank=2)
    ta, tb = b.pick([None, 0, 1]), b.pick([None, 0, 1])
    m, depth = (x.shape[1], x.shape[0]) if ta else (x.shape[0], x.shape[1])
    n = matrix_extent(b)
    y = b.value([x.dtype], shape=[n, depth] if tb else [depth, n])
    c = None
    if b.opset < 11 or b.chance(0.7):
        c = b.fresh(x.dtype, b.pick([[n], [m, n], [1, n], [m, 1], [], [1, 1]]))
    floats = d.is_float(x.dtype)
    factors = [None, None, 0.0, 1.0, 0.5, b.uniform(-2, 2)] if floats else [None, 1.0, 2.0]
    b.add(op, [x, y, c], transA=ta, transB=tb, alpha=b.pick(factors), beta=b.pick(factors))


EQUATIONS = [
    "ij,jk->ik",
    "bij,bjk->bik",
    "i,i->",
    "i,j->ij",
    "ij->ji",
    "ii->i",
    "ii",
    "ij->",
    "ij->i",
    "ij,ij->ij",
    "...ij,...jk->...ik",
    "bij,bkj->bik",
    "abc,cd,bd->ad",
    "ab,bc,cd->ad",
    "i,j,k->ijk",
    "bi,ij,bj->b",
    "aab,bc,c->a",
    "ab,ab,ab->",
    "...ab,bc,...cd->...ad",
    "a,ab,bcd,de->ce",
    "ij,jk",
    "bhid,bhjd->bhij",
    "i...->...",
    "...i,i->...",
    "ijk,ilm,njm,nlk,abc->",
    "bi,bj->bij",
    "a,b,c->abc",
    "iij->ij",
    "ab...,b...->a...",
]


@operator("Einsum", weight=1.5)
def einsum(b, op):
    equation = b.pick(EQUATIONS)
    labels = {c: b.integer(1, 4) for c in "abcdefghijklmno"}
    batch = [b.integer(1, 3) for _ in range(b.integer(0, 2))]
    dtype = b.dtype(op, "T", d.FLOATS + (d.I32, d.I64))
    operands = []
    for term in equation.split("->")[0].split(","):
        shape = []
        for part in term.replace("...", "."):
            shape += batch if part == "." else [labels[part]]
        operands.append(b.value([dtype], shape=shape))
    if b.chance(0.3):
        equation = equation.replace(",", " , ").replace("->", " -> ")
    b.add(op, operands, equation=equation)


@operator("Det")
def det(b, op):
    n = b.integer(1, 4)
    shape = [b.integer(1, 3) for _ in range(b.integer(0, 2))] + [n, n]
    b.add(op, [b.value(b.allowed(op, "T"), shape=shape)])
