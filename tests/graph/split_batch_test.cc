// Batches that run in parts: the results, the storage of values, and batches that are not split.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "graph/tasks.h"
#include "graph_builder.h"

namespace tensorsmith::graph::split_batch_test {
namespace {

using testing::GraphBuilder;

lower::Tensor random(const Value& value, Rng& rng) {
  return lower::random_tensor(value.dtype, value.shape, rng);
}

// Runs the calls in order by the interpreter, with each value at its place in its storage's memory.
std::vector<lower::Tensor> run(const Graph& graph, const Partition& partition,
                               const std::vector<lower::Tensor>& inputs) {
  std::map<ValueId, std::vector<std::byte>> memory;
  const auto bytes_of = [&](ValueId id) {
    const Value& value = graph.values[id];
    return lower::Tensor::zeros(value.dtype, value.shape).data.size();
  };
  const auto place = [&](ValueId id) {
    const ValueId storage = partition.storage_of[id];
    auto& bytes = memory[storage];
    if (bytes.empty()) bytes.resize(bytes_of(storage));
    return bytes.data() + partition.storage_offset[id];
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    std::memcpy(place(graph.inputs[i]), inputs[i].data.data(), inputs[i].data.size());
  for (const Call& call : partition.calls) {
    const ir::Workload& workload = partition.tasks[*call.task].workload;
    std::vector<lower::Tensor> given;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const ir::Buffer buffer = workload.inputs()[i];
      given.push_back(lower::Tensor::zeros(buffer->dtype, buffer->shape));
      EXPECT_EQ(given.back().data.size(), bytes_of(call.inputs[i]));
      const auto& constant = graph.values[call.inputs[i]].constant;
      std::memcpy(given.back().data.data(), constant ? constant->data.data() : place(call.inputs[i]),
                  given.back().data.size());
    }
    const auto computed = lower::evaluate(workload, given);
    TS_CHECK(computed.ok(), computed.ok() ? "" : computed.error().message());
    for (size_t o = 0; o < call.outputs.size(); ++o)
      std::memcpy(place(call.outputs[o]), (*computed)[o].data.data(), (*computed)[o].data.size());
  }
  std::vector<lower::Tensor> outputs;
  for (const ValueId id : graph.outputs) {
    const Value& value = graph.values[id];
    outputs.push_back(lower::Tensor::zeros(value.dtype, value.shape));
    std::memcpy(outputs.back().data.data(), place(id), outputs.back().data.size());
  }
  return outputs;
}

// Splits the batch and compares with the graph's nodes, evaluated one by one.
void expect_splits(Graph graph, int64_t parts) {
  auto whole = partition(graph);
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  Rng rng(3);
  std::vector<lower::Tensor> inputs;
  for (const ValueId id : graph.inputs) inputs.push_back(random(graph.values[id], rng));
  const auto expected = evaluate(graph, inputs);
  ASSERT_TRUE(expected.ok());
  Partition split = *whole;
  ASSERT_TRUE(split_batch(graph, split, parts));
  EXPECT_EQ(split.calls.size(), whole->calls.size() * static_cast<size_t>(parts));
  int calls = 0;
  for (const Task& task : split.tasks) calls += task.calls;
  EXPECT_EQ(static_cast<size_t>(calls), split.calls.size());
  const auto got = run(graph, split, inputs);
  for (size_t o = 0; o < got.size(); ++o) {
    for (int64_t i = 0; i < got[o].num_elements(); ++i)
      ASSERT_NEAR(got[o].at(i).f, (*expected)[o].at(i).f, 1e-5) << o << " " << i;
  }
}

bool splits(Graph graph, int64_t parts) {
  auto whole = partition(graph);
  TS_CHECK(whole.ok(), "not partitioned");
  const size_t values = graph.values.size();
  const bool done = split_batch(graph, *whole, parts);
  EXPECT_TRUE(done || graph.values.size() == values);
  return done;
}

ValueId random_constant(GraphBuilder& b, std::vector<int64_t> shape) {
  Rng rng(5);
  return b.constant(lower::random_tensor(ir::DType::kF32, std::move(shape), rng));
}

// Two convolutions, a residual and a pool, then a product. The outputs are those of the product and
// the pool.
Graph network(int64_t batch) {
  GraphBuilder b;
  const ValueId x = b.input({batch, 4, 8, 8});
  const std::map<std::string, Attribute> same{{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  const ValueId first = b.node("Relu", {b.node("Conv", {x, random_constant(b, {4, 4, 3, 3})}, same)});
  const ValueId second =
      b.node("Add", {b.node("Conv", {first, random_constant(b, {4, 4, 3, 3})}, same), first});
  const ValueId pool =
      b.node("MaxPool", {second},
             {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  const ValueId flat = b.node("Reshape", {pool, b.integers({batch, 64})});
  const ValueId product = b.node("MatMul", {flat, random_constant(b, {64, 16})});
  return b.finish({pool, product});
}

TEST(SplitBatch, Convolutions) {
  for (const int64_t parts : {2, 3, 6}) expect_splits(network(6), parts);
}

TEST(SplitBatch, PartsUseOneArena) {
  Graph graph = network(6);
  auto split = partition(graph);
  ASSERT_TRUE(split.ok());
  const int64_t before = plan_memory(graph, *split).arena_bytes;
  ASSERT_TRUE(split_batch(graph, *split, 6));
  EXPECT_EQ(plan_memory(graph, *split).arena_bytes * 6, before);
  // The offset of a part's images in an output; task names contain the shape of a part.
  EXPECT_EQ(split->storage_offset[split->calls.back().outputs[0]], 5 * 16 * 4);
  EXPECT_EQ(split->tasks.back().name, "matmul_1x16_r64");
}

TEST(SplitBatch, SequencesWithAClassToken) {
  const auto tokens = [](bool equal) {
    GraphBuilder b;
    const ValueId x = b.input({4, 7, 16});
    std::vector<double> token;
    for (int i = 0; i < 64; ++i) token.push_back(equal ? i % 16 : i);
    const ValueId all = b.node("Concat", {b.floats({4, 1, 16}, token), x}, {{"axis", int64_t{1}}});
    const ValueId scores =
        b.node("MatMul", {all, b.node("Transpose", {all}, {{"perm", std::vector<int64_t>{0, 2, 1}}})});
    const ValueId rows = b.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
    return b.finish({b.node("MatMul", {rows, all})});
  };
  expect_splits(tokens(true), 2);
  expect_splits(tokens(true), 4);
  EXPECT_FALSE(splits(tokens(false), 2));
}

TEST(SplitBatch, WhatStaysWhole) {
  EXPECT_FALSE(splits(network(6), 1));
  EXPECT_FALSE(splits(network(6), 4));
  EXPECT_FALSE(splits(network(6), 12));
  {  // images meet
    GraphBuilder b;
    const ValueId x = b.input({4, 16});
    EXPECT_FALSE(splits(b.finish({b.node("Softmax", {x}, {{"axis", int64_t{0}}})}), 2));
  }
  {  // inputs without a common batch
    GraphBuilder b;
    const ValueId x = b.input({4, 16}), y = b.input({1, 16});
    EXPECT_FALSE(splits(b.finish({b.node("Add", {x, y})}), 2));
  }
  {  // parts of 12 elements begin where no kernel's buffer may
    GraphBuilder b;
    const ValueId x = b.input({4, 6});
    EXPECT_FALSE(splits(b.finish({b.node("Relu", {x})}), 2));
  }
}

TEST(SplitBatch, TheFewestBytes) {
  Graph graph = network(6);
  const auto whole = partition(graph);
  ASSERT_TRUE(whole.ok());
  // A convolution reads and writes 1 KiB per image.
  EXPECT_EQ(parts_of_batch(graph, *whole, 12 << 10), 1);
  EXPECT_EQ(parts_of_batch(graph, *whole, (12 << 10) - 1), 2);
  EXPECT_EQ(parts_of_batch(graph, *whole, 4 << 10), 3);
  EXPECT_EQ(parts_of_batch(graph, *whole, 2 << 10), 6);
  // Nothing fits the cache, so loading the weights again would gain nothing.
  EXPECT_EQ(parts_of_batch(graph, *whole, 256), 1);
}

}  // namespace
}  // namespace tensorsmith::graph::split_batch_test
