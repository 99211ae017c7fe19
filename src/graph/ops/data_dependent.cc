// Operators whose result's shape depends on the data. They are evaluated only if all their inputs
// are constant.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

using lower::Tensor;

double number(const Tensor& tensor, int64_t i) {
  const ir::Scalar s = tensor.at(i);
  return ir::is_float(s.dtype) ? s.f : s.i;
}

void copy_elements(const Tensor& from, int64_t first, int64_t count, Tensor& to, int64_t at) {
  const int64_t width = ir::bytes_of(from.dtype);
  std::memcpy(to.data.data() + at * width, from.data.data() + first * width, count * width);
}

// Output: [rank, number of nonzero elements], in row-major order.
Result<std::vector<Tensor>> fold_non_zero(OpContext& ctx) {
  const Tensor& x = *ctx.constant(0);
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (number(x, i) != 0) found.push_back(i);
  }
  const auto rank = std::ssize(x.shape);
  const auto count = std::ssize(found);
  Tensor result = Tensor::zeros(ir::DType::kI64, {rank, count});
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = found[k];
    for (int64_t d = rank; d-- > 0;) {
      const int64_t extent = x.shape[d];
      result.set(d * count + k, ir::scalar_int(ir::DType::kI64, rest % extent));
      rest /= extent;
    }
  }
  return std::vector<Tensor>{std::move(result)};
}

struct Blocks {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};

Blocks blocks_of(const Shape& shape, size_t axis) {
  Blocks b;
  for (size_t d = 0; d < shape.size(); ++d) {
    (d < axis ? b.outer : d == axis ? b.extent : b.inner) *= shape[d];
  }
  return b;
}

// Returns the listed slices of x along the axis.
Tensor take(const Tensor& x, size_t axis, std::span<const int64_t> slices) {
  const Blocks b = blocks_of(x.shape, axis);
  Shape shape = x.shape;
  shape[axis] = std::ssize(slices);
  Tensor result = Tensor::zeros(x.dtype, shape);
  int64_t at = 0;
  for (int64_t o = 0; o < b.outer; ++o) {
    for (int64_t slice : slices) {
      copy_elements(x, (o * b.extent + slice) * b.inner, b.inner, result, at);
      at += b.inner;
    }
  }
  return result;
}

Tensor flattened(const Tensor& x) {
  Tensor flat = x;
  flat.shape = {x.num_elements()};
  return flat;
}

Result<std::vector<Tensor>> fold_compress(OpContext& ctx) {
  const Tensor& condition = *ctx.constant(1);
  const bool flat = !ctx.has_attr("axis");
  const Tensor x = flat ? flattened(*ctx.constant(0)) : *ctx.constant(0);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), x.shape.size()));
  if (condition.shape.size() != 1 || condition.shape[0] > x.shape[axis]) {
    return ctx.invalid("the condition must be a vector no longer than the data");
  }
  std::vector<int64_t> slices;
  for (int64_t i = 0; i < condition.num_elements(); ++i) {
    if (condition.at(i).i != 0) slices.push_back(i);
  }
  return std::vector<Tensor>{take(x, axis, slices)};
}

// Outputs: unique slices, the index of the first occurrence of each, the position of each input
// slice among them, counts.
Result<std::vector<Tensor>> fold_unique(OpContext& ctx) {
  const bool sorted = ctx.int_attr("sorted", 1) != 0;
  const bool flat = !ctx.has_attr("axis");
  const Tensor x = flat ? flattened(*ctx.constant(0)) : *ctx.constant(0);
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(ctx.int_attr("axis", 0), x.shape.size()));
  const Blocks b = blocks_of(x.shape, axis);
  // NaN equals itself and is greater than all other values. Integers are compared as integers,
  // since f64 cannot represent all of them.
  const auto less = [&](const ir::Scalar& u, const ir::Scalar& v) {
    if (ir::is_float(u.dtype)) return u.f < v.f || (std::isnan(v.f) && !std::isnan(u.f));
    if (u.dtype == ir::DType::kU64) return static_cast<uint64_t>(u.i) < static_cast<uint64_t>(v.i);
    return u.i < v.i;
  };
  // Returns -1, 0 or 1 according to the first differing element.
  const auto compare = [&](int64_t p, int64_t q) {
    for (int64_t o = 0; o < b.outer; ++o) {
      for (int64_t i = 0; i < b.inner; ++i) {
        const ir::Scalar u = x.at((o * b.extent + p) * b.inner + i);
        const ir::Scalar v = x.at((o * b.extent + q) * b.inner + i);
        if (less(u, v)) return -1;
        if (less(v, u)) return 1;
      }
    }
    return 0;
  };
  std::vector<int64_t> order(b.extent);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return compare(p, q) < 0; });
  std::vector<int64_t> first;  // by group: its first slice
  std::vector<int64_t> group_of(order.size());
  std::vector<int64_t> counts;
  for (size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || compare(order[k - 1], order[k]) != 0) {
      first.push_back(order[k]);
      counts.push_back(0);
    }
    group_of[order[k]] = std::ssize(first) - 1;
    ++counts.back();
  }
  std::vector<int64_t> groups(first.size());
  std::iota(groups.begin(), groups.end(), int64_t{0});
  if (!sorted) {
    std::sort(groups.begin(), groups.end(), [&](int64_t p, int64_t q) { return first[p] < first[q]; });
  }
  std::vector<int64_t> place(groups.size());
  std::vector<int64_t> slices;
  std::vector<int64_t> number_of;
  for (size_t k = 0; k < groups.size(); ++k) {
    const int64_t group = groups[k];
    place[group] = k;
    slices.push_back(first[group]);
    number_of.push_back(counts[group]);
  }
  std::vector<int64_t> inverse;
  for (int64_t group : group_of) inverse.push_back(place[group]);
  const auto dtype = ir::DType::kI64;
  return std::vector<Tensor>{take(x, axis, slices), vector_of(dtype, slices), vector_of(dtype, inverse),
                             vector_of(dtype, number_of)};
}

// Computed in f32, as at run time (ops/bounded.h), so that an overlap exactly at the threshold has
// the same result in both cases.
struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

float intersection_over_union(const Box& a, const Box& b) {
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return 0;
  const float both = height * width;
  const float any = a.area() + b.area() - both;
  return any <= 0 ? 0 : both / any;
}

// Output: [selected, 3] with batch, class, box. Greedy by score within each batch and class.
Result<std::vector<Tensor>> fold_non_max_suppression(OpContext& ctx) {
  const Tensor& boxes = *ctx.constant(0);   // (batch, boxes, 4)
  const Tensor& scores = *ctx.constant(1);  // (batch, classes, boxes)
  if (boxes.shape.size() != 3 || scores.shape.size() != 3 || boxes.shape[2] != 4 ||
      scores.shape[0] != boxes.shape[0] || scores.shape[2] != boxes.shape[1]) {
    return ctx.invalid("boxes and scores do not fit");
  }
  const auto scalar = [&](size_t i, double otherwise) {
    const Tensor* tensor = ctx.has(i) ? ctx.constant(i) : nullptr;
    return tensor != nullptr && tensor->num_elements() == 1 ? number(*tensor, 0) : otherwise;
  };
  const double limit = scalar(2, 0);
  const float iou_threshold = scalar(3, 0);
  const bool has_threshold = ctx.has(4);
  const double score_threshold = scalar(4, 0);
  const bool centered = ctx.int_attr("center_point_box", 0) != 0;
  const int64_t count = boxes.shape[1];
  const int64_t classes = scores.shape[1];
  std::vector<int64_t> selected;
  for (int64_t n = 0; n < boxes.shape[0]; ++n) {
    std::vector<Box> own;
    for (int64_t i = 0; i < count; ++i) {
      float v[4];
      for (int64_t k = 0; k < 4; ++k) v[k] = number(boxes, (n * count + i) * 4 + k);
      own.push_back(centered ? Box{v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2}
                             : Box{std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]),
                                   std::max(v[1], v[3])});
    }
    for (int64_t c = 0; c < classes; ++c) {
      const auto score = [&](int64_t i) { return number(scores, (n * classes + c) * count + i); };
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i) {
        if (!has_threshold || score(i) > score_threshold) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return score(p) > score(q); });
      std::vector<int64_t> kept;
      for (int64_t i : order) {
        if (kept.size() >= limit) break;
        const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
          return intersection_over_union(own[i], own[k]) > iou_threshold;
        });
        if (overlaps) continue;
        kept.push_back(i);
        selected.insert(selected.end(), {n, c, i});
      }
    }
  }
  Tensor result = vector_of(ir::DType::kI64, selected);
  result.shape = {std::ssize(selected) / 3, 3};
  return std::vector<Tensor>{std::move(result)};
}

// Triangular filters on the mel scale; output: [spectrogram bins, mel bins].
Result<std::vector<Tensor>> fold_mel_weight_matrix(OpContext& ctx) {
  double v[5];
  for (size_t i = 0; i < 5; ++i) {
    if (ctx.constant(i)->num_elements() != 1) return ctx.invalid("the inputs must be scalars");
    v[i] = number(*ctx.constant(i), 0);
  }
  const auto dtype = onnx_dtype(ctx.int_attr("output_datatype", 1));
  if (!dtype || !ir::is_float(*dtype)) return ctx.unsupported("an output that is not a float");
  if (!(v[0] >= 1 && v[0] <= 65536 && v[1] >= 1 && v[1] <= 65536 && v[2] > 0)) {
    return ctx.invalid("the sizes are out of range");
  }
  const auto mels = static_cast<int64_t>(v[0]);
  const auto length = static_cast<int64_t>(v[1]);
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = to_mel(v[3]);
  const double step = (to_mel(v[4]) - low) / (mels + 2);
  std::vector<int64_t> bins;
  for (int64_t i = 0; i < mels + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (i * step + low) / 2595) - 1);
    const double bin = std::floor((length + 1) * hertz / v[2]);
    if (!(bin >= 0 && bin <= 1e9)) return ctx.invalid("the frequencies are out of range");
    bins.push_back(static_cast<int64_t>(bin));
  }
  const int64_t rows = length / 2 + 1;
  Tensor result = Tensor::zeros(*dtype, {rows, mels});
  const auto set = [&](int64_t row, int64_t column, double value) {
    if (row < rows) result.set(row * mels + column, ir::scalar_float(*dtype, value));
  };
  for (int64_t i = 0; i < mels; ++i) {
    const int64_t begin = bins[i];
    const int64_t middle = bins[i + 1];
    const int64_t end = bins[i + 2];
    if (middle == begin) {
      set(middle, i, 1);
    } else {
      for (int64_t j = begin; j <= std::min(middle, rows); ++j) {
        set(j, i, static_cast<double>(j - begin) / (middle - begin));
      }
    }
    for (int64_t j = middle; j < std::min(end, rows) && end > middle; ++j) {
      set(j, i, static_cast<double>(end - j) / (end - middle));
    }
  }
  return std::vector<Tensor>{std::move(result)};
}

}  // namespace

std::span<const FoldEntry> data_dependent_operators() {
  static const FoldEntry kEntries[] = {
      {"Compress", "a:TB", fold_compress},
      {"MelWeightMatrix", "a:IIINN", fold_mel_weight_matrix},
      {"NonMaxSuppression", "f:TTlff", fold_non_max_suppression},
      {"NonZero", "a:T", fold_non_zero},
      {"Unique", "a:T", fold_unique},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
