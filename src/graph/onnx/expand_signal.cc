// Expands DFT and STFT into matrix products. A transform of n1 * n2 points is n2 transforms of n1 points, a rotation of their
// results, and n1 transforms of n2 points (Cooley and Tukey, 1965): so n points take n times the sum of the factors, not
// n times n. A prime length above kMostDirect becomes a convolution of a length that has small factors (Bluestein, 1970).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using Values = std::vector<ValueId>;

// Longest transform that is one matrix product, and the factor that is split off a longer one. Small products keep their
// matrices in the caches.
constexpr int64_t kMostDirect = 64;
// A prime up to here is one product, too: the convolution would take as long.
constexpr int64_t kMostPrime = 512;

// exp(-2 pi i k / n), or its conjugate.
struct Root {
  double real = 0, imaginary = 0;
};
Root root(int64_t k, int64_t n, bool inverse) {
  const double angle =
      (inverse ? 2 : -2) * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// Transforms tensors of shape (rows, points, parts); the parts are the real and the imaginary one, or only the real one.
class Fourier {
 public:
  Fourier(Expansion& e, DType dtype, bool inverse) : e_(e), dtype_(dtype), inverse_(inverse) {}

  // Returns a tensor of shape (rows, bins, 2), the first `bins` of the results, not scaled.
  Result<ValueId> transform(ValueId x, int64_t bins) {
    const int64_t n = e_.shape(x)[1];
    if (n <= kMostDirect) return direct(x, bins);
    const int64_t factor = factor_of(n);
    if (factor > 1) {
      TS_ASSIGN_OR_RETURN(const ValueId all, in_two_steps(x, factor));
      return first(all, bins);
    }
    if (n <= kMostPrime) return direct(x, bins);
    TS_ASSIGN_OR_RETURN(const ValueId all, as_convolution(x));
    return first(all, bins);
  }

 private:
  // Returns the largest factor of n up to kMostDirect; 1 if there is none.
  static int64_t factor_of(int64_t n) {
    for (int64_t factor = kMostDirect; factor > 1; --factor)
      if (n % factor == 0) return factor;
    return 1;
  }

  Result<ValueId> first(ValueId x, int64_t bins) {
    return bins == e_.shape(x)[1] ? Result<ValueId>(x) : e_.slice(x, 1, 0, bins);
  }

  // Makes a constant of pairs of numbers, the real and the imaginary part of f(i).
  template <class F>
  ValueId pairs(const Shape& shape, F&& f) {
    lower::Tensor tensor = lower::Tensor::zeros(dtype_, shape);
    for (int64_t i = 0; i < tensor.num_elements() / 2; ++i) {
      const Root value = f(i);
      tensor.set(2 * i, ir::scalar_float(dtype_, value.real));
      tensor.set(2 * i + 1, ir::scalar_float(dtype_, value.imaginary));
    }
    return e_.constant(std::move(tensor));
  }

  // One product with a real matrix: its rows are the parts of the points, its columns those of the bins.
  Result<ValueId> direct(ValueId x, int64_t bins) {
    const Shape shape = e_.shape(x);
    const int64_t n = shape[1], parts = shape[2];
    lower::Tensor matrix = lower::Tensor::zeros(dtype_, {n * parts, bins * 2});
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < bins; ++k) {
        const Root r = root(j * k, n, inverse_);
        const auto set = [&](int64_t from, int64_t to, double value) {
          matrix.set((j * parts + from) * bins * 2 + k * 2 + to, ir::scalar_float(dtype_, value));
        };
        set(0, 0, r.real);
        set(0, 1, r.imaginary);
        if (parts == 1) continue;
        set(1, 0, -r.imaginary);
        set(1, 1, r.real);
      }
    }
    TS_ASSIGN_OR_RETURN(const ValueId rows, e_.reshape(x, {shape[0], n * parts}));
    TS_ASSIGN_OR_RETURN(const ValueId product, e_.op("MatMul", {rows, e_.constant(std::move(matrix))}));
    return e_.reshape(product, {shape[0], bins, 2});
  }

  // Multiplies (rows, points, 2) by complex constants, one a point.
  template <class F>
  Result<ValueId> rotate(ValueId x, F&& f) {
    const int64_t n = e_.shape(x)[1];
    // (a + b i) (c + d i) = (a, b) * (c, c) + (b, a) * (-d, d)
    const ValueId same = pairs({n, 2}, [&](int64_t i) { return Root{f(i).real, f(i).real}; });
    const ValueId cross = pairs({n, 2}, [&](int64_t i) { return Root{-f(i).imaginary, f(i).imaginary}; });
    TS_ASSIGN_OR_RETURN(const ValueId swapped, e_.op("Gather", {x, e_.ints({1, 0})}, {{"axis", int64_t{2}}}));
    TS_ASSIGN_OR_RETURN(const ValueId a, e_.op("Mul", {x, same}));
    TS_ASSIGN_OR_RETURN(const ValueId b, e_.op("Mul", {swapped, cross}));
    return e_.op("Add", {a, b});
  }

  // Point j1 * n2 + j2 and bin k1 + n1 * k2, where n = n1 * n2.
  Result<ValueId> in_two_steps(ValueId x, int64_t n1) {
    const Shape shape = e_.shape(x);
    const int64_t rows = shape[0], n = shape[1], parts = shape[2], n2 = n / n1;
    TS_ASSIGN_OR_RETURN(x, e_.reshape(x, {rows, n1, n2, parts}));
    TS_ASSIGN_OR_RETURN(x, e_.transpose(x, {0, 2, 1, 3}));
    TS_ASSIGN_OR_RETURN(x, e_.reshape(x, {rows * n2, n1, parts}));
    TS_ASSIGN_OR_RETURN(x, direct(x, n1));  // (rows, j2, k1)
    TS_ASSIGN_OR_RETURN(x, e_.reshape(x, {rows, n2 * n1, 2}));
    TS_ASSIGN_OR_RETURN(x, rotate(x, [&](int64_t i) { return root((i / n1) * (i % n1), n, inverse_); }));
    TS_ASSIGN_OR_RETURN(x, e_.reshape(x, {rows, n2, n1, 2}));
    TS_ASSIGN_OR_RETURN(x, e_.transpose(x, {0, 2, 1, 3}));
    TS_ASSIGN_OR_RETURN(x, e_.reshape(x, {rows * n1, n2, 2}));
    TS_ASSIGN_OR_RETURN(x, transform(x, n2));  // (rows, k1, k2)
    TS_ASSIGN_OR_RETURN(x, e_.reshape(x, {rows, n1, n2, 2}));
    TS_ASSIGN_OR_RETURN(x, e_.transpose(x, {0, 2, 1, 3}));
    return e_.reshape(x, {rows, n, 2});
  }

  // With c(j) = exp(-pi i j j / n) and j k = (j j + k k - (k - j) (k - j)) / 2: bin k is c(k) times the sum over j of
  // x(j) c(j) times the conjugate of c(k - j), a convolution. It is computed as a product of transforms of `m` points.
  Result<ValueId> as_convolution(ValueId x) {
    const Shape shape = e_.shape(x);
    const int64_t n = shape[1];
    int64_t m = kMostDirect;
    while (m < 2 * n - 1) m *= 2;
    const auto chirp = [&](int64_t j) { return root(j * j % (2 * n), 2 * n, inverse_); };
    if (shape[2] == 1) {
      TS_ASSIGN_OR_RETURN(x, e_.op("Pad", {x, e_.ints({0, 0, 0, 0, 0, 1})}));
    }
    TS_ASSIGN_OR_RETURN(x, rotate(x, chirp));
    TS_ASSIGN_OR_RETURN(x, e_.op("Pad", {x, e_.ints({0, 0, 0, 0, m - n, 0})}));
    Fourier forth(e_, dtype_, false), back(e_, dtype_, true);
    TS_ASSIGN_OR_RETURN(x, forth.transform(x, m));
    const std::vector<Root> filter = transformed_chirp(n, m);
    TS_ASSIGN_OR_RETURN(x, rotate(x, [&](int64_t i) { return filter[i]; }));
    TS_ASSIGN_OR_RETURN(x, back.transform(x, m));
    TS_ASSIGN_OR_RETURN(x, first(x, n));
    return rotate(x, chirp);
  }

  // Returns the transform of the convolution's other factor, divided by m, which the transform back does not do.
  std::vector<Root> transformed_chirp(int64_t n, int64_t m) const {
    std::vector<Root> values(m);
    for (int64_t j = 0; j < n; ++j) {
      const Root c = root(j * j % (2 * n), 2 * n, !inverse_);
      values[j] = c;
      if (j > 0) values[m - j] = c;
    }
    transform_in_place(values);
    for (Root& value : values) {
      value.real /= static_cast<double>(m);
      value.imaginary /= static_cast<double>(m);
    }
    return values;
  }

  // Transforms a power of two of points, recursively.
  static void transform_in_place(std::vector<Root>& x) {
    const auto n = std::ssize(x);
    if (n == 1) return;
    std::vector<Root> even, odd;
    for (int64_t i = 0; i < n; i += 2) {
      even.push_back(x[i]);
      odd.push_back(x[i + 1]);
    }
    transform_in_place(even);
    transform_in_place(odd);
    for (int64_t k = 0; k < n / 2; ++k) {
      const Root r = root(k, n, false);
      const Root turned = {odd[k].real * r.real - odd[k].imaginary * r.imaginary,
                           odd[k].real * r.imaginary + odd[k].imaginary * r.real};
      x[k] = {even[k].real + turned.real, even[k].imaginary + turned.imaginary};
      x[k + n / 2] = {even[k].real - turned.real, even[k].imaginary - turned.imaginary};
    }
  }

  Expansion& e_;
  DType dtype_;
  bool inverse_;
};

// Returns all bins of the transform of a real signal from the first half of them, (rows, length / 2 + 1, 2): bin
// length - k is the conjugate of bin k.
Result<ValueId> with_conjugates(Expansion& e, ValueId x, int64_t length) {
  std::vector<int64_t> places;
  for (int64_t k = length / 2 + 1; k < length; ++k) places.push_back(length - k);
  if (places.empty()) return x;
  TS_ASSIGN_OR_RETURN(ValueId rest, e.op("Gather", {x, e.ints(places)}, {{"axis", int64_t{1}}}));
  lower::Tensor signs = lower::Tensor::zeros(e.dtype(x), {2});
  signs.set(0, ir::scalar_float(signs.dtype, 1));
  signs.set(1, ir::scalar_float(signs.dtype, -1));
  TS_ASSIGN_OR_RETURN(rest, e.op("Mul", {rest, e.constant(std::move(signs))}));
  return e.op("Concat", {x, rest}, {{"axis", int64_t{1}}});
}

Result<Values> expand_dft(Expansion& e) {
  OpContext& ctx = e.ctx;
  const Shape x = ctx.shape(0);
  if (x.size() < 2 || (x.back() != 1 && x.back() != 2))
    return ctx.invalid("the last dimension must hold real or complex numbers");
  int64_t axis_number = ctx.opset() >= 20 ? -2 : ctx.int_attr("axis", 1);
  if (ctx.has(2)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ctx.constant_ints(2, "axis"));
    if (axes.size() != 1) return ctx.invalid("input 2 (axis) must be one number");
    axis_number = axes[0];
  }
  TS_ASSIGN_OR_RETURN(const size_t axis, ctx.normalize_axis(axis_number, x.size()));
  if (axis + 1 == x.size()) return ctx.invalid("the axis must not be the last one");
  const bool inverse = ctx.int_attr("inverse", 0) != 0, onesided = ctx.int_attr("onesided", 0) != 0;
  const bool real_result = inverse && onesided;
  if (real_result && x.back() != 2)
    return ctx.invalid("the inverse of a onesided transform takes complex numbers");
  int64_t length = real_result ? 2 * (x[axis] - 1) : x[axis];
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, ctx.constant_ints(1, "dft_length"));
    if (lengths.size() != 1) return ctx.invalid("input 1 (dft_length) must be one number");
    length = lengths[0];
  }
  if (length < 1 || length > kMaxGeometry) return ctx.invalid("the length must be positive");
  const int64_t bins = onesided && !inverse ? length / 2 + 1 : length;
  const int64_t samples = real_result ? length / 2 + 1 : length;  // that are read
  Shape result_shape = x;
  result_shape[axis] = bins;
  result_shape.back() = 2;
  if (!is_reasonable(result_shape)) return ctx.invalid("the result would be too large");

  const DType dtype = wide(ctx.dtype(0));
  TS_ASSIGN_OR_RETURN(ValueId value, e.cast(e.in(0), dtype));
  // Samples beyond the length are left out, and missing ones are 0.
  if (samples < x[axis]) {
    TS_ASSIGN_OR_RETURN(value, e.slice(value, static_cast<int64_t>(axis), 0, samples));
  } else if (samples > x[axis]) {
    std::vector<int64_t> pads(2 * x.size(), 0);
    pads[x.size() + axis] = samples - x[axis];
    TS_ASSIGN_OR_RETURN(value, e.op("Pad", {value, e.ints(pads)}));
  }
  // (..., points, rest, parts) to (..., rest, points, parts)
  std::vector<int64_t> forth, back;
  for (size_t d = 0; d < x.size(); ++d)
    if (d != axis && d + 1 != x.size()) forth.push_back(static_cast<int64_t>(d));
  forth.push_back(static_cast<int64_t>(axis));
  forth.push_back(std::ssize(x) - 1);
  back.resize(forth.size());
  for (size_t d = 0; d < forth.size(); ++d) back[forth[d]] = static_cast<int64_t>(d);
  const bool moves = axis + 2 != x.size();
  if (moves) {
    TS_ASSIGN_OR_RETURN(value, e.transpose(value, forth));
  }
  Shape moved = e.shape(value);
  const int64_t rows = product(std::span<const int64_t>(moved).first(moved.size() - 2));
  TS_ASSIGN_OR_RETURN(value, e.reshape(value, {rows, samples, x.back()}));
  if (real_result) {
    TS_ASSIGN_OR_RETURN(value, with_conjugates(e, value, length));
  }
  TS_ASSIGN_OR_RETURN(value, Fourier(e, dtype, inverse).transform(value, bins));
  if (real_result) {
    TS_ASSIGN_OR_RETURN(value, e.slice(value, 2, 0, 1));
  }
  if (inverse) {
    TS_ASSIGN_OR_RETURN(value, e.op("Mul", {value, e.scalar(dtype, 1.0 / static_cast<double>(length))}));
  }
  moved[moved.size() - 2] = bins;
  moved.back() = real_result ? 1 : 2;
  TS_ASSIGN_OR_RETURN(value, e.reshape(value, moved));
  if (moves) {
    TS_ASSIGN_OR_RETURN(value, e.transpose(value, back));
  }
  TS_ASSIGN_OR_RETURN(value, e.cast(value, ctx.dtype(0)));
  return Values{value};
}

// Inputs: signal (batch, samples, 1 or 2), frame_step, window, frame_length.
Result<Values> expand_stft(Expansion& e) {
  OpContext& ctx = e.ctx;
  const Shape x = ctx.shape(0);
  if (x.size() < 2 || x.size() > 3 || (x.size() == 3 && x[2] != 1 && x[2] != 2))
    return ctx.invalid("the signal must have shape (batch, samples) or (batch, samples, 1 or 2)");
  TS_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ctx.constant_ints(1, "frame_step"));
  int64_t length = ctx.has(2) && ctx.rank(2) == 1 ? ctx.shape(2)[0] : 0;
  if (ctx.has(3)) {
    TS_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, ctx.constant_ints(3, "frame_length"));
    if (lengths.size() == 1) length = lengths[0];
  }
  if (steps.size() != 1 || steps[0] < 1 || length < 1 || length > x[1] ||
      (ctx.has(2) && ctx.shape(2) != Shape{length}))
    return ctx.invalid("frame_step, frame_length and window do not fit the signal");
  const int64_t parts = x.size() == 3 ? x[2] : 1;
  const bool onesided = ctx.int_attr("onesided", 1) != 0;
  if (parts == 2 && onesided) return ctx.invalid("a complex signal has no onesided transform");
  const int64_t step = std::min(steps[0], kMaxGeometry), frames = (x[1] - length) / step + 1;
  const int64_t bins = onesided ? length / 2 + 1 : length;
  if (!is_reasonable(std::vector<int64_t>{x[0], frames, length, 2}))
    return ctx.invalid("the result would be too large");

  const DType dtype = wide(ctx.dtype(0));
  TS_ASSIGN_OR_RETURN(ValueId value, e.cast(e.in(0), dtype));
  lower::Tensor places = lower::Tensor::zeros(DType::kI64, {frames, length});
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t t = 0; t < length; ++t)
      places.set(f * length + t, ir::scalar_int(DType::kI64, f * step + t));
  TS_ASSIGN_OR_RETURN(value, e.reshape(value, {x[0], x[1], parts}));
  TS_ASSIGN_OR_RETURN(value, e.op("Gather", {value, e.constant(std::move(places))}, {{"axis", int64_t{1}}}));
  if (ctx.has(2)) {
    TS_ASSIGN_OR_RETURN(ValueId window, e.cast(e.in(2), dtype));
    TS_ASSIGN_OR_RETURN(window, e.reshape(window, {length, 1}));
    TS_ASSIGN_OR_RETURN(value, e.op("Mul", {value, window}));
  }
  TS_ASSIGN_OR_RETURN(value, e.reshape(value, {x[0] * frames, length, parts}));
  TS_ASSIGN_OR_RETURN(value, Fourier(e, dtype, false).transform(value, bins));
  TS_ASSIGN_OR_RETURN(value, e.reshape(value, {x[0], frames, bins, 2}));
  TS_ASSIGN_OR_RETURN(value, e.cast(value, ctx.dtype(0)));
  return Values{value};
}

}  // namespace

std::span<const ExpandEntry> signal_expansions() {
  static const ExpandEntry kEntries[] = {{"DFT", "f:Tii", expand_dft}, {"STFT", "f:TIti", expand_stft}};
  return kEntries;
}

}  // namespace tensorsmith::graph
