"""Compares an output with the exact one and with its disturbed executions."""

import numpy as np

from . import dtypes as d

SAFETY = 4.0


def difference(got, exact, others=()):
    """Returns None, or a text with the difference. others: the same output of disturbed executions (noise.py)."""
    if got.shape != exact.shape:
        return f"shape {list(got.shape)} instead of {list(exact.shape)}"
    if got.dtype != exact.dtype:
        return f"dtype {got.dtype} instead of {exact.dtype}"
    if exact.size == 0:
        return None
    if not d.is_float(exact.dtype):
        near = _near_integers(got, exact, others)
    else:
        near = _near_floats(d.wide(got), d.wide(exact), [d.wide(o) for o in others], exact.dtype)
    if near.all():
        return None
    wrong = int(near.size - near.sum())
    at = np.unravel_index(int(np.argmin(near)), near.shape)
    place = "[" + ",".join(str(int(i)) for i in at) + "]"
    return f"{place} is {got[at]!s} instead of {exact[at]!s} ({wrong} of {near.size} elements wrong)"


def _near_integers(got, exact, others):
    near = got == exact
    if near.all() or not others:
        return near
    if exact.dtype == np.bool_:
        # A byte that is neither 0 nor 1 is wrong.
        for o in others:
            near = near | (got == o)
        return near
    low, high = exact, exact
    for o in others:
        low, high = np.minimum(low, o), np.maximum(high, o)
    return (got >= low) & (got <= high)


def _near_floats(got, exact, others, dtype):
    eps, top = d.EPSILON[dtype], d.LARGEST[dtype]
    # AVX-512 BF16 treats subnormal numbers as zeros (docs/algorithms.md).
    tiny = 2.0**-126 if dtype == d.BF16 else 4 * d.SUBNORMAL[dtype]
    runs = [exact, *others]
    with np.errstate(all="ignore"):
        finite = [np.where(np.isfinite(r), r, np.nan) for r in runs]
        stack = np.stack(finite)
        spread = np.nan_to_num(np.nanmax(stack, axis=0) - np.nanmin(stack, axis=0), nan=0.0) if others else 0.0
        near = np.zeros(got.shape, dtype=bool)
        for r in runs:
            tolerance = SAFETY * spread + 2 * eps * np.abs(r) + tiny
            near |= (got == r) | (np.isnan(got) & np.isnan(r)) | (np.abs(got - r) <= tolerance)
            near |= np.isinf(got) & (np.sign(got) == np.sign(r)) & (np.abs(r) + tolerance >= top)
            near |= np.isinf(r) & (np.sign(got) == np.sign(r)) & (np.abs(got) * (1 + 16 * eps) >= top)
        if others:  # where no disturbed result is finite, any error is accepted
            near |= np.isfinite(exact) & ~np.any([np.isfinite(o) for o in others], axis=0)
    return near


def needs_disturbed(got, exact):
    """Returns whether the difference exceeds the last place, so that disturbed executions must give the tolerance."""
    return difference(got, exact) is not None
