// Control flow, sequences, optionals and bounded results in the importer: names, options and
// rejected models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/evaluate.h"
#include "graph/regions.h"
#include "graph/tasks.h"
#include "onnx_golden.h"
#include "onnx_model_builder.h"
#include "onnx_testdata.h"

namespace tensorsmith::graph::control_flow_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ModelBuilder;
using testing::ramp;
using testing::tensor_of;

constexpr int kInt64 = 7, kBool = 9, kInt4 = 22;

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId id : graph.outputs) names.push_back(graph.values[id].name);
  return names;
}

void expect_refused(const ModelBuilder& model, const std::vector<std::string>& words, bool bounded = false) {
  ImportOptions options;
  options.bounded = bounded;
  const auto graph = model.import(options);
  ASSERT_FALSE(graph.ok());
  for (const std::string& word : words) EXPECT_THAT(graph.error().message(), HasSubstr(word));
}

// A loop of `turns` iterations whose body adds `step` to v.
ModelBuilder counting(int64_t turns, bool condition_known) {
  ModelBuilder body(17), m(17);
  body.input("i", {}, kInt64)
      .input("go", {}, kBool)
      .input("v", {1})
      .output("more")
      .output("w")
      .output("kept");
  body.initializer("step", {1}, {1}).node("Add", {"v", "step"}, {"w"}).node("Identity", {"w"}, {"kept"});
  if (condition_known) {
    body.node("Identity", {"go"}, {"more"});
  } else {
    body.initializer("limit", {}, {3}).node("Less", {"w", "limit"}, {"more"});
  }
  m.input("v", {1}).integers("most", {turns}).output("y").output("all");
  m.node("Loop", {"most", "", "v"}, {"y", "all"}).graph("body", body);
  return m;
}

TEST(ControlFlow, LoopOfKnownTurnsIsUnrolled) {
  const auto graph = counting(4, true).import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_THAT(output_names(*graph), ElementsAre("y", "all"));
  const auto outputs = evaluate(*graph, std::vector{tensor_of(ir::DType::kF32, {1}, {2})});
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ(testing::difference((*outputs)[0], tensor_of(ir::DType::kF32, {1}, {6}), 0, 0), "");
  EXPECT_EQ(testing::difference((*outputs)[1], tensor_of(ir::DType::kF32, {4, 1}, {3, 4, 5, 6}), 0, 0), "");
}

TEST(ControlFlow, LoopRefusals) {
  expect_refused(counting(int64_t{1} << 40, true),
                 {"Loop", "1099511627776 iterations", "too many to unroll"});
  expect_refused(counting(5000, false), {"Loop", "5000 iterations", "too many"}, true);
  expect_refused(counting(4, false), {"Loop", "the length of output 1 depends on it", "--bounded"});
  ModelBuilder run_time = counting(4, true);
  run_time.input("n", {}, kInt64);
  run_time.proto().mutable_graph()->mutable_node(0)->set_input(0, "n");
  expect_refused(run_time, {"Loop", "input 0 (trip count) must be constant"});
  ModelBuilder none = counting(0, true);
  expect_refused(none, {"there is no iteration"});
  ModelBuilder broken = counting(4, true);
  broken.proto().mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_g()->clear_output();
  expect_refused(broken, {"Loop", "too few outputs"});
}

// A loop whose body adds 1 to v as long as v < 30, at most `most` times. Without `most`, only the condition ends it.
ModelBuilder climbing(bool counted) {
  ModelBuilder body(17), m(17);
  body.input("i", {}, kInt64).input("go", {}, kBool).input("v", {1}).output("more").output("w");
  body.initializer("step", {1}, {1}).node("Add", {"v", "step"}, {"w"});
  body.initializer("limit", {}, {30}).node("Less", {"w", "limit"}, {"more"});
  m.input("v", {1}).output("y");
  if (counted) m.input("most", {}, kInt64);
  m.node("Loop", {counted ? "most" : "", "", "v"}, {"y"}).graph("body", body);
  return m;
}

size_t regions_of(const Graph& graph) {
  return std::ranges::count_if(graph.nodes, [](const Node& node) { return node.region != nullptr; });
}

float first_output(const Graph& graph, const std::vector<lower::Tensor>& inputs) {
  const auto outputs = evaluate(graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.error().message();
  return outputs.ok() ? static_cast<float>((*outputs)[0].at(0).f) : -1;
}

TEST(ControlFlow, LongLoopsAreRegions) {
  const auto v = [](double x) { return tensor_of(ir::DType::kF32, {1}, {x}); };
  const auto known = counting(1000, true).import();
  ASSERT_TRUE(known.ok()) << known.error().message();
  EXPECT_EQ(regions_of(*known), 1);
  EXPECT_EQ(first_output(*known, {v(2)}), 1002);

  const auto endless = climbing(false).import();
  ASSERT_TRUE(endless.ok()) << endless.error().message();
  EXPECT_EQ(regions_of(*endless), 1);
  EXPECT_EQ(first_output(*endless, {v(2)}), 30);
  EXPECT_EQ(first_output(*endless, {v(77)}), 78);

  // The largest integer is an exporter's way to say that only the condition ends the loop.
  ModelBuilder largest = climbing(true);
  largest.proto().mutable_graph()->mutable_node(0)->set_input(0, "largest");
  largest.proto().mutable_graph()->mutable_input()->RemoveLast();
  largest.integers("largest", {std::numeric_limits<int64_t>::max()});
  auto unlimited = largest.import();
  ASSERT_TRUE(unlimited.ok()) << unlimited.error().message();
  EXPECT_EQ(first_output(*unlimited, {v(2)}), 30);
  const auto parts = partition(*unlimited);
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  ASSERT_EQ(parts->regions.size(), 1u);
  EXPECT_EQ(parts->regions[0].turns, 0);

  const auto counted = climbing(true).import();
  ASSERT_TRUE(counted.ok()) << counted.error().message();
  const auto most = [](double n) { return tensor_of(ir::DType::kI64, {}, {n}); };
  EXPECT_EQ(first_output(*counted, {v(2), most(5)}), 7);
  EXPECT_EQ(first_output(*counted, {v(2), most(0)}), 2);
  EXPECT_EQ(first_output(*counted, {v(2), most(500)}), 30);
}

// For devices whose models cannot have regions.
TEST(ControlFlow, RegionsAreTheSameUnrolled) {
  auto known = counting(300, true).import();
  ASSERT_TRUE(known.ok()) << known.error().message();
  ASSERT_EQ(regions_of(*known), 1);
  const auto unrolled = unroll_regions(*known, true);
  ASSERT_TRUE(unrolled.ok()) << unrolled.error().message();
  EXPECT_EQ(regions_of(*known), 0);
  EXPECT_EQ(first_output(*known, {tensor_of(ir::DType::kF32, {1}, {2})}), 302);

  auto endless = climbing(false).import();
  ASSERT_TRUE(endless.ok());
  const auto refused = unroll_regions(*endless, true);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("only supported on processors"));
}

// The model compiles, and a note tells of the branch.
TEST(ControlFlow, ABranchThatDoesNotFitIsANote) {
  ModelBuilder yes(17), no(17), m(17);
  yes.output("a").integers("shape", {3, 3}).node("Reshape", {"x", "shape"}, {"r"}).node("Relu", {"r"}, {"a"});
  no.output("b").node("Relu", {"x"}, {"b"});
  for (int i = 0; i < 5; ++i) {
    const std::string from = i == 0 ? "b0" : "c" + std::to_string(i), to = "c" + std::to_string(i + 1);
    if (i == 0) no.node("Neg", {"x"}, {"b0"});
    no.node("Neg", {from}, {to});
  }
  m.input("c", {}, kBool).input("x", {4}).output("y");
  m.node("If", {"c"}, {"y"}).graph("then_branch", yes).graph("else_branch", no);
  const auto graph = m.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  ASSERT_EQ(graph->notes.size(), 1u);
  EXPECT_THAT(graph->notes[0], HasSubstr("the then branch of"));
  const auto x = tensor_of(ir::DType::kF32, {4}, {1, -2, 3, -4});
  const auto condition = [](double c) { return tensor_of(ir::DType::kBool, {}, {c}); };
  EXPECT_FALSE(evaluate(*graph, std::vector{condition(1), x}).ok());
  const auto taken = evaluate(*graph, std::vector{condition(0), x});
  ASSERT_TRUE(taken.ok()) << taken.error().message();
  EXPECT_EQ(testing::difference((*taken)[0], tensor_of(ir::DType::kF32, {4}, {1, 0, 3, 0}), 0, 0), "");
}

TEST(ControlFlow, ALoopThatNeverEndsIsRefused) {
  ModelBuilder m = counting(4, true);
  m.proto().mutable_graph()->mutable_node(0)->set_input(0, "");
  m.proto().mutable_graph()->mutable_output()->RemoveLast();
  m.proto().mutable_graph()->mutable_node(0)->mutable_output()->RemoveLast();
  m.proto()
      .mutable_graph()
      ->mutable_node(0)
      ->mutable_attribute(0)
      ->mutable_g()
      ->mutable_output()
      ->RemoveLast();
  expect_refused(m, {"Loop", "it never ends"});
}

TEST(ControlFlow, BranchesOfDifferentShapesNeedAConstantCondition) {
  ModelBuilder yes(17), no(17), m(17);
  yes.output("a").node("Relu", {"x"}, {"a"});
  no.output("b").integers("shape", {2, 2}).node("Reshape", {"x", "shape"}, {"b"});
  m.input("c", {}, kBool).input("x", {4}).output("y");
  m.node("If", {"c"}, {"y"}).graph("then_branch", yes).graph("else_branch", no);
  expect_refused(m, {"If", "must be constant", "f32[4] or f32[2,2]"});
  ImportOptions options;
  options.constant_inputs["c"] = tensor_of(ir::DType::kBool, {}, {0});
  const auto graph = m.import(options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_THAT(output_names(*graph), ElementsAre("y"));
  EXPECT_THAT(graph->values[graph->outputs[0]].shape, ElementsAre(2, 2));
}

// An output of a branch that is an input of the model, and one value with two names.
TEST(ControlFlow, OutputsKeepTheirNames) {
  ModelBuilder yes(17), m(17);
  yes.output("x").output("a").output("a").node("Relu", {"x"}, {"a"});
  m.input("x", {4}).output("p").output("q").output("r");
  m.raw("c", {}, kBool, "\x01");
  m.node("If", {"c"}, {"p", "q", "r"}).graph("then_branch", yes);
  const auto graph = m.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_THAT(output_names(*graph), ElementsAre("p", "q", "r"));
  EXPECT_EQ(graph->values[graph->inputs[0]].name, "x");
}

TEST(Sequences, AreListsOfTensors) {
  ModelBuilder m(17);
  m.input("x", {5, 2}).integers("two", {2}).integers("one", {1}).output("s").output("joined").output("n");
  m.proto().mutable_graph()->mutable_initializer(0)->clear_dims();
  m.proto().mutable_graph()->mutable_initializer(1)->clear_dims();
  m.node("SplitToSequence", {"x", "two"}, {"parts"});
  m.node("SequenceAt", {"parts", "one"}, {"middle"});
  m.node("SequenceErase", {"parts", "one"}, {"rest"});
  m.node("SequenceInsert", {"rest", "middle"}, {"s"});
  m.node("ConcatFromSequence", {"s"}, {"joined"}).integer("axis", 0);
  m.node("SequenceLength", {"s"}, {"n"});
  const auto graph = m.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_THAT(output_names(*graph), ElementsAre("s[0]", "s[1]", "s[2]", "joined", "n"));
  const auto outputs = evaluate(*graph, std::vector{ramp({5, 2})});
  ASSERT_TRUE(outputs.ok());
  EXPECT_THAT((*outputs)[1].shape, ElementsAre(1, 2));
  const auto x = ramp({5, 2});
  std::vector<double> expected;
  for (int row : {0, 1, 4, 2, 3})
    for (int c : {0, 1}) expected.push_back(x.at(row * 2 + c).f);
  EXPECT_EQ(testing::difference((*outputs)[3], tensor_of(ir::DType::kF32, {5, 2}, expected), 0, 0), "");
  EXPECT_EQ((*outputs)[4].at(0).i, 3);
}

ModelBuilder of_sequence() {
  ModelBuilder m(17);
  auto* input = m.proto().mutable_graph()->add_input();
  input->set_name("s");
  input->mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
      1);
  m.output("y").node("ConcatFromSequence", {"s"}, {"y"}).integer("axis", 0);
  return m;
}

TEST(Sequences, InputsAreNamedByElement) {
  expect_refused(of_sequence(), {"open: 's' (a sequence of tensors 's[0]', 's[1]', ...)"});
  ImportOptions options;
  options.shapes["s[0]"] = {1, 2};
  options.shapes["s[1]"] = {3, 2};
  const auto graph = of_sequence().import(options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_THAT(testing::input_names(*graph), ElementsAre("s[0]", "s[1]"));
  EXPECT_THAT(graph->values[graph->outputs[0]].shape, ElementsAre(4, 2));
  options.shapes["s[3]"] = {3, 2};
  EXPECT_FALSE(of_sequence().import(options).ok());  // there is no s[2]
}

TEST(Optionals, AreThereUnlessAbsent) {
  ModelBuilder m(17);
  auto* input = m.proto().mutable_graph()->add_input();
  input->set_name("o");
  auto* type = input->mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_tensor_type();
  type->set_elem_type(1);
  type->mutable_shape()->add_dim()->set_dim_value(3);
  ModelBuilder yes(17), no(17);
  yes.output("a").node("OptionalGetElement", {"o"}, {"a"});
  no.output("b").initializer("b", {3}, {1, 2, 3});
  m.output("y").node("OptionalHasElement", {"o"}, {"has"});
  m.node("If", {"has"}, {"y"}).graph("then_branch", yes).graph("else_branch", no);
  const auto given = m.import();
  ASSERT_TRUE(given.ok()) << given.error().message();
  EXPECT_EQ(given->inputs.size(), 1U);
  ImportOptions options;
  options.absent = {"o"};
  const auto absent = m.import(options);
  ASSERT_TRUE(absent.ok()) << absent.error().message();
  EXPECT_TRUE(absent->inputs.empty());
  options.absent = {"x"};
  EXPECT_THAT(m.import(options).error().message(), HasSubstr("'x' is given as absent"));
}

ModelBuilder selecting() {
  ModelBuilder m(17);
  m.input("x", {6}).output("y").node("NonZero", {"x"}, {"n"});
  return m;
}

// Nodes that would mix data and padding are rejected; without the option, so is the data-dependent
// node itself.
TEST(Bounded, PaddingDoesNotMix) {
  ModelBuilder plain = selecting();
  plain.node("Identity", {"n"}, {"y"});
  expect_refused(plain, {"NonZero", "--bounded"});
  ModelBuilder shape = selecting();
  shape.node("Shape", {"n"}, {"y"});
  expect_refused(shape, {"Shape", "reads 'n'", "depends on the data"}, true);
  ModelBuilder sum = selecting();
  sum.node("ReduceSum", {"n"}, {"y"});
  expect_refused(sum, {"ReduceSum", "reads 'n'"}, true);
  ModelBuilder scatter = selecting();
  scatter.initializer("u", {6}, {1, 2, 3, 4, 5, 6});
  scatter.node("Transpose", {"n"}, {"t"}).node("ScatterND", {"x", "t", "u"}, {"y"});
  expect_refused(scatter, {"ScatterND", "reads 't'"}, true);
  ModelBuilder joined = selecting();
  joined.integers("more", {1}).node("Squeeze", {"n"}, {"flat"});
  joined.node("Concat", {"flat", "more"}, {"y"}).integer("axis", 0);
  expect_refused(joined, {"Concat", "reads 'flat'"}, true);
  // Gather, casts and additions of numbers keep rows separate.
  ModelBuilder kept = selecting();
  kept.integers("one", {1}).node("Add", {"n", "one"}, {"m"}).node("Gather", {"x", "m"}, {"y"});
  // So do all reductions of other dimensions.
  ModelBuilder reduced(17);
  reduced.input("x", {2, 3}).output("y").node("NonZero", {"x"}, {"n"});
  reduced.node("ReduceProd", {"n"}, {"y"}).ints("axes", {0});
  ImportOptions options;
  options.bounded = true;
  for (const ModelBuilder* model : {&kept, &reduced}) {
    const auto graph = model->import(options);
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    EXPECT_THAT(output_names(*graph), ElementsAre("y", "y.count"));
  }
}

// So many flags that they are processed in blocks.
TEST(Bounded, ThousandsOfFlags) {
  ModelBuilder m(17);
  m.input("x", {40, 50}).output("y").node("NonZero", {"x"}, {"y"});
  ImportOptions options;
  options.bounded = true;
  const auto graph = m.import(options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  for (const int every : {1, 7, 999, 5000}) {
    lower::Tensor x = lower::Tensor::zeros(ir::DType::kF32, {40, 50});
    std::vector<int64_t> places;
    for (int64_t i = 0; i < 2000; ++i) {
      if (i % every != every / 2) continue;
      x.set(i, ir::scalar_float(ir::DType::kF32, 1));
      places.push_back(i);
    }
    const auto outputs = evaluate(*graph, std::vector{x});
    ASSERT_TRUE(outputs.ok());
    EXPECT_EQ((*outputs)[1].at(0).i, static_cast<int64_t>(places.size()));
    for (int64_t r = 0; r < 2000; ++r) {
      const bool there = r < static_cast<int64_t>(places.size());
      ASSERT_EQ((*outputs)[0].at(r).i, there ? places[static_cast<size_t>(r)] / 50 : -1) << every << " " << r;
      ASSERT_EQ((*outputs)[0].at(2000 + r).i, there ? places[static_cast<size_t>(r)] % 50 : -1);
    }
  }
}

// Neighbouring values that f64 cannot distinguish, and NaN, both as constants and at run time.
TEST(Bounded, UniqueTellsAllElementsApart) {
  const int64_t big = (int64_t{1} << 62) + 1;
  for (const bool known : {true, false}) {
    ModelBuilder m(17);
    if (known) {
      m.integers("x", {big, big - 1, big});
      m.initializer("f", {4}, {NAN, 1, NAN, -1});
    } else {
      m.input("x", {3}, kInt64).input("f", {4});
    }
    m.output("n")
        .output("g")
        .node("Unique", {"x"}, {"y", "", "n", ""})
        .node("Unique", {"f"}, {"z", "", "g", ""});
    ImportOptions options;
    options.bounded = true;
    const auto graph = m.import(options);
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    std::vector<lower::Tensor> inputs;
    if (!known) {
      inputs = {lower::Tensor::zeros(ir::DType::kI64, {3}),
                tensor_of(ir::DType::kF32, {4}, {NAN, 1, NAN, -1})};
      for (const int64_t i : {0, 1, 2})
        inputs[0].set(i, ir::scalar_int(ir::DType::kI64, i == 1 ? big - 1 : big));
    }
    const auto outputs = evaluate(*graph, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    EXPECT_EQ(testing::difference((*outputs)[0], tensor_of(ir::DType::kI64, {3}, {1, 0, 1}), 0, 0), "");
    EXPECT_EQ(testing::difference((*outputs)[1], tensor_of(ir::DType::kI64, {4}, {2, 1, 2, 0}), 0, 0), "");
  }
}

TEST(NarrowIntegers, OnlyQuantizationAndMovesTakeThem) {
  ModelBuilder m(21);
  m.raw("w", {3}, kInt4, std::string("\x98\x07", 2)).input("x", {3}, 3).output("y");
  m.node("Add", {"x", "w"}, {"y"});
  expect_refused(m, {"Add", "reads 'w'", "type int4"});
}

// The operator is expanded into nodes that become one kernel, with keys shared by heads and with
// few keys.
TEST(Attention, IsOneKernel) {
  for (const int64_t kv_heads : {4, 2}) {
    ModelBuilder m(23);
    m.input("q", {1, 4, 128, 16}).input("k", {1, kv_heads, 600, 16}).input("v", {1, kv_heads, 600, 16});
    m.output("y").node("Attention", {"q", "k", "v"}, {"y"}).integer("is_causal", 1).number("softcap", 5);
    auto graph = m.import();
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    ASSERT_TRUE(optimize(*graph).ok());
    const auto parts = partition(*graph);
    ASSERT_TRUE(parts.ok()) << parts.error().message();
    size_t attentions = 0;
    for (const Task& task : parts->tasks) {
      const auto products = std::count_if(
          task.workload.operations.begin(), task.workload.operations.end(), [](const ir::OperationRef& op) {
            return op->combiner == ir::Combiner::kSum && op->name.find("matmul") != std::string::npos;
          });
      attentions += products == 2 ? 1 : 0;
    }
    EXPECT_EQ(attentions, 1U) << kv_heads << " heads of keys";
    EXPECT_LE(parts->calls.size(), 2U);  // the other one transposes the keys
  }
}

TEST(Attention, BadShapesAreNamed) {
  ModelBuilder m(23);
  m.input("q", {1, 3, 7}).input("k", {1, 3, 6}).input("v", {1, 3, 6}).output("y");
  m.node("Attention", {"q", "k", "v"}, {"y"}).integer("q_num_heads", 2).integer("kv_num_heads", 2);
  expect_refused(m, {"Attention", "does not divide into 2 heads"});
}

}  // namespace
}  // namespace tensorsmith::graph::control_flow_test
