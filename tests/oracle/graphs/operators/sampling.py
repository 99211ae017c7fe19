"""Operators that read at computed positions."""

import numpy as np

from .. import dtypes as d
from .registry import operator
from .views import signed


@operator("Resize", weight=2)
def resize(b, op):
    rank = b.pick([2, 3, 4, 4, 4, 5])
    shape = [b.integer(1, 2), b.integer(1, 3)] + [b.integer(1, 5) for _ in range(rank - 2)]
    floats = b.chance(0.8)
    x = b.value(
        b.allowed(op, b.schema(op).inputs[0].type_str)
        if not floats
        else [t for t in b.allowed(op, b.schema(op).inputs[0].type_str) if d.is_float(t)],
        shape=shape,
    )
    mode = b.pick([None, "nearest", "linear", "cubic"])
    over = [k for k in range(2, rank) if b.chance(0.8)]
    if mode in ("linear", "cubic") and len(over) > 2:
        over = over[:2]
    if mode == "cubic" and rank != 4:
        mode = "linear"
    factors = {k: b.pick([1.0, 2.0, 3.0, 0.5, 0.6, 1.5, 2.5, 1.3]) for k in over}
    for k in over:
        if int(np.floor(x.shape[k] * factors[k])) < 1:
            factors[k] = 2.0
    if b.opset < 11:
        scales = np.array([factors.get(k, 1.0) for k in range(rank)], dtype=np.float32)
        b.add(op, [x, b.constant(scales)], mode=mode if mode != "cubic" else "linear")
        return
    coordinates = [None, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
    coordinates += ["half_pixel_symmetric"] if b.opset >= 19 else []
    coordinate = b.pick(coordinates)
    axes = None
    if b.opset >= 18 and over and b.chance(0.4):
        axes = over
    dims = axes if axes is not None else range(rank)
    roi = None
    if coordinate == "tf_crop_and_resize":
        values = [
            (b.pick([0.0, 0.1, 0.25, -0.2]), b.pick([1.0, 0.8, 0.6, 1.2])) if k in factors else (0.0, 1.0) for k in dims
        ]
        roi = b.constant(
            np.array(
                [v[0] for v in values] + [v[1] for v in values], dtype=b.pick([np.float32, np.float64, np.float16])
            )
        )
    a = {"mode": mode, "coordinate_transformation_mode": coordinate}
    if mode in (None, "nearest"):
        a["nearest_mode"] = b.pick([None, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if mode == "cubic":
        a["cubic_coeff_a"] = b.pick([None, -0.5])
        a["exclude_outside"] = b.pick([None, 0, 1])
    if coordinate == "tf_crop_and_resize":
        a["extrapolation_value"] = b.pick([None, 1.5, -3.0])
    if b.opset >= 18:
        if mode in ("linear", "cubic") and b.chance(0.2):
            a["antialias"] = 1
        if b.chance(0.1):
            a["keep_aspect_ratio_policy"] = b.pick(["stretch", "not_larger", "not_smaller"])
    if axes is not None:
        a["axes"] = [signed(b, k, rank) for k in axes]
    if b.chance(0.5) and "keep_aspect_ratio_policy" not in a:
        inputs = [x, roi, b.constant(np.array([factors.get(k, 1.0) for k in dims], dtype=np.float32))]
    else:
        sizes = np.array([int(np.floor(x.shape[k] * factors.get(k, 1.0))) for k in dims], dtype=np.int64)
        empty = b.constant(np.zeros([0], np.float32)) if b.opset < 13 else None
        if b.opset < 13 and roi is None:
            roi = b.constant(np.zeros([0], np.float32))
        inputs = [x, roi, empty, b.constant(sizes)]
    if inputs[1] is None and b.opset < 13:
        inputs[1] = b.constant(np.zeros([0], np.float32))
    b.add(op, inputs, **a)


@operator("Upsample")
def upsample(b, op):
    x = b.value(b.allowed(op, "T"), rank=4, least_extent=1, most=300)
    factors = [1.0, 1.0, b.pick([1.0, 2.0, 3.0]), b.pick([1.0, 2.0, 1.5])]
    mode = b.pick([None, "nearest", "linear"])
    if b.opset < 9:
        b.add(op, [x], mode=mode, scales=factors)
    else:
        b.add(op, [x, b.constant(np.array(factors, dtype=np.float32))], mode=mode)


@operator("GridSample")
def grid_sample(b, op):
    spatial = b.pick([2, 2, 2, 3]) if b.opset >= 20 else 2
    shape = [b.integer(1, 2), b.integer(1, 3)] + [b.integer(1, 5) for _ in range(spatial)]
    x = b.value(b.allowed(op, "T1"), shape=shape)
    types = b.allowed(op, "T2") if b.has_schema(op) else [x.dtype]
    grid_dtype = x.dtype if x.dtype in types else d.F32
    grid = [shape[0]] + [b.integer(1, 4) for _ in range(spatial)] + [spatial]
    g = b.fresh(grid_dtype, None, array=(b.rng.uniform(-1.3, 1.3, grid)).astype(grid_dtype))
    modes = [None, "bilinear", "nearest", "bicubic"] if b.opset < 20 else [None, "linear", "nearest", "cubic"]
    mode = b.pick(modes if spatial == 2 else modes[:3])
    b.add(
        op,
        [x, g],
        mode=mode,
        padding_mode=b.pick([None, "zeros", "border", "reflection"]),
        align_corners=b.pick([None, 0, 1]),
    )


@operator("RoiAlign")
def roi_align(b, op):
    x = b.value(b.allowed(op, "T1"), shape=[b.integer(1, 2), b.integer(1, 3), b.integer(2, 6), b.integer(2, 6)])
    rois = b.integer(1, 3)
    corner = b.rng.uniform(0, 3, [rois, 2])
    boxes = np.concatenate([corner, corner + b.rng.uniform(0.3, 4, [rois, 2])], axis=1).astype(x.dtype)
    batch = b.rng.integers(0, x.shape[0], [rois]).astype(np.int64)
    a = {
        "mode": b.pick([None, "avg", "max"]),
        "output_height": b.pick([None, 1, 2, 3]),
        "output_width": b.pick([None, 1, 2]),
        "sampling_ratio": b.pick([None, 0, 1, 2]),
        "spatial_scale": b.pick([None, 1.0, 0.5]),
    }
    if b.opset >= 16:
        a["coordinate_transformation_mode"] = b.pick([None, "half_pixel", "output_half_pixel"])
    b.add(op, [x, b.fresh(None, None, array=boxes), b.fresh(None, None, array=batch)], **a)


@operator("AffineGrid")
def affine_grid(b, op):
    spatial = b.pick([2, 2, 3])
    size = [b.integer(1, 3), b.integer(1, 3)] + [b.integer(1, 5) for _ in range(spatial)]
    theta = b.value(b.allowed(op, "T1"), shape=[size[0], spatial, spatial + 1])
    b.add(op, [theta, b.constant(np.array(size, dtype=np.int64))], align_corners=b.pick([None, 0, 1]))
