// Storage of values: views that need no kernel, and the memory plan.
#include <gtest/gtest.h>

#include <functional>

#include "graph/tasks.h"
#include "graph_builder.h"

namespace tensorsmith::graph::partition_test {
namespace {

using testing::GraphBuilder;

struct Planned {
  Partition partition;
  MemoryPlan memory;
};

Planned plan(Graph graph) {
  auto result = partition(graph);
  TS_CHECK(result.ok(), result.ok() ? "" : result.error().message());
  Planned out{std::move(result).value(), {}};
  out.memory = plan_memory(graph, out.partition);
  return out;
}

ValueId concat(GraphBuilder& b, std::vector<ValueId> inputs, int64_t axis) {
  return b.node("Concat", std::move(inputs), {{"axis", axis}});
}

// Softmax is always a separate kernel, regardless of its readers.
ValueId kernel(GraphBuilder& b, ValueId x) { return b.node("Softmax", {x}, {{"axis", int64_t{-1}}}); }

TEST(Views, ConcatIsWrittenByItsProducers) {
  GraphBuilder b;
  const ValueId x = b.input({1, 2, 8});
  const ValueId y = b.input({1, 4, 8});
  const ValueId left = kernel(b, x);
  const ValueId right = kernel(b, y);
  const ValueId both = concat(b, {left, right}, 1);
  const Graph graph = b.finish({kernel(b, both), kernel(b, left)});
  const Planned p = plan(graph);
  EXPECT_EQ(p.partition.calls.size(), 4U);
  EXPECT_EQ(p.partition.storage_of[left], both);
  EXPECT_EQ(p.partition.storage_of[right], both);
  EXPECT_EQ(p.memory.offset[left], p.memory.offset[both]);
  EXPECT_EQ(p.memory.offset[right], p.memory.offset[both] + 2 * 8 * 4);
  EXPECT_EQ(p.memory.arena_bytes, 6 * 8 * 4);
}

TEST(Views, NestedAndReshaped) {
  GraphBuilder b;
  const ValueId first = kernel(b, b.input({2, 8}));
  const ValueId second = kernel(b, b.input({2, 8}));
  const ValueId third = kernel(b, b.input({1, 2, 8}));
  const ValueId inner = concat(b, {first, second}, 0);
  const ValueId reshaped = b.node("Reshape", {inner, b.integers({1, 4, 8})});
  const ValueId outer = concat(b, {third, reshaped}, -2);
  const Graph graph = b.finish({kernel(b, outer)});
  const Planned p = plan(graph);
  EXPECT_EQ(p.partition.calls.size(), 4U);
  for (ValueId id : {first, second, third, inner, reshaped}) EXPECT_EQ(p.partition.storage_of[id], outer);
  EXPECT_EQ(p.partition.storage_offset[third], 0);
  EXPECT_EQ(p.partition.storage_offset[inner], 64);
  EXPECT_EQ(p.partition.storage_offset[reshaped], 64);
  EXPECT_EQ(p.partition.storage_offset[first], 64);
  EXPECT_EQ(p.partition.storage_offset[second], 128);
}

// The parts of a Concat are live from the first one written to the last read of the whole: no other
// value may be placed there.
TEST(Views, NothingElseLiesInAPartlyWrittenConcat) {
  GraphBuilder b;
  const ValueId x = b.input({1, 2, 8});
  const ValueId left = kernel(b, x);
  const ValueId between = kernel(b, kernel(b, x));
  const ValueId right = kernel(b, between);
  const ValueId both = concat(b, {left, right}, 1);
  const Graph graph = b.finish({kernel(b, both)});
  const Planned p = plan(graph);
  const int64_t begin = p.memory.offset[both];
  const int64_t other = p.memory.offset[between];
  EXPECT_TRUE(other + 64 <= begin || other >= begin + 128) << other << " and " << begin;
}

TEST(Views, OtherConcatsAreKernels) {
  struct Case {
    const char* what;
    std::function<std::vector<ValueId>(GraphBuilder&)> build;  // outputs
  };
  const Case cases[] = {
      {"inner dimension",
       [](GraphBuilder& b) {
         const ValueId x = b.input({2, 8});
         return std::vector{kernel(b, concat(b, {kernel(b, x), kernel(b, b.input({2, 8}))}, 1))};
       }},
      {"a value twice",
       [](GraphBuilder& b) {
         const ValueId x = kernel(b, b.input({2, 8}));
         return std::vector{kernel(b, concat(b, {x, x}, 0))};
       }},
      {"an input of the model",
       [](GraphBuilder& b) {
         const ValueId x = b.input({2, 8});
         return std::vector{kernel(b, concat(b, {kernel(b, x), x}, 0))};
       }},
      {"a constant",
       [](GraphBuilder& b) {
         const ValueId x = kernel(b, b.input({2, 8}));
         return std::vector{kernel(b, concat(b, {x, b.floats({1, 8}, std::vector<double>(8, 1.0))}, 0))};
       }},
      {"an output of the model",
       [](GraphBuilder& b) {
         return std::vector{concat(b, {kernel(b, b.input({2, 8})), kernel(b, b.input({2, 8}))}, 0)};
       }},
      {"a part that is an output of the model",
       [](GraphBuilder& b) {
         const ValueId x = kernel(b, b.input({2, 8}));
         return std::vector{kernel(b, concat(b, {x, kernel(b, b.input({2, 8}))}, 0)), x};
       }},
      {"parts that are not aligned",
       [](GraphBuilder& b) {
         const ValueId x = kernel(b, b.input({1, 7}));
         return std::vector{kernel(b, concat(b, {x, kernel(b, b.input({2, 7}))}, 0))};
       }},
  };
  for (const Case& c : cases) {
    GraphBuilder b;
    const std::vector<ValueId> outputs = c.build(b);
    const Graph graph = b.finish(outputs);
    const Planned p = plan(graph);
    for (const ValueId v : graph.values.ids()) {
      EXPECT_EQ(p.partition.storage_of[v], v) << c.what << ", " << graph.values[v].name;
      EXPECT_EQ(p.partition.storage_offset[v], 0) << c.what;
    }
  }
}

// If two Concats share a part, only one of them can contain it.
TEST(Views, APartLiesInOneConcat) {
  GraphBuilder b;
  const ValueId x = kernel(b, b.input({2, 8}));
  const ValueId y = kernel(b, b.input({2, 8}));
  const ValueId one = concat(b, {x, y}, 0);
  const ValueId two = concat(b, {y, x}, 0);
  const Graph graph = b.finish({kernel(b, one), kernel(b, two)});
  const Planned p = plan(graph);
  EXPECT_EQ(p.partition.storage_of[x], one);
  EXPECT_EQ(p.partition.storage_of[y], one);
  EXPECT_EQ(p.partition.storage_of[two], two);
}

std::vector<ValueId> split(GraphBuilder& b, ValueId x, std::vector<int64_t> parts, int64_t axis) {
  b.node("Split", {x, b.integers(parts)}, {{"axis", axis}}, static_cast<int>(parts.size()));
  return b.graph().nodes.back().outputs;
}

TEST(Views, PartsAreReadInPlace) {
  GraphBuilder b;
  const ValueId x = kernel(b, b.input({1, 6, 16}));
  const auto parts = split(b, x, {2, 4}, 1);
  const ValueId inner = b.node("Slice", {parts[1], b.integers({1}), b.integers({3}), b.integers({1})});
  const ValueId row = b.node("Gather", {inner, b.integers({1})}, {{"axis", int64_t{1}}});
  const Graph graph = b.finish({kernel(b, parts[0]), kernel(b, inner), kernel(b, row)});
  const Planned p = plan(graph);
  EXPECT_EQ(p.partition.calls.size(), 4U);
  for (ValueId id : {parts[0], parts[1], inner, row}) EXPECT_EQ(p.partition.storage_of[id], x);
  EXPECT_EQ(p.partition.storage_offset[parts[1]], 2 * 64);
  EXPECT_EQ(p.partition.storage_offset[inner], 3 * 64);
  EXPECT_EQ(p.partition.storage_offset[row], 4 * 64);
}

// Bottlenecks of YOLO: halves of a value and results computed from one of them are concatenated.
TEST(Views, PartsThatFollowEachOtherAreTheWhole) {
  GraphBuilder b;
  const ValueId other = kernel(b, b.input({1, 2, 16}));
  const ValueId x = kernel(b, b.input({1, 4, 16}));
  const auto halves = split(b, x, {2, 2}, 1);
  const ValueId made = kernel(b, halves[1]);
  const ValueId all = concat(b, {other, halves[0], halves[1], made}, 1);
  const Graph graph = b.finish({kernel(b, all)});
  const Planned p = plan(graph);
  EXPECT_EQ(p.partition.calls.size(), 4U);
  for (ValueId id : {other, x, halves[0], halves[1], made}) EXPECT_EQ(p.partition.storage_of[id], all);
  EXPECT_EQ(p.partition.storage_offset[x], 2 * 64);
  EXPECT_EQ(p.partition.storage_offset[halves[1]], 4 * 64);
  EXPECT_EQ(p.partition.storage_offset[made], 6 * 64);
}

TEST(Views, PartsThatAreCopied) {
  const auto expect_copied = [](const char* what, GraphBuilder& b, ValueId part,
                                std::vector<ValueId> outputs) {
    const Graph graph = b.finish(std::move(outputs));
    EXPECT_EQ(plan(graph).partition.storage_of[part], part) << what;
  };
  {
    GraphBuilder b;
    const auto parts = split(b, kernel(b, b.input({2, 6, 16})), {2, 4}, 1);
    expect_copied("two images", b, parts[0], {kernel(b, parts[0]), kernel(b, parts[1])});
  }
  {
    GraphBuilder b;
    const auto parts = split(b, kernel(b, b.input({1, 6, 7})), {2, 4}, 1);
    expect_copied("not aligned", b, parts[0], {kernel(b, parts[0]), kernel(b, parts[1])});
  }
  {
    GraphBuilder b;
    const auto parts = split(b, b.input({1, 6, 16}), {2, 4}, 1);
    expect_copied("an input of the model", b, parts[0], {kernel(b, parts[0]), kernel(b, parts[1])});
  }
  {
    GraphBuilder b;
    const auto parts = split(b, kernel(b, b.input({1, 6, 16})), {2, 4}, 1);
    expect_copied("an output of the model", b, parts[0], {parts[0], kernel(b, parts[1])});
  }
  {
    GraphBuilder b;
    const ValueId x = kernel(b, b.input({1, 6, 16}));
    const ValueId odd =
        b.node("Slice", {x, b.integers({1}), b.integers({6}), b.integers({1}), b.integers({2})});
    expect_copied("a stride", b, odd, {kernel(b, odd)});
  }
}

// For a convolution, reading every other channel is a different stride and not a copy.
TEST(Grouping, SelectedChannelsAreReadByTheConvolution) {
  GraphBuilder b;
  const ValueId x = kernel(b, b.input({1, 6, 4, 4}));
  const ValueId odd =
      b.node("Slice", {x, b.integers({1}), b.integers({6}), b.integers({1}), b.integers({2})});
  const ValueId weights = b.floats({8, 3, 1, 1}, std::vector<double>(24, 0.5));
  const Graph graph = b.finish({b.node("Conv", {odd, weights})});
  const Planned p = plan(graph);
  ASSERT_EQ(p.partition.calls.size(), 2U);
  EXPECT_EQ(p.partition.calls[1].inputs, (std::vector<ValueId>{x, weights}));
}

// 7 bits: i8 from -64 to 64 and u8 up to 128, in constant matrices.
TEST(Grouping, ConstantsOfBytesThatUse7BitsAreMarked) {
  const auto marked = [](ir::DType dtype, std::vector<int64_t> values, bool constant) {
    GraphBuilder b;
    lower::Tensor w = lower::Tensor::zeros(dtype, {static_cast<int64_t>(values.size()), 1});
    for (size_t i = 0; i < values.size(); ++i)
      w.set(static_cast<int64_t>(i), ir::scalar_int(dtype, values[i]));
    const ValueId x = b.input({3, static_cast<int64_t>(values.size())}, ir::DType::kU8);
    const ValueId weights = constant ? b.constant(std::move(w)) : b.input(w.shape, dtype);
    const Planned p = plan(b.finish({b.node("MatMulInteger", {x, weights})}));
    const auto& operations = p.partition.tasks.at(0).workload.operations;
    return std::count_if(operations.begin(), operations.end(),
                         [](const auto& op) { return op->is_placeholder() && op->reduced_range; });
  };
  EXPECT_EQ(marked(ir::DType::kI8, {-64, 0, 64}, true), 1);
  EXPECT_EQ(marked(ir::DType::kI8, {-65, 0, 64}, true), 0);
  EXPECT_EQ(marked(ir::DType::kI8, {-64, 0, 65}, true), 0);
  EXPECT_EQ(marked(ir::DType::kU8, {0, 128}, true), 1);
  EXPECT_EQ(marked(ir::DType::kU8, {0, 129}, true), 0);
  EXPECT_EQ(marked(ir::DType::kI8, {-64, 0, 64}, false), 0);
}

}  // namespace
}  // namespace tensorsmith::graph::partition_test
