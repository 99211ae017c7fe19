// Operators with random geometry, compared with loops written from their definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"
#include "graph_builder.h"
#include "ir/analysis.h"
#include "onnx_testdata.h"

namespace tensorsmith::graph::ops_test {
namespace {

using lower::Tensor;
using testing::GraphBuilder;

int64_t draw(Rng& rng, int64_t low, int64_t high) { return rng.uniform_int(low, high); }

double at(const Tensor& t, const std::vector<int64_t>& index) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); ++d) flat = flat * t.shape[d] + index[d];
  return t.at(flat).f;
}

void add(Tensor& t, const std::vector<int64_t>& index, double v) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); ++d) flat = flat * t.shape[d] + index[d];
  t.set(flat, ir::scalar_float(t.dtype, t.at(flat).f + v));
}

Tensor run_one(const Graph& graph, std::span<const Tensor> inputs) {
  auto outputs = evaluate(graph, inputs);
  TS_CHECK(outputs.ok(), outputs.ok() ? "" : outputs.error().message());
  return std::move((*outputs)[0]);
}

struct Geometry {
  int64_t n, groups, channels, filters;  // channels and filters of one group
  int64_t size[2], kernel[2], stride[2], dilation[2], begin[2], end[2];
};

Geometry random_geometry(Rng& rng) {
  Geometry g{};
  g.n = draw(rng, 1, 2);
  g.groups = draw(rng, 1, 3);
  g.channels = draw(rng, 1, 3);
  g.filters = draw(rng, 1, 3);
  for (int d = 0; d < 2; ++d) {
    g.kernel[d] = draw(rng, 1, 3);
    g.stride[d] = draw(rng, 1, 3);
    g.dilation[d] = draw(rng, 1, 2);
    g.begin[d] = draw(rng, 0, 2);
    g.end[d] = draw(rng, 0, 2);
    g.size[d] = draw(rng, (g.kernel[d] - 1) * g.dilation[d] + 1, 8);
  }
  return g;
}

std::map<std::string, Attribute> attributes_of(const Geometry& g) {
  using Ints = std::vector<int64_t>;
  return {{"strides", Ints{g.stride[0], g.stride[1]}},
          {"dilations", Ints{g.dilation[0], g.dilation[1]}},
          {"pads", Ints{g.begin[0], g.begin[1], g.end[0], g.end[1]}}};
}

TEST(Conv, MatchesLoops) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Geometry g = random_geometry(rng);
    const Tensor x =
        lower::random_tensor(ir::DType::kF32, {g.n, g.groups * g.channels, g.size[0], g.size[1]}, rng);
    const Tensor w = lower::random_tensor(ir::DType::kF32,
                                          {g.groups * g.filters, g.channels, g.kernel[0], g.kernel[1]}, rng);
    const Tensor bias = lower::random_tensor(ir::DType::kF32, {g.groups * g.filters}, rng);
    GraphBuilder b;
    auto attributes = attributes_of(g);
    attributes["group"] = g.groups;
    const ValueId y = b.node("Conv", {b.input(x.shape), b.input(w.shape), b.input(bias.shape)}, attributes);
    const Graph graph = b.finish({y});
    int64_t out[2];
    for (int d = 0; d < 2; ++d) {
      out[d] = (g.size[d] + g.begin[d] + g.end[d] - (g.kernel[d] - 1) * g.dilation[d] - 1) / g.stride[d] + 1;
    }
    Tensor expected = Tensor::zeros(ir::DType::kF32, {g.n, g.groups * g.filters, out[0], out[1]});
    for (int64_t n = 0; n < g.n; ++n) {
      for (int64_t k = 0; k < g.groups * g.filters; ++k) {
        for (int64_t i = 0; i < out[0]; ++i) {
          for (int64_t j = 0; j < out[1]; ++j) {
            double sum = at(bias, {k});
            for (int64_t c = 0; c < g.channels; ++c) {
              for (int64_t r = 0; r < g.kernel[0]; ++r) {
                for (int64_t s = 0; s < g.kernel[1]; ++s) {
                  const int64_t row = i * g.stride[0] - g.begin[0] + r * g.dilation[0];
                  const int64_t column = j * g.stride[1] - g.begin[1] + s * g.dilation[1];
                  if (row < 0 || row >= g.size[0] || column < 0 || column >= g.size[1]) continue;
                  sum += at(x, {n, k / g.filters * g.channels + c, row, column}) * at(w, {k, c, r, s});
                }
              }
            }
            add(expected, {n, k, i, j}, sum);
          }
        }
      }
    }
    EXPECT_EQ(testing::difference(run_one(graph, std::vector{x, w, bias}), expected, 1e-4, 1e-5), "");
  }
}

// Scatter form: each input element adds the kernel, scaled, to the output.
TEST(ConvTranspose, MatchesLoops) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Geometry g = random_geometry(rng);
    int64_t out[2];
    int64_t extra[2];
    for (int d = 0; d < 2; ++d) {
      extra[d] = draw(rng, 0, g.stride[d] - 1);
      out[d] = (g.size[d] - 1) * g.stride[d] + (g.kernel[d] - 1) * g.dilation[d] + 1 + extra[d] - g.begin[d] -
               g.end[d];
      if (out[d] < 1) {
        out[d] += g.begin[d] + g.end[d];
        g.begin[d] = g.end[d] = 0;
      }
    }
    const Tensor x =
        lower::random_tensor(ir::DType::kF32, {g.n, g.groups * g.channels, g.size[0], g.size[1]}, rng);
    const Tensor w = lower::random_tensor(ir::DType::kF32,
                                          {g.groups * g.channels, g.filters, g.kernel[0], g.kernel[1]}, rng);
    GraphBuilder b;
    auto attributes = attributes_of(g);
    attributes["group"] = g.groups;
    attributes["output_padding"] = std::vector<int64_t>{extra[0], extra[1]};
    const ValueId y = b.node("ConvTranspose", {b.input(x.shape), b.input(w.shape)}, attributes);
    const Graph graph = b.finish({y});
    Tensor expected = Tensor::zeros(ir::DType::kF32, {g.n, g.groups * g.filters, out[0], out[1]});
    for (int64_t n = 0; n < g.n; ++n) {
      for (int64_t c = 0; c < g.groups * g.channels; ++c) {
        for (int64_t i = 0; i < g.size[0]; ++i) {
          for (int64_t j = 0; j < g.size[1]; ++j) {
            for (int64_t k = 0; k < g.filters; ++k) {
              for (int64_t r = 0; r < g.kernel[0]; ++r) {
                for (int64_t s = 0; s < g.kernel[1]; ++s) {
                  const int64_t row = i * g.stride[0] + r * g.dilation[0] - g.begin[0];
                  const int64_t column = j * g.stride[1] + s * g.dilation[1] - g.begin[1];
                  if (row < 0 || row >= out[0] || column < 0 || column >= out[1]) continue;
                  add(expected, {n, c / g.channels * g.filters + k, row, column},
                      at(x, {n, c, i, j}) * at(w, {c, k, r, s}));
                }
              }
            }
          }
        }
      }
    }
    EXPECT_EQ(testing::difference(run_one(graph, std::vector{x, w}), expected, 1e-4, 1e-5), "");
  }
}

TEST(Pool, MatchesLoops) {
  for (uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Geometry g = random_geometry(rng);
    for (int d = 0; d < 2; ++d) {
      g.begin[d] = std::min(g.begin[d], g.kernel[d] - 1);
      g.end[d] = std::min(g.end[d], g.kernel[d] - 1);
    }
    const bool include_pad = draw(rng, 0, 1) != 0;
    const Tensor x = lower::random_tensor(ir::DType::kF32, {g.n, 2, g.size[0], g.size[1]}, rng);
    auto attributes = attributes_of(g);
    attributes["kernel_shape"] = std::vector<int64_t>{g.kernel[0], g.kernel[1]};
    GraphBuilder b;
    const ValueId in = b.input(x.shape);
    const ValueId maximum = b.node("MaxPool", {in}, attributes);
    attributes["count_include_pad"] = int64_t{include_pad ? 1 : 0};
    const ValueId average = b.node("AveragePool", {in}, attributes);
    const Graph graph = b.finish({maximum, average});
    const auto outputs = evaluate(graph, std::vector{x});
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    int64_t out[2];
    for (int d = 0; d < 2; ++d) {
      out[d] = (g.size[d] + g.begin[d] + g.end[d] - (g.kernel[d] - 1) * g.dilation[d] - 1) / g.stride[d] + 1;
    }
    Tensor expected_max = Tensor::zeros(ir::DType::kF32, {g.n, 2, out[0], out[1]});
    Tensor expected_mean = expected_max;
    for (int64_t n = 0; n < g.n; ++n) {
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t i = 0; i < out[0]; ++i) {
          for (int64_t j = 0; j < out[1]; ++j) {
            double best = -HUGE_VAL;
            double sum = 0;
            int count = 0;
            for (int64_t r = 0; r < g.kernel[0]; ++r) {
              for (int64_t s = 0; s < g.kernel[1]; ++s) {
                const int64_t row = i * g.stride[0] - g.begin[0] + r * g.dilation[0];
                const int64_t column = j * g.stride[1] - g.begin[1] + s * g.dilation[1];
                const bool inside = row >= 0 && row < g.size[0] && column >= 0 && column < g.size[1];
                count += inside || include_pad ? 1 : 0;
                if (!inside) continue;
                best = std::max(best, at(x, {n, c, row, column}));
                sum += at(x, {n, c, row, column});
              }
            }
            add(expected_max, {n, c, i, j}, best);
            add(expected_mean, {n, c, i, j}, count == 0 ? 0 : sum / count);
          }
        }
      }
    }
    EXPECT_EQ(testing::difference((*outputs)[0], expected_max, 0, 0), "");
    EXPECT_EQ(testing::difference((*outputs)[1], expected_mean, 1e-5, 1e-6), "");
  }
}

TEST(MatMul, BroadcastsBatches) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const int64_t m = draw(rng, 1, 4);
    const int64_t k = draw(rng, 1, 4);
    const int64_t n = draw(rng, 1, 4);
    const int64_t p = draw(rng, 1, 3);
    const int64_t q = draw(rng, 1, 3);
    const Tensor a = lower::random_tensor(ir::DType::kF32, {draw(rng, 0, 1) != 0 ? p : 1, q, m, k}, rng);
    const Tensor b = lower::random_tensor(ir::DType::kF32, {draw(rng, 0, 1) != 0 ? q : 1, k, n}, rng);
    GraphBuilder builder;
    const ValueId y = builder.node("MatMul", {builder.input(a.shape), builder.input(b.shape)});
    Tensor expected = Tensor::zeros(ir::DType::kF32, {a.shape[0], q, m, n});
    for (int64_t s = 0; s < a.shape[0]; ++s) {
      for (int64_t t = 0; t < q; ++t) {
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t r = 0; r < k; ++r)
              sum += at(a, {s, t, i, r}) * at(b, {b.shape[0] == 1 ? 0 : t, r, j});
            add(expected, {s, t, i, j}, sum);
          }
        }
      }
    }
    EXPECT_EQ(testing::difference(run_one(builder.finish({y}), std::vector{a, b}), expected, 1e-5, 1e-6), "");
  }
}

// A reshape keeps the row-major order for any dimensions that are split, merged, inserted or
// removed.
TEST(Reshape, KeepsTheOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    // Two random factorizations of the same number of elements.
    const int64_t factors[] = {2, 2, 3, 5, 2};
    const auto factorize = [&] {
      Shape shape = {1};
      for (int64_t factor : factors) {
        if (draw(rng, 0, 1) != 0) shape.push_back(1);
        shape.back() *= factor;
      }
      if (draw(rng, 0, 1) != 0)
        shape.insert(shape.begin() + draw(rng, 0, static_cast<int64_t>(shape.size())), 1);
      return shape;
    };
    const Shape from = factorize();
    const Shape to = factorize();
    const Tensor x = lower::random_tensor(ir::DType::kF32, from, rng);
    GraphBuilder b;
    const ValueId in = b.input(from);
    const ValueId y = b.node("Reshape", {in, b.integers(to)});
    const Tensor got = run_one(b.finish({y}), std::vector{x});
    EXPECT_EQ(got.shape, to);
    EXPECT_EQ(got.data, x.data);
  }
}

TEST(Slice, MatchesLoops) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const int64_t extent = draw(rng, 1, 7);
    const auto bound = [&] {
      return draw(rng, 0, 9) == 0 ? INT64_MAX : draw(rng, 0, 9) == 0 ? INT64_MIN : draw(rng, -9, 9);
    };
    const int64_t start = bound();
    const int64_t end = bound();
    int64_t step = draw(rng, -3, 3);
    if (step == 0) step = 1;
    const Tensor x = lower::random_tensor(ir::DType::kF32, {extent}, rng);
    GraphBuilder b;
    const ValueId in = b.input({extent});
    const ValueId y =
        b.node("Slice", {in, b.integers({start}), b.integers({end}), b.integers({0}), b.integers({step})});
    const Tensor got = run_one(b.finish({y}), std::vector{x});
    // As CPython's PySlice_AdjustIndices, except that ONNX clamps a start before the first element
    // to it.
    const auto adjust = [&](int64_t v, int64_t lowest) {
      if (v < 0) {
        v = v < -extent ? -1 : v + extent;
        if (v < 0) v = step < 0 ? lowest : 0;
      } else if (v >= extent) {
        v = step < 0 ? extent - 1 : extent;
      }
      return v;
    };
    const int64_t last = adjust(end, -1);
    std::vector<double> expected;
    for (int64_t i = adjust(start, 0); step > 0 ? i < last : i > last; i += step) {
      expected.push_back(at(x, {i}));
    }
    ASSERT_EQ(got.num_elements(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(got.at(static_cast<int64_t>(i)).f, expected[i]);
  }
}

// The index formulas of Resize equal the coordinates computed in double, for all sizes.
TEST(Resize, NearestPositions) {
  for (const char* coordinates : {"asymmetric", "half_pixel", "align_corners"}) {
    for (int64_t input = 1; input <= 9; ++input) {
      for (int64_t output = 1; output <= 20; ++output) {
        GraphBuilder b;
        const ValueId x = b.input({input});
        const ValueId empty = b.floats({0}, {});
        const ValueId y = b.node("Resize", {x, kNoValue, empty, b.integers({output})},
                                 {{"mode", std::string("nearest")},
                                  {"nearest_mode", std::string("floor")},
                                  {"coordinate_transformation_mode", std::string(coordinates)}});
        Tensor ramp = Tensor::zeros(ir::DType::kF32, {input});
        for (int64_t i = 0; i < input; ++i)
          ramp.set(i, ir::scalar_float(ir::DType::kF32, static_cast<double>(i)));
        const Tensor got = run_one(b.finish({y}), std::vector{ramp});
        for (int64_t o = 0; o < output; ++o) {
          // Exact rational arithmetic: floor(numerator / denominator).
          int64_t numerator = o * input;
          int64_t denominator = output;
          if (std::string(coordinates) == "half_pixel") {
            numerator = (2 * o + 1) * input - output;
            denominator = 2 * output;
          } else if (std::string(coordinates) == "align_corners") {
            numerator = o * (input - 1);
            denominator = std::max<int64_t>(output - 1, 1);
          }
          int64_t floor = numerator / denominator;
          if (numerator % denominator < 0) --floor;
          EXPECT_EQ(got.at(o).f, static_cast<double>(std::clamp<int64_t>(floor, 0, input - 1)))
              << coordinates << " " << input << " -> " << output << " at " << o;
        }
      }
    }
  }
}

struct StageCount {
  size_t operations = 0;
  std::vector<std::string> names;
  std::vector<size_t> reduce_axes;
};

StageCount stages(const Graph& graph) {
  const auto work = node_workload(graph, graph.nodes.back());
  TS_CHECK(work.ok(), "cannot be emitted");
  StageCount count;
  for (const auto& op : work->workload.operations) {
    if (op->is_placeholder()) continue;
    ++count.operations;
    count.names.push_back(op->name);
    count.reduce_axes.push_back(op->reduce.size());
  }
  return count;
}

// The tuner schedules these stages, so their form matters.
TEST(Emission, Stages) {
  using Names = std::vector<std::string>;
  using Axes = std::vector<size_t>;
  const auto conv = [](Shape x, Shape w, int64_t groups, int64_t pad, bool bias) {
    GraphBuilder b;
    std::vector<ValueId> inputs = {b.input(x), b.input(w)};
    if (bias) inputs.push_back(b.input({w[0]}));
    b.node("Conv", inputs, {{"group", groups}, {"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
    return stages(b.graph());
  };
  StageCount s = conv({1, 8, 6, 6}, {4, 8, 3, 3}, 1, 1, true);
  EXPECT_EQ(s.names, (Names{"pad", "conv2d", "bias_add"}));
  EXPECT_EQ(s.reduce_axes, (Axes{0, 3, 0}));
  s = conv({1, 8, 6, 6}, {4, 8, 3, 3}, 1, 0, false);
  EXPECT_EQ(s.names, Names{"conv2d"});
  s = conv({1, 8, 6, 6}, {4, 8, 1, 1}, 1, 0, false);
  EXPECT_EQ(s.reduce_axes, Axes{1});
  s = conv({1, 8, 6, 6}, {8, 1, 3, 3}, 8, 0, false);
  EXPECT_EQ(s.names, Names{"depthwise_conv2d"});
  EXPECT_EQ(s.reduce_axes, Axes{2});
  s = conv({1, 8, 6, 6}, {8, 2, 3, 3}, 4, 0, false);
  EXPECT_EQ(s.names, Names{"group_conv2d"});

  GraphBuilder pool;
  pool.node("GlobalAveragePool", {pool.input({1, 8, 6, 6})});
  EXPECT_EQ(stages(pool.graph()).reduce_axes, (Axes{2, 0}));
  GraphBuilder softmax;
  softmax.node("Softmax", {softmax.input({4, 9})});
  EXPECT_EQ(stages(softmax.graph()).reduce_axes, (Axes{1, 0, 1, 0}));
}

// Inserted and removed dimensions leave plain indices.
TEST(Emission, ReshapeIndicesAreClean) {
  const auto axes = axes_for({2, 1, 12, 5});
  const Exprs vars = vars_of(axes);
  const Exprs squeezed = reshape_indices({2, 12, 5}, {2, 1, 12, 5}, vars);
  ASSERT_EQ(squeezed.size(), 3u);
  EXPECT_TRUE(squeezed[0].same_as(vars[0]) || ir::as<ir::VarRef>(squeezed[0]) != nullptr);
  EXPECT_NE(ir::as<ir::VarRef>(squeezed[1]), nullptr);
  EXPECT_NE(ir::as<ir::VarRef>(squeezed[2]), nullptr);
  // Splitting 12 into 3 x 4 touches only that dimension.
  const Exprs split = reshape_indices({2, 3, 4, 5}, {2, 1, 12, 5}, vars);
  ASSERT_EQ(split.size(), 4u);
  EXPECT_NE(ir::as<ir::VarRef>(split[0]), nullptr);
  EXPECT_NE(ir::as<ir::VarRef>(split[3]), nullptr);
}

TEST(Emission, WrongIndicesAtRunTimeStayInRange) {
  GraphBuilder b;
  const ValueId data = b.input({3});
  const ValueId indices = b.input({4}, ir::DType::kI64);
  const ValueId y = b.node("Gather", {data, indices});
  Tensor x = Tensor::zeros(ir::DType::kF32, {3});
  for (int64_t i = 0; i < 3; ++i) x.set(i, ir::scalar_float(ir::DType::kF32, static_cast<double>(i)));
  Tensor at_run_time = Tensor::zeros(ir::DType::kI64, {4});
  const int64_t wrong[] = {-1, 99, -99, 1};
  for (int64_t i = 0; i < 4; ++i) at_run_time.set(i, ir::scalar_int(ir::DType::kI64, wrong[i]));
  const Tensor got = run_one(b.finish({y}), std::vector{x, at_run_time});
  EXPECT_EQ(got.at(0).f, 2.0);
  EXPECT_EQ(got.at(1).f, 2.0);
  EXPECT_EQ(got.at(2).f, 0.0);
  EXPECT_EQ(got.at(3).f, 1.0);
}

ir::DType dtype_for(char letter, char dtype_class) {
  if (letter == 'B' || (letter == 'T' && dtype_class == 'b')) return ir::DType::kBool;
  return letter == 'T' && (dtype_class == 'i' || dtype_class == 'u') ? ir::DType::kU8 : ir::DType::kF32;
}

// Returns the operator with inputs of one shape.
Graph one_node(std::string_view op, std::string_view signature) {
  GraphBuilder b;
  std::vector<ValueId> inputs;
  for (const char letter : signature.substr(2))
    if (letter == '*' || std::isupper(static_cast<unsigned char>(letter)) != 0)
      inputs.push_back(b.input({2, 3}, dtype_for(letter == '*' ? 'T' : letter, signature[0])));
  return b.finish(
      {b.node(std::string(op), inputs, {{"to", int64_t{1}}, {"direction", std::string("LEFT")}})});
}

TEST(Traits, ElementwiseOperatorsReadTheIndicesThatTheyWrite) {
  int count = 0;
  for (const std::string_view op : operator_names()) {
    if (!has_trait(op, kElementwise)) continue;
    ++count;
    const Graph graph = one_node(op, find_operator(op)->signature);
    const NodeWorkload work = node_workload(graph, graph.nodes[NodeId(0)]).value();
    EXPECT_EQ(work.outputs[0]->shape, (Shape{2, 3})) << op;
    const bool returned =
        std::find(work.inputs.begin(), work.inputs.end(), work.outputs[0]) != work.inputs.end();
    EXPECT_LE(returned, has_trait(op, kReturnsInput | kMayReturnInput)) << op;
    for (const auto& operation : work.workload.operations) {
      for (const ir::Expr& body : operation->bodies) {
        for (const ir::Load* load : ir::loads_of(body))
          for (size_t d = 0; d < 2; ++d)
            EXPECT_EQ(ir::as<ir::VarRef>(load->indices[d])->var, operation->spatial[d].var) << op;
      }
    }
  }
  EXPECT_GT(count, 60);
}

// Equal elements are the worst case for sums, since each addition rounds in the same direction. The
// expected values are exact. Before long sums were accumulated in f64, the results were off by .1
// to 1 %.
TEST(LongSums, AreAsExactAsTheirType) {
  const int64_t n = 1 << 20;
  const double element = static_cast<double>(0.1F);
  const auto filled = [&](const std::vector<int64_t>& shape) {
    Tensor x = Tensor::zeros(ir::DType::kF32, shape);
    for (int64_t i = 0; i < x.num_elements(); ++i) x.set(i, ir::scalar_float(ir::DType::kF32, element));
    return x;
  };
  const struct {
    const char* op;
    std::vector<int64_t> shape;
    std::map<std::string, Attribute> attributes;
    double expected;
  } cases[] = {
      {"ReduceSum", {n}, {}, element * n},
      {"ReduceSum", {n / 16, 16}, {{"axes", std::vector<int64_t>{0}}}, element * n / 16},
      {"ReduceSum", {16, n / 16}, {{"axes", std::vector<int64_t>{1}}}, element * n / 16},
      {"ReduceMean", {n}, {}, element},
      {"ReduceL1", {n}, {}, element * n},
      {"ReduceL2", {n}, {}, element * std::sqrt(n)},
      {"ReduceSumSquare", {n}, {}, element * element * n},
      {"ReduceLogSum", {n}, {}, std::log(element * n)},
      {"GlobalAveragePool", {1, 1, 1024, 1024}, {}, element},
      {"AveragePool", {1, 1, 256, 256}, {{"kernel_shape", std::vector<int64_t>{256, 256}}}, element},
  };
  for (const auto& c : cases) {
    GraphBuilder builder;
    const Graph graph = builder.finish({builder.node(c.op, {builder.input(c.shape)}, c.attributes)});
    const Tensor sum = run_one(graph, std::vector{filled(c.shape)});
    for (int64_t i = 0; i < sum.num_elements(); ++i)
      ASSERT_NEAR(sum.at(i).f, c.expected, 1e-6 * c.expected)
          << c.op << " of " << c.shape.size() << " dimensions";
  }
}

}  // namespace
}  // namespace tensorsmith::graph::ops_test
