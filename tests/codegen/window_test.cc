// Minima and maxima over overlapping windows with NaN or infinite values: random pools with random
// schedules on each instruction set of this machine, against plain loops. A kernel chooses between
// two copies of its code according to its input, so the same kernel is run without a NaN and with
// one at each kind of position.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "codegen/runner.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "space/design_space.h"
#include "support/random_trace.h"

namespace tensorsmith::window_test {
namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using lower::Tensor;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Operation on elements before the windows, or on results. Arithmetic makes NaN of infinities.
enum class Map { kNone, kRelu, kAbs, kClip, kArithmetic, kSigmoid };

Expr mapped(Map map, const Expr& x) {
  const auto number = [&](double v) { return ir::make_const(x.dtype(), v); };
  switch (map) {
    case Map::kNone:
      return x;
    case Map::kRelu:
      return ir::max(x, number(0));
    case Map::kAbs:
      return ir::call(ir::Intrinsic::kAbs, {x});
    case Map::kClip:
      return ir::min(ir::max(x, number(-1)), number(2));
    case Map::kArithmetic:
      return x * number(2) - x;
    case Map::kSigmoid:
      return number(1) / (number(1) + ir::call(ir::Intrinsic::kExp, {-x}));
  }
  return x;
}

double mapped(Map map, double x) {
  switch (map) {
    case Map::kNone:
      return x;
    case Map::kRelu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case Map::kAbs:
      return std::abs(x);
    case Map::kClip:
      return std::isnan(x) ? x : std::clamp(x, -1.0, 2.0);
    case Map::kArithmetic:
      return x * 2 - x;
    case Map::kSigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return x;
}

struct Pool {
  DType dtype = DType::kF32;
  bool is_max = true;
  int64_t channels = 1, height = 1, width = 1;
  int64_t kernel_h = 3, kernel_w = 3, stride = 1, pad = 1, dilation = 1;
  bool channels_last = false;
  Map before = Map::kNone, after = Map::kNone;

  int64_t outputs(int64_t size, int64_t kernel) const {
    return (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  }
  double neutral() const { return is_max ? -kInf : kInf; }
  int64_t at(int64_t c, int64_t h, int64_t w) const {
    return channels_last ? (h * width + w) * channels + c : (c * height + h) * width + w;
  }

  ir::Workload workload() const {
    const auto of = [&](const auto& c, const auto& h, const auto& w) {
      using T = std::decay_t<decltype(h)>;
      return channels_last ? std::vector<T>{h, w, c} : std::vector<T>{c, h, w};
    };
    ir::Workload w;
    w.operations.push_back(ir::placeholder("x", dtype, of(channels, height, width), false));
    const bool wide = dtype == DType::kF64;
    const auto axes = [&](int64_t rows, int64_t columns) {
      return of(ir::Axis{ir::Var("c"), channels}, ir::Axis{ir::Var("h"), rows},
                ir::Axis{ir::Var("w"), columns});
    };
    const auto var = [&](const std::vector<ir::Axis>& a, int which) {  // 0: channel, 1: row, 2: column
      return Expr(a[static_cast<size_t>(channels_last ? (which + 2) % 3 : which)].var);
    };
    const auto padded = axes(height + 2 * pad, width + 2 * pad);
    const Expr h = var(padded, 1);
    const Expr v = var(padded, 2);
    Expr element = ir::load(w.operations[0]->output(), of(var(padded, 0), h - pad, v - pad));
    if (dtype != DType::kF32 && !wide) element = ir::cast(DType::kF32, element);
    element = mapped(before, element);
    if (pad > 0) {
      element = ir::select(h >= pad && h < height + pad && v >= pad && v < width + pad, element,
                           ir::make_const(element.dtype(), neutral()));
    }
    w.operations.push_back(ir::compute("pad", padded, {}, Combiner::kNone, {element}));
    const auto out = axes(outputs(height, kernel_h), outputs(width, kernel_w));
    const ir::Axis r{ir::Var("r"), kernel_h};
    const ir::Axis s{ir::Var("s"), kernel_w};
    const Expr value =
        ir::load(w.operations[1]->output(), of(var(out, 0), var(out, 1) * stride + Expr(r.var) * dilation,
                                               var(out, 2) * stride + Expr(s.var) * dilation));
    w.operations.push_back(
        ir::compute("pool", out, {r, s}, is_max ? Combiner::kMax : Combiner::kMin, {value}));
    if (after != Map::kNone) {
      const auto last = axes(outputs(height, kernel_h), outputs(width, kernel_w));
      const Expr result = ir::load(w.operations[2]->output(), of(var(last, 0), var(last, 1), var(last, 2)));
      w.operations.push_back(ir::compute("out", last, {}, Combiner::kNone, {mapped(after, result)}));
    }
    w.outputs = w.operations.back()->outputs;
    return w;
  }

  std::string mistake(const Tensor& x, const Tensor& got) const {
    const int64_t rows = outputs(height, kernel_h), columns = outputs(width, kernel_w);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          double best = neutral();
          for (int64_t r = 0; r < kernel_h; ++r) {
            for (int64_t s = 0; s < kernel_w; ++s) {
              const int64_t h = i * stride + r * dilation - pad, w = j * stride + s * dilation - pad;
              if (h < 0 || h >= height || w < 0 || w >= width) continue;
              const double value = mapped(before, x.at(at(c, h, w)).f);
              if (std::isnan(best)) continue;
              best = std::isnan(value) ? value : is_max ? std::max(best, value) : std::min(best, value);
            }
          }
          const double want = mapped(after, best);
          const int64_t place =
              channels_last ? (i * columns + j) * channels + c : (c * rows + i) * columns + j;
          const double is = got.at(place).f;
          const bool same = std::isnan(want)   ? std::isnan(is)
                            : std::isinf(want) ? is == want
                                               : std::abs(is - want) <= 1e-5 * std::max(1.0, std::abs(want));
          if (!same) {
            return "channel " + std::to_string(c) + ", row " + std::to_string(i) + ", column " +
                   std::to_string(j) + ": got " + std::to_string(is) + ", want " + std::to_string(want);
          }
        }
      }
    }
    return "";
  }
};

// Returns inputs with NaN at each kind of position; the first one has none.
std::vector<Tensor> inputs_of(const Pool& pool, Rng& rng) {
  std::vector<int64_t> shape = {pool.channels, pool.height, pool.width};
  if (pool.channels_last) std::rotate(shape.begin(), shape.begin() + 1, shape.end());
  Tensor base = Tensor::zeros(pool.dtype, shape);
  const int64_t n = pool.channels * pool.height * pool.width;
  const auto put = [&](Tensor& t, int64_t e, double value) { t.set(e, ir::scalar_float(pool.dtype, value)); };
  const double infinite = rng.bernoulli(0.5) ? 0.1 : 0;
  for (int64_t e = 0; e < n; ++e) {
    double value = static_cast<double>(rng.uniform_int(-12, 12)) / 4;
    if (rng.bernoulli(infinite)) value = rng.bernoulli(0.5) ? kInf : -kInf;
    put(base, e, value);
  }
  std::vector<Tensor> all = {base};
  const auto some = [&](int64_t extent) { return rng.uniform_int(0, extent - 1); };
  const auto with_one = [&](int64_t c, int64_t h, int64_t w) {
    all.push_back(base);
    put(all.back(), pool.at(c, h, w), rng.bernoulli(0.5) ? kNan : -kNan);
  };
  const int64_t last_c = pool.channels - 1, last_h = pool.height - 1, last_w = pool.width - 1;
  with_one(0, 0, 0);
  with_one(last_c, last_h, last_w);
  with_one(some(pool.channels), last_h, some(pool.width));
  with_one(some(pool.channels), some(pool.height), last_w);
  with_one(some(pool.channels), some(pool.height), some(pool.width));
  with_one(some(pool.channels), some(pool.height), some(pool.width));
  all.push_back(base);
  for (int64_t e = 0; e < n; ++e)
    if (rng.bernoulli(0.05)) put(all.back(), e, kNan);
  all.push_back(Tensor::zeros(pool.dtype, shape));
  for (int64_t e = 0; e < n; ++e) put(all.back(), e, kNan);
  return all;
}

void check(const Pool& pool, const ir::Program& program, Rng& rng) {
  const std::vector<Tensor> inputs = inputs_of(pool, rng);
  for (const target::Device& device : test::local_devices()) {
    const auto kernel = test::backend().compile(program, device, {});
    ASSERT_TRUE(kernel.ok()) << kernel.error().message();
    const auto loaded = test::backend().load(kernel->object, kernel->symbol);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto got = test::run_kernel((*loaded)->function(), *kernel, program, {&inputs[i], 1}, 2,
                                        i % 2 == 0 ? test::Fences::kEnd : test::Fences::kBegin);
      ASSERT_EQ(pool.mistake(inputs[i], got[0]), "") << "input " << i << " on " << device.name << "\n"
                                                     << ir::print(program);
    }
  }
}

Pool random_pool(Rng& rng) {
  Pool pool;
  pool.dtype =
      std::array{DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kF16, DType::kBF16}[rng.below(6)];
  pool.is_max = rng.bernoulli(0.7);
  pool.kernel_h = rng.uniform_int(1, 4);
  pool.kernel_w = rng.uniform_int(1, 4);
  pool.stride = rng.uniform_int(1, 3);
  pool.dilation = rng.bernoulli(0.2) ? 2 : 1;
  pool.pad = rng.uniform_int(0, std::min(pool.kernel_h, pool.kernel_w) / 2);
  const int64_t reach_h = (pool.kernel_h - 1) * pool.dilation + 1;
  const int64_t reach_w = (pool.kernel_w - 1) * pool.dilation + 1;
  const bool large = rng.bernoulli(0.3);
  pool.channels = rng.uniform_int(1, 5);
  pool.height = reach_h + rng.uniform_int(0, large ? 60 : 12);
  pool.width = reach_w + rng.uniform_int(0, large ? 80 : 30);
  pool.channels_last = rng.bernoulli(0.3);
  if (pool.channels_last) pool.channels = rng.uniform_int(1, 40);
  const Map maps[] = {Map::kNone, Map::kNone, Map::kRelu, Map::kAbs, Map::kClip, Map::kArithmetic};
  pool.before = maps[rng.below(6)];
  const Map ends[] = {Map::kNone, Map::kNone, Map::kRelu, Map::kArithmetic, Map::kSigmoid};
  pool.after = ends[rng.below(5)];
  return pool;
}

TEST(Window, NanWinsUnderRandomSchedules) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Pool pool = random_pool(rng);
    test::RandomTraceOptions options;
    options.proposals = 8 + static_cast<int>(rng.below(30));
    const sched::ScheduleBuilder builder = test::random_schedule(pool.workload(), rng, options);
    const auto lowered = lower::lower(builder.schedule());
    ASSERT_TRUE(lowered.ok()) << lowered.error().message();
    check(pool, lowered->program, rng);
    if (HasFatalFailure()) return;
  }
}

TEST(Window, NanWinsUnderSchedulesOfTheSpace) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed + 1000);
    const Pool pool = random_pool(rng);
    const ir::Workload workload = pool.workload();
    target::Device device = test::local_devices().front();
    device.cpu().cores = static_cast<int>(rng.uniform_int(1, 2));
    const auto space = space::DesignSpace::build(workload, device, {});
    ASSERT_TRUE(space.ok()) << space.error().message();
    for (int i = 0; i < 2; ++i) {
      const auto trace = space->to_trace(i == 0 ? space->default_candidate() : space->sample(rng));
      if (!trace.ok()) continue;
      const auto schedule = sched::replay(workload, *trace);
      ASSERT_TRUE(schedule.ok());
      const auto lowered = lower::lower(*schedule);
      ASSERT_TRUE(lowered.ok());
      check(pool, lowered->program, rng);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tensorsmith::window_test
