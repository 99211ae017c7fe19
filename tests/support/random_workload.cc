#include "support/random_workload.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/rng.h"

namespace tensorsmith::test {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

// A tensor that later operations may read.
struct Value {
  Buffer buffer;
  // Bit-exact under any schedule: inputs, integers, and rearrangements and extrema of such values.
  bool exact = true;
  bool read = false;
  // Upper bound of |x|, to keep chains of products moderate.
  double magnitude = 1;
};

class Generator {
 public:
  Generator(uint64_t seed, const RandomWorkloadOptions& options) : rng_(mix64(seed)), options_(options) {}

  Workload run() {
    add_input(random_shape(), random_dtype());
    const int wanted = 1 + static_cast<int>(rng_.below(static_cast<uint64_t>(options_.max_operations)));
    for (int made = 0, tries = 0; made < wanted && tries < 200; ++tries) {
      if (add_operation()) ++made;
    }
    while (!has_compute_) add_elementwise(pick());
    // Every computed tensor that nothing reads is an output, and sometimes one that is read.
    for (const Value& value : values_) {
      const Operation& op = *workload_.operations[*workload_.producer_of(value.buffer.get())];
      if (!op.is_placeholder() && (!value.read || rng_.bernoulli(0.1)))
        workload_.outputs.push_back(value.buffer);
    }
    return std::move(workload_);
  }

 private:
  int64_t random_extent() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17};
    return kExtents[rng_.below(std::size(kExtents))];
  }

  DType random_dtype() {
    if (!options_.other_dtypes || rng_.bernoulli(0.75)) return DType::kF32;
    static constexpr DType kOthers[] = {DType::kI32, DType::kI8, DType::kU8, DType::kI64};
    return kOthers[rng_.below(std::size(kOthers))];
  }

  std::vector<int64_t> random_shape() {
    std::vector<int64_t> shape;
    int64_t total = 1;
    const uint64_t rank = 1 + rng_.below(4);
    for (uint64_t d = 0; d < rank; ++d) {
      int64_t extent = random_extent();
      if (total * extent > options_.max_elements) extent = 1;
      total *= extent;
      shape.push_back(extent);
    }
    return shape;
  }

  // The generator keeps indices, not references, since values_ grows.
  size_t add_input(std::vector<int64_t> shape, DType dtype, bool is_constant = false) {
    const std::string name = (is_constant ? "w" : "x") + std::to_string(workload_.operations.size());
    workload_.operations.push_back(placeholder(name, dtype, std::move(shape), is_constant));
    values_.push_back({workload_.operations.back()->output(), true, false, is_float(dtype) ? 1.0 : 256.0});
    return values_.size() - 1;
  }

  size_t pick() { return values_.size() - 1 - rng_.below(std::min<uint64_t>(values_.size(), 4)); }

  Expr read(size_t v, std::vector<Expr> indices) {
    values_[v].read = true;
    return load(values_[v].buffer, std::move(indices));
  }

  std::vector<Axis> axes_of(const std::vector<int64_t>& shape) {
    std::vector<Axis> axes;
    for (size_t d = 0; d < shape.size(); ++d) axes.push_back({Var("i" + std::to_string(d)), shape[d]});
    return axes;
  }
  static std::vector<Expr> indices_of(const std::vector<Axis>& axes) {
    std::vector<Expr> out;
    for (const Axis& axis : axes) out.emplace_back(axis.var);
    return out;
  }

  bool fits(const std::vector<Axis>& spatial, const std::vector<Axis>& reduce) const {
    int64_t elements = 1;
    for (const Axis& axis : spatial) elements *= axis.extent;
    int64_t iterations = elements;
    for (const Axis& axis : reduce) iterations *= axis.extent;
    return elements <= options_.max_elements && iterations <= options_.max_iterations;
  }

  bool emit(const std::string& kind, std::vector<Axis> spatial, std::vector<Axis> reduce, Combiner combiner,
            std::vector<Expr> bodies, bool exact, double magnitude) {
    if (!fits(spatial, reduce)) return false;
    const std::string name = kind + std::to_string(workload_.operations.size());
    workload_.operations.push_back(
        compute(name, std::move(spatial), std::move(reduce), combiner, std::move(bodies)));
    for (const Buffer& output : workload_.operations.back()->outputs)
      values_.push_back({output, exact, false, magnitude});
    has_compute_ = true;
    return true;
  }

  // Sums and products stop growing before floats lose their meaning and before i64, which the
  // simplifier treats as an index, might overflow. Narrower integers wrap.
  static bool too_large(DType dtype, double magnitude) {
    return is_float(dtype) ? magnitude > 2000 : dtype == DType::kI64 && magnitude > 1e12;
  }
  static double weight_magnitude(DType dtype) { return is_float(dtype) ? 1 : 256; }

  // Makes an expression of x that keeps its dtype; updates `exact` and `magnitude`.
  Expr unary_of(Expr x, bool& exact, double& magnitude) {
    const DType dtype = x.dtype();
    if (dtype == DType::kBool) return rng_.bernoulli(0.5) ? !x : x;
    if (!is_float(dtype)) {
      switch (rng_.below(4)) {
        case 0:
          return max(x, int_imm(dtype, 3));
        case 1:
          return x + int_imm(dtype, 5);
        case 2:
          return floordiv(x, int_imm(dtype, 3));
        default:
          return binary(BinaryOp::kBitXor, x, int_imm(dtype, 9));
      }
    }
    const auto c = [&](double v) { return float_imm(dtype, v); };
    const uint64_t kind = rng_.below(8);
    if (kind == 0) return max(x, c(0));  // exactness survives
    if (kind == 1) return call(Intrinsic::kAbs, {x});
    if (kind == 2) return -x;
    exact = false;
    switch (kind) {
      case 3:
        magnitude = 1;
        return call(Intrinsic::kTanh, {x});
      case 4:
        magnitude = 1;
        return c(1) / (c(1) + call(Intrinsic::kExp, {-min(max(x, c(-10)), c(10))}));
      case 5:
        return x * c(0.5) + c(0.25);
      case 6:
        return call(Intrinsic::kSqrt, {call(Intrinsic::kAbs, {x}) + c(0.5)});
      default:
        magnitude = 1;
        return select(x > c(0), c(1), c(-1)) * min(call(Intrinsic::kAbs, {x}), c(1));
    }
  }

  bool add_elementwise(size_t v) {
    const std::vector<Axis> axes = axes_of(values_[v].buffer->shape);
    bool exact = values_[v].exact;
    double magnitude = values_[v].magnitude + 1;
    Expr body = unary_of(read(v, indices_of(axes)), exact, magnitude);
    if (rng_.bernoulli(0.3)) body = unary_of(body, exact, magnitude);
    return emit("map", axes, {}, Combiner::kNone, {body}, exact, magnitude);
  }

  // x op y, where y has the same shape, is broadcast, or is another existing tensor.
  bool add_binary(size_t v) {
    const DType dtype = values_[v].buffer->dtype;
    const std::vector<Axis> axes = axes_of(values_[v].buffer->shape);
    std::vector<Expr> indices = indices_of(axes);
    std::optional<size_t> other;
    std::vector<Expr> other_indices = indices;
    for (size_t w = 0; w < values_.size() && rng_.bernoulli(0.8); ++w) {
      if (values_[w].buffer->shape == values_[v].buffer->shape && values_[w].buffer->dtype == dtype)
        other = w;
    }
    if (!other.has_value()) {
      std::vector<int64_t> shape;
      other_indices.clear();
      for (size_t d = rng_.below(axes.size() + 1); d < axes.size(); ++d) {
        const bool one = rng_.bernoulli(0.2);
        shape.push_back(one ? 1 : axes[d].extent);
        other_indices.push_back(one ? Expr(0) : indices[d]);
      }
      other = add_input(std::move(shape), dtype, rng_.bernoulli(0.5));
    }
    Expr a = read(v, indices);
    Expr b = read(*other, other_indices);
    const double ma = values_[v].magnitude;
    const double mb = values_[*other].magnitude;
    bool exact = values_[v].exact && values_[*other].exact;
    if (dtype == DType::kBool) {
      return emit("logic", axes, {}, Combiner::kNone, {rng_.bernoulli(0.5) ? a && b : a || b}, exact, 1);
    }
    switch (rng_.below(5)) {
      case 0:
        return emit("max", axes, {}, Combiner::kNone, {max(a, b)}, exact, std::max(ma, mb));
      case 1:
        if (too_large(dtype, ma * mb)) return false;
        return emit("mul", axes, {}, Combiner::kNone, {a * b}, exact && !is_float(dtype), ma * mb);
      case 2:
        if (!options_.other_dtypes || !exact) return false;
        return emit("less", axes, {}, Combiner::kNone, {a < b}, true, 1);
      case 3:
        return emit("sub", axes, {}, Combiner::kNone, {a - b}, exact && !is_float(dtype), ma + mb);
      default:
        return emit("add", axes, {}, Combiner::kNone, {a + b}, exact && !is_float(dtype), ma + mb);
    }
  }

  bool add_where(size_t v) {
    // Selects by a condition on the index or by a bool tensor.
    const std::vector<Axis> axes = axes_of(values_[v].buffer->shape);
    if (axes.empty()) return false;
    Expr condition = floormod(axes.back().var, 2) == 0;
    bool exact = values_[v].exact;
    for (size_t w = 0; w < values_.size(); ++w) {
      if (values_[w].buffer->dtype == DType::kBool && values_[w].buffer->shape == values_[v].buffer->shape) {
        condition = read(w, indices_of(axes));
        exact = exact && values_[w].exact;
      }
    }
    const Expr x = read(v, indices_of(axes));
    return emit("where", axes, {}, Combiner::kNone, {select(condition, x, make_const(x.dtype(), 1))}, exact,
                values_[v].magnitude);
  }

  bool add_cast(size_t v) {
    if (!options_.other_dtypes) return false;
    static constexpr DType kTargets[] = {DType::kF32, DType::kI32, DType::kI8,
                                         DType::kU8,  DType::kI64, DType::kF32};
    const DType to = kTargets[rng_.below(std::size(kTargets))];
    const DType from = values_[v].buffer->dtype;
    if (to == from || (is_float(from) && !values_[v].exact)) return false;
    const std::vector<Axis> axes = axes_of(values_[v].buffer->shape);
    Expr x = read(v, indices_of(axes));
    double magnitude = 256;
    if (is_float(from)) x = x * float_imm(from, 64);  // a power of two: exact
    if (is_float(to)) {
      // Scales back by powers of two, so that the result is exact and moderate.
      if (from != DType::kBool) {
        x = cast(to, binary(BinaryOp::kBitAnd, x, int_imm(from, 127))) * float_imm(to, 0.0078125);
      } else {
        x = cast(to, x);
      }
      magnitude = 1;
    } else {
      x = cast(to, x);
    }
    return emit("cast", axes, {}, Combiner::kNone, {x}, true, magnitude);
  }

  // Contraction of the last dimension with a new weight.
  bool add_matmul(size_t v) {
    const Value x = values_[v];
    if (x.buffer->shape.empty() || x.buffer->dtype == DType::kBool) return false;
    const int64_t k = x.buffer->shape.back();
    const int64_t n = random_extent();
    std::vector<int64_t> shape = x.buffer->shape;
    shape.back() = n;
    const std::vector<Axis> axes = axes_of(shape);
    const Axis reduce{Var("k"), k};
    const bool floating = is_float(x.buffer->dtype);
    const double magnitude = x.magnitude * static_cast<double>(k) * weight_magnitude(x.buffer->dtype);
    if (!fits(axes, {reduce}) || too_large(x.buffer->dtype, magnitude) || n * k > options_.max_elements)
      return false;
    const bool transposed = rng_.bernoulli(0.5);
    const size_t w = add_input(transposed ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n},
                               x.buffer->dtype, rng_.bernoulli(0.7));
    std::vector<Expr> indices = indices_of(axes);
    const Expr column = indices.back();
    indices.back() = reduce.var;
    Expr a = read(v, indices);
    Expr b = transposed ? read(w, {column, reduce.var}) : read(w, {reduce.var, column});
    if (!floating && bytes_of(a.dtype()) < 4) {
      a = cast(DType::kI32, a);
      b = cast(DType::kI32, b);
    }
    return emit("matmul", axes, {reduce}, Combiner::kSum, {a * b}, !floating, magnitude);
  }

  // A window over the last one or two dimensions: convolution with a weight, or pooling; padded by
  // a separate stage, inside the body, or not at all.
  bool add_window(size_t v) {
    const Value x = values_[v];
    const size_t rank = x.buffer->shape.size();
    if (rank == 0 || x.buffer->dtype == DType::kBool) return false;
    const size_t windows = rank >= 2 && rng_.bernoulli(0.7) ? 2 : 1;
    const bool pool = rng_.bernoulli(0.4);
    const bool floating = is_float(x.buffer->dtype);
    const int64_t stride = rng_.uniform_int(1, 2);
    const int64_t dilation = rng_.uniform_int(1, 2);
    const int64_t pad = rng_.uniform_int(0, 1);
    const bool pad_stage = pad > 0 && rng_.bernoulli(0.6);
    std::vector<int64_t> shape = x.buffer->shape;
    std::vector<int64_t> kernel;
    std::vector<int64_t> padded = shape;
    for (size_t d = rank - windows; d < rank; ++d) {
      kernel.push_back(rng_.uniform_int(1, 3));
      padded[d] += 2 * pad;
      const int64_t span = dilation * (kernel.back() - 1) + 1;
      if (padded[d] < span) return false;
      shape[d] = (padded[d] - span) / stride + 1;
    }
    // A convolution also reduces over the dimension before the window.
    const bool channels = !pool && rank > windows;
    const size_t channel_dim = rank - windows - 1;
    if (channels) shape[channel_dim] = rng_.uniform_int(1, 5);
    std::vector<Axis> axes = axes_of(shape);
    std::vector<Axis> reduce;
    if (channels) reduce.push_back({Var("rc"), x.buffer->shape[channel_dim]});
    for (size_t d = 0; d < windows; ++d) reduce.push_back({Var("r" + std::to_string(d)), kernel[d]});
    double points = 1;
    for (const Axis& axis : reduce) points *= static_cast<double>(axis.extent);
    if (!fits(axes, reduce) || !fits(axes_of(padded), {})) return false;
    const double magnitude = x.magnitude * points * weight_magnitude(x.buffer->dtype);
    if (!pool && too_large(x.buffer->dtype, magnitude)) return false;
    if (channels && shape[channel_dim] * static_cast<int64_t>(points) > options_.max_elements) return false;

    // A window may lie entirely in the padding; an infinity there would become NaN later.
    const Expr fill = !pool      ? make_const(x.buffer->dtype, 0)
                      : floating ? float_imm(x.buffer->dtype, -8192)
                                 : identity_of(Combiner::kMax, x.buffer->dtype);
    size_t source = v;
    if (pad_stage) {
      const std::vector<Axis> outer = axes_of(padded);
      std::vector<Expr> inner = indices_of(outer);
      std::optional<Expr> inside;
      for (size_t d = rank - windows; d < rank; ++d) {
        const Expr both = inner[d] >= pad && inner[d] < x.buffer->shape[d] + pad;
        inside = inside.has_value() ? *inside && both : both;
        inner[d] = inner[d] - pad;
      }
      emit("pad", outer, {}, Combiner::kNone, {select(*inside, read(v, inner), fill)}, x.exact,
           pool && floating ? 8192 : x.magnitude);
      source = values_.size() - 1;
    }
    std::vector<Expr> indices = indices_of(axes);
    std::vector<Expr> weight_indices;
    std::vector<int64_t> weight_shape;
    if (channels) {
      weight_indices = {indices[channel_dim], reduce[0].var};
      weight_shape = {shape[channel_dim], reduce[0].extent};
      indices[channel_dim] = reduce[0].var;
    }
    std::optional<Expr> inside;
    for (size_t d = 0; d < windows; ++d) {
      const Axis& r = reduce[d + (channels ? 1 : 0)];
      Expr& index = indices[rank - windows + d];
      index = index * stride + Expr(r.var) * dilation;
      if (pad > 0 && !pad_stage) {
        index = index - pad;
        const Expr both = index >= 0 && index < x.buffer->shape[rank - windows + d];
        inside = inside.has_value() ? *inside && both : both;
      }
      weight_indices.emplace_back(r.var);
      weight_shape.push_back(r.extent);
    }
    Expr body = read(source, indices);
    if (inside.has_value()) body = select(*inside, body, fill);
    if (pool) {
      return emit("pool", std::move(axes), std::move(reduce), Combiner::kMax, {body}, x.exact,
                  pad > 0 && floating ? 8192 : x.magnitude);
    }
    const size_t w = add_input(weight_shape, x.buffer->dtype, true);
    Expr weight = read(w, weight_indices);
    if (!floating && bytes_of(body.dtype()) < 4) {
      body = cast(DType::kI32, body);
      weight = cast(DType::kI32, weight);
    }
    return emit("conv", std::move(axes), std::move(reduce), Combiner::kSum, {body * weight}, !floating,
                magnitude);
  }

  bool add_reduction(size_t v) {
    const Value x = values_[v];
    const size_t rank = x.buffer->shape.size();
    if (rank == 0) return false;
    std::vector<Axis> spatial;
    std::vector<Axis> reduce;
    std::vector<Expr> indices;
    double points = 1;
    for (size_t d = 0; d < rank; ++d) {
      const bool reduced = rng_.bernoulli(0.5) || (d + 1 == rank && reduce.empty());
      std::vector<Axis>& axes = reduced ? reduce : spatial;
      axes.push_back({Var((reduced ? "k" : "i") + std::to_string(d)), x.buffer->shape[d]});
      indices.emplace_back(axes.back().var);
      if (reduced) points *= static_cast<double>(x.buffer->shape[d]);
    }
    if (spatial.empty() && !options_.zero_rank) return false;
    if (rng_.bernoulli(0.3)) std::reverse(reduce.begin(), reduce.end());
    const DType dtype = x.buffer->dtype;
    const bool floating = is_float(dtype);
    const Expr body = read(v, indices);
    if (dtype == DType::kBool || rng_.bernoulli(0.4)) {
      return emit("extremum", spatial, reduce, rng_.bernoulli(0.5) ? Combiner::kMax : Combiner::kMin, {body},
                  x.exact, x.magnitude);
    }
    if (options_.arg_reductions && x.exact && rng_.bernoulli(0.3)) {
      return add_arg(v, std::move(spatial), std::move(reduce), body);
    }
    if (rng_.bernoulli(0.2)) {
      if ((floating && x.magnitude > 1) || dtype == DType::kI64) return false;
      return emit("prod", spatial, reduce, Combiner::kProd, {body}, !floating, 1);
    }
    if (too_large(dtype, x.magnitude * points)) return false;
    return emit("sum", spatial, reduce, Combiner::kSum, {body}, !floating, x.magnitude * points);
  }

  bool add_arg(size_t v, std::vector<Axis> spatial, std::vector<Axis> reduce, const Expr& body) {
    // The flat index over the reduced axes.
    Expr index = reduce.front().var;
    for (size_t r = 1; r < reduce.size(); ++r) index = index * reduce[r].extent + Expr(reduce[r].var);
    if (rng_.bernoulli(0.5)) index = cast(DType::kI32, index);
    return emit("arg", std::move(spatial), std::move(reduce),
                rng_.bernoulli(0.5) ? Combiner::kArgMax : Combiner::kArgMin, {body, index}, true,
                std::max(values_[v].magnitude, 1000.0));
  }

  // Transposes, slices with strides, reversals, reshapes, concatenations, gathers.
  bool add_rearrangement(size_t v) {
    const Value x = values_[v];
    const std::vector<int64_t> shape = x.buffer->shape;
    const size_t rank = shape.size();
    if (rank == 0) return false;
    const size_t d = rng_.below(rank);
    const auto emit_copy = [&](const char* kind, const std::vector<Axis>& axes,
                               const std::vector<Expr>& indices) {
      return emit(kind, axes, {}, Combiner::kNone, {read(v, indices)}, x.exact, x.magnitude);
    };
    switch (rng_.below(6)) {
      case 0: {
        std::vector<size_t> order(rank);
        for (size_t p = 0; p < rank; ++p) order[p] = p;
        for (size_t p = rank; p-- > 1;) std::swap(order[p], order[rng_.below(p + 1)]);
        std::vector<Axis> axes;
        std::vector<Expr> indices(rank, Expr(0));
        for (size_t p = 0; p < rank; ++p) {
          axes.push_back({Var("i" + std::to_string(p)), shape[order[p]]});
          indices[order[p]] = axes.back().var;
        }
        return emit_copy("transpose", axes, indices);
      }
      case 1: {
        const int64_t step = rng_.uniform_int(1, 3);
        const int64_t start = rng_.uniform_int(0, std::min<int64_t>(2, shape[d] - 1));
        std::vector<int64_t> out = shape;
        out[d] = (shape[d] - start - 1) / step + 1;
        const std::vector<Axis> axes = axes_of(out);
        std::vector<Expr> indices = indices_of(axes);
        indices[d] = indices[d] * step + start;
        return emit_copy("slice", axes, indices);
      }
      case 2: {
        const std::vector<Axis> axes = axes_of(shape);
        std::vector<Expr> indices = indices_of(axes);
        indices[d] = Expr(shape[d] - 1) - indices[d];
        return emit_copy("reverse", axes, indices);
      }
      case 3: {
        // Flattened, and perhaps split again in another way.
        const int64_t total = x.buffer->num_elements();
        std::vector<Axis> axes{{Var("f"), total}};
        Expr flat = axes[0].var;
        if (total % 2 == 0 && rng_.bernoulli(0.5)) {
          axes = {{Var("f0"), total / 2}, {Var("f1"), 2}};
          flat = Expr(axes[0].var) * 2 + Expr(axes[1].var);
        }
        std::vector<Expr> indices(rank, Expr(0));
        for (size_t p = rank; p-- > 0;) {
          indices[p] = p == 0 ? flat : floormod(flat, shape[p]);
          flat = floordiv(flat, shape[p]);
        }
        return emit_copy("reshape", axes, indices);
      }
      case 4: {
        std::optional<size_t> other;
        for (size_t w = 0; w < values_.size(); ++w) {
          std::vector<int64_t> like = values_[w].buffer->shape;
          if (like.size() != rank || values_[w].buffer->dtype != x.buffer->dtype) continue;
          like[d] = shape[d];
          if (like == shape) other = w;
        }
        std::vector<int64_t> out = shape;
        out[d] += values_[*other].buffer->shape[d];
        const std::vector<Axis> axes = axes_of(out);
        const std::vector<Expr> indices = indices_of(axes);
        std::vector<Expr> shifted = indices;
        shifted[d] = shifted[d] - shape[d];
        return emit("concat", axes, {}, Combiner::kNone,
                    {select(indices[d] < shape[d], read(v, indices), read(*other, shifted))},
                    x.exact && values_[*other].exact, std::max(x.magnitude, values_[*other].magnitude));
      }
      default:
        break;
    }
    if (!options_.gathers || !options_.other_dtypes) return false;
    const int64_t count = random_extent();
    std::vector<int64_t> out = shape;
    out[d] = count;
    const std::vector<Axis> axes = axes_of(out);
    if (!fits(axes, {})) return false;
    const size_t index = add_input({count}, DType::kI64);
    std::vector<Expr> indices = indices_of(axes);
    indices[d] = floormod(read(index, {indices[d]}), shape[d]);
    return emit_copy("gather", axes, indices);
  }

  bool add_operation() {
    const size_t v = pick();
    switch (rng_.below(14)) {
      case 0:
      case 1:
        return add_elementwise(v);
      case 2:
      case 3:
      case 4:
        return add_binary(v);
      case 5:
        return add_where(v);
      case 6:
        return add_cast(v);
      case 7:
      case 8:
        return add_matmul(v);
      case 9:
      case 10:
        return add_window(v);
      case 11:
        return add_reduction(v);
      default:
        return add_rearrangement(v);
    }
  }

  Rng rng_;
  RandomWorkloadOptions options_;
  Workload workload_;
  std::vector<Value> values_;
  bool has_compute_ = false;
};

}  // namespace

Workload random_workload(uint64_t seed, const RandomWorkloadOptions& options) {
  return Generator(seed, options).run();
}

}  // namespace tensorsmith::test
