// Which attentions become one kernel, and that the kernel computes the same as the nodes.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "graph/tasks.h"
#include "graph_builder.h"

namespace tensorsmith::graph::attention_test {
namespace {

using testing::GraphBuilder;

constexpr int64_t kHeads = 4, kQueries = 260, kKeys = 270, kDepth = 3, kWidth = 5;

struct Attention {
  GraphBuilder b;
  ValueId query = b.input({1, kHeads, kQueries, kDepth});
  ValueId key = b.input({1, kHeads, kDepth, kKeys});
  ValueId value = b.input({1, kHeads, kKeys, kWidth});
  ValueId scores = b.node("MatMul", {query, key});

  ValueId scaled() { return b.node("Div", {scores, b.floats({}, {1.7})}); }
  ValueId softmax(ValueId x, int64_t axis = -1) { return b.node("Softmax", {x}, {{"axis", axis}}); }
  ValueId result(ValueId probabilities) { return b.node("MatMul", {probabilities, value}); }
  ValueId causal_mask() {
    std::vector<double> hidden(static_cast<size_t>(kQueries * kKeys), 0);
    for (int64_t i = 0; i < kQueries; ++i)
      for (int64_t j = i + 1; j < kKeys; ++j) hidden[static_cast<size_t>(i * kKeys + j)] = -1e9;
    return b.floats({1, 1, kQueries, kKeys}, hidden);
  }
};

Partition divided(Graph graph) {
  auto result = partition(graph);
  TS_CHECK(result.ok(), result.ok() ? "" : result.error().message());
  return std::move(result).value();
}

// Checks that the whole graph is one kernel, which computes the same as its nodes.
void expect_one_kernel(const std::string& what, const Graph& graph) {
  SCOPED_TRACE(what);
  const Partition parts = divided(graph);
  ASSERT_EQ(parts.calls.size(), 1U);
  Rng rng(7);
  std::vector<lower::Tensor> inputs, arguments;
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[id];
    inputs.push_back(lower::random_tensor(value.dtype, value.shape, rng, 0));
  }
  const Task& task = parts.tasks[*parts.calls[0].task];
  for (size_t i = 0; i < parts.calls[0].inputs.size(); ++i) {
    const ValueId id = parts.calls[0].inputs[i];
    const auto& constant = graph.values[id].constant;
    const auto at = std::find(graph.inputs.begin(), graph.inputs.end(), id) - graph.inputs.begin();
    arguments.push_back(constant ? *constant : inputs[static_cast<size_t>(at)]);
    arguments.back().shape = task.workload.inputs()[i]->shape;
  }
  const auto expected = evaluate(graph, inputs);
  const auto got = lower::evaluate(task.workload, arguments);
  ASSERT_TRUE(expected.ok() && got.ok());
  ASSERT_EQ(got->size(), 1U);
  ASSERT_EQ((*got)[0].num_elements(), (*expected)[0].num_elements());
  double worst = 0;
  for (int64_t i = 0; i < (*got)[0].num_elements(); ++i)
    worst = std::max(worst, std::abs((*got)[0].at(i).f - (*expected)[0].at(i).f));
  EXPECT_LE(worst, 2e-6);
  // The division comes last, once for each element of the result.
  const auto& last = *task.workload.operations.back();
  EXPECT_FALSE(last.has_reduction());
  EXPECT_EQ(last.output()->shape, task.workload.outputs[0]->shape);
}

TEST(Attention, FormsThatAreOneKernel) {
  {
    Attention a;
    const ValueId y = a.result(a.softmax(a.scores));
    expect_one_kernel("no scale", a.b.finish({y}));
  }
  {
    Attention a;
    const ValueId y = a.result(a.softmax(a.b.node("Add", {a.scaled(), a.causal_mask()}), 3));
    expect_one_kernel("scale and mask", a.b.finish({y}));
  }
  {
    Attention a;
    const ValueId padding = a.b.input({1, 1, 1, kKeys});
    const ValueId y = a.result(a.softmax(a.b.node("Add", {padding, a.scaled()})));
    expect_one_kernel("mask first", a.b.finish({y}));
  }
  {
    Attention a;
    const ValueId bias = a.b.input({1, kHeads, kQueries, kKeys});
    const ValueId y = a.result(a.softmax(a.b.node("Add", {bias, a.scores})));
    expect_one_kernel("bias of the scores' shape", a.b.finish({y}));
  }
  {
    Attention a;
    const ValueId seen = a.b.node("Less", {a.causal_mask(), a.b.floats({}, {-1.0})});
    const ValueId y = a.result(a.softmax(a.b.node("Where", {seen, a.b.floats({}, {-1e9}), a.scaled()})));
    const Partition parts = divided(a.b.finish({y}));
    EXPECT_LE(parts.calls.size(), 2U);  // the other one makes the mask
  }
}

TEST(Attention, FormsThatAreNot) {
  const auto kernels = [](const std::function<std::vector<ValueId>(Attention&)>& make) {
    Attention a;
    const std::vector<ValueId> outputs = make(a);
    const Partition parts = divided(a.b.finish(outputs));
    size_t attentions = 0;
    for (const Task& task : parts.tasks) {
      const auto& operations = task.workload.operations;
      attentions +=
          std::count_if(operations.begin(), operations.end(), [](const ir::OperationRef& op) {
            return op->combiner == ir::Combiner::kSum && op->name.find("matmul") != std::string::npos;
          }) > 1;
    }
    EXPECT_EQ(attentions, 0U);
    return parts.calls.size();
  };
  EXPECT_GE(kernels([](Attention& a) { return std::vector{a.result(a.softmax(a.scores)), a.scores}; }), 3U);
  EXPECT_GE(kernels([](Attention& a) {
              const ValueId p = a.softmax(a.scaled());
              return std::vector{a.result(p), p};
            }),
            3U);
  // Another kernel reads the scaled scores, too.
  EXPECT_GE(kernels([](Attention& a) {
              const ValueId s = a.scaled();
              return std::vector{a.result(a.softmax(s)), a.b.node("ReduceMax", {s})};
            }),
            3U);
  EXPECT_GE(kernels([](Attention& a) { return std::vector{a.result(a.softmax(a.scaled(), 2))}; }), 3U);
  // The probabilities are the second factor.
  EXPECT_GE(kernels([](Attention& a) {
              const ValueId left = a.b.input({1, kHeads, kWidth, kQueries});
              return std::vector{a.b.node("MatMul", {left, a.softmax(a.scaled())})};
            }),
            3U);
}

// Scores that stay in a cache between separate kernels, and few queries, are not fused.
TEST(Attention, SmallScoresAreLeftAlone) {
  for (const int64_t queries : {int64_t{1}, int64_t{64}}) {
    GraphBuilder b;
    const int64_t keys = queries == 1 ? 100'000 : 64;
    const ValueId scores = b.node("MatMul", {b.input({12, queries, 8}), b.input({12, 8, keys})});
    const ValueId p = b.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
    const Graph graph = b.finish({b.node("MatMul", {p, b.input({12, keys, 8})})});
    EXPECT_EQ(divided(graph).calls.size(), 3U);
  }
}

}  // namespace
}  // namespace tensorsmith::graph::attention_test
