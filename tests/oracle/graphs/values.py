"""Contents of tensors: ordinary numbers, and special ones that often break programs."""

import numpy as np

from . import dtypes as d


def special_floats(dtype):
    """Returns NaN, infinities, zeros, subnormals, the largest and the smallest normal number, rounding ties, and
    limits of integers."""
    eps, tiny, largest = d.EPSILON[dtype], d.SUBNORMAL[dtype], d.LARGEST[dtype]
    normal = tiny / eps
    return [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        tiny,
        -tiny,
        3 * tiny,
        normal,
        -normal,
        normal - tiny,
        largest,
        -largest,
        largest / 2,
        1.0,
        -1.0,
        1 + eps,
        1 - eps / 2,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        3.5,
        1e4,
        -1e4,
        127.5,
        128.0,
        255.5,
        2.0**24 if largest > 2.0**24 else 2048.0,
        1e20 if largest > 1e20 else 3e4,
        -1e20 if largest > 1e20 else -3e4,
    ]


def floats(rng, dtype, shape, kind="normal"):
    count = int(np.prod(shape, dtype=np.int64))
    if kind == "normal":
        x = rng.standard_normal(count) * rng.choice([0.3, 1.0, 1.0, 1.0, 3.0])
    elif kind == "integers":
        x = rng.integers(-8, 9, count).astype(np.float64)
    elif kind == "unit":
        x = rng.uniform(-1, 1, count)
    elif kind == "positive":
        x = rng.uniform(0.05, 3, count)
    elif kind == "equal":
        x = rng.choice(np.array([-1.0, 0.0, 0.5, 2.0]), count)  # many ties
    elif kind == "wide":
        x = rng.standard_normal(count) * 10.0 ** rng.uniform(-6, 6, count)
    elif kind == "huge":
        top = np.log10(d.LARGEST[dtype])
        x = rng.choice([-1, 1], count) * 10.0 ** rng.uniform(top / 2, top, count)
    elif kind == "tiny":
        x = rng.choice([-1, 1], count) * d.SUBNORMAL[dtype] * rng.integers(0, 1 << 9, count)
    elif kind == "special":
        x = rng.standard_normal(count)
        chosen = rng.random(count) < rng.choice([0.02, 0.1, 0.3])
        x = np.where(chosen, rng.choice(np.array(special_floats(dtype)), count), x)
    elif kind == "nan":
        x = np.where(rng.random(count) < rng.choice([0.02, 0.2, 1.0]), np.nan, rng.standard_normal(count))
    elif kind == "infinite":
        some = rng.choice(np.array([np.inf, -np.inf]), count)
        x = np.where(rng.random(count) < rng.choice([0.05, 0.5]), some, rng.standard_normal(count))
    else:
        raise ValueError(kind)
    with np.errstate(all="ignore"):
        return d.narrow(x, dtype).reshape(shape)


def integers(rng, dtype, shape, kind="normal"):
    low, high = d.limits(dtype)
    if kind in ("limits", "special", "huge"):
        choices = np.array([low, high, low + 1, high - 1, 0, 1, high // 2, high // 2 + 1], dtype=dtype)
        if low < 0:
            choices = np.append(choices, np.array([-1, low // 2], dtype=dtype))
        x = rng.choice(choices, shape)
        return np.where(rng.random(shape) < 0.5, x, integers(rng, dtype, shape)).astype(dtype).reshape(shape)
    if kind == "wide":
        return rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    if kind == "positive":
        return rng.integers(1, 10, shape).astype(dtype)
    return rng.integers(max(low, -10), 11, shape).astype(dtype)


FLOAT_KINDS = ["normal"] * 10 + ["integers", "integers", "unit", "positive", "equal", "wide"]
SPECIAL_FLOAT_KINDS = ["special", "special", "nan", "infinite", "huge", "tiny"]
INT_KINDS = ["normal"] * 8 + ["positive", "wide"]
SPECIAL_INT_KINDS = ["limits", "wide"]


def random_array(rng, dtype, shape, kind=None, specials=0.15):
    """Returns a random array. kind: one of the above, None: a random one; specials: probability of special
    numbers."""
    shape = tuple(shape)
    if dtype == d.BOOL:
        return rng.random(shape) < rng.choice([0.5, 0.5, 0.1, 0.9])
    strange = rng.random() < specials
    if d.is_float(dtype):
        if kind is None:
            kind = rng.choice(SPECIAL_FLOAT_KINDS if strange else FLOAT_KINDS)
        return floats(rng, dtype, shape, kind)
    if kind is None:
        kind = rng.choice(SPECIAL_INT_KINDS if strange else INT_KINDS)
    if kind not in ("limits", "special", "huge", "wide", "positive"):
        kind = "normal"
    return np.asarray(integers(rng, dtype, shape, kind))


def random_extent(rng, low=1, high=9, empty=0.0):
    if empty and rng.random() < empty:
        return 0
    if rng.random() < 0.06:
        high = max(high, 20)
    if rng.random() < 0.02:
        high = max(high, 70)
    return int(rng.integers(low, high + 1))


def random_shape(rng, rank=None, low_rank=0, high_rank=4, empty=0.0, most=3000):
    if rank is None:
        rank = int(rng.integers(low_rank, high_rank + 1))
        if rng.random() < 0.05 and high_rank < 6:
            rank = int(rng.integers(low_rank, 7))
    while True:
        shape = [random_extent(rng, high=9 if rank <= 3 else 5) for _ in range(rank)]
        if empty and rank and rng.random() < empty:
            shape[int(rng.integers(rank))] = 0
        if np.prod(shape) <= most:
            return shape
