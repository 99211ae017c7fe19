// A transformer encoder layer (attention, layer normalization, GELU) and attentions of random
// sizes, compiled untuned and run, and compared with the reference evaluation of the imported
// graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "../graph/onnx_model_builder.h"
#include "cli_support.h"
#include "engine/model/compile_model.h"
#include "graph/evaluate.h"
#include "runtime/model.h"

namespace tensorsmith::tools::encoder_test {
namespace {

constexpr int64_t kRows = 10, kHidden = 24, kHeads = 3, kInner = 40;
constexpr int64_t kHeadSize = kHidden / kHeads;

// The layer as exporters write it: with LayerNormalization as one node, or as means and elementwise
// nodes.
class Encoder {
 public:
  explicit Encoder(bool fused_normalization) : fused_(fused_normalization) {
    model_.input("x", {1, kRows, kHidden}).input("mask", {1, 1, 1, kRows}).output("y");
    const std::string query = heads(linear("x", kHidden, kHidden), {0, 2, 1, 3});
    const std::string key = heads(linear("x", kHidden, kHidden), {0, 2, 3, 1});
    const std::string value = heads(linear("x", kHidden, kHidden), {0, 2, 1, 3});
    const std::string scaled =
        node("Div", {node("MatMul", {query, key}), scalar(std::sqrt(float(kHeadSize)))});
    const std::string weights = node("Softmax", {node("Add", {scaled, "mask"})});
    model_.integer("axis", -1);
    const std::string mixed = node("Transpose", {node("MatMul", {weights, value})});
    model_.ints("perm", {0, 2, 1, 3});
    const std::string joined = node("Reshape", {mixed, integers({1, kRows, kHidden})});
    const std::string attended = normalize(node("Add", {linear(joined, kHidden, kHidden), "x"}));
    const std::string wide = linear(attended, kHidden, kInner);
    const std::string error = node("Erf", {node("Div", {wide, scalar(std::sqrt(2.0F))})});
    const std::string gelu = node("Mul", {node("Mul", {wide, node("Add", {error, scalar(1)})}), scalar(0.5)});
    const std::string sum = node("Add", {linear(gelu, kInner, kHidden), attended});
    model_.node("Identity", {normalize(sum)}, {"y"});
  }

  std::string bytes() const { return model_.bytes(); }

 private:
  std::string name() { return "v" + std::to_string(names_++); }
  std::string node(const std::string& op, const std::vector<std::string>& inputs) {
    const std::string result = name();
    model_.node(op, inputs, {result});
    return result;
  }
  std::string constant(const std::vector<int64_t>& shape, float scale, float offset = 0) {
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    std::vector<float> values;
    for (int64_t i = 0; i < n; ++i)
      values.push_back(offset + scale * static_cast<float>(rng_.uniform() * 2 - 1));
    const std::string result = name();
    model_.initializer(result, shape, values);
    return result;
  }
  std::string scalar(float value) { return constant({}, 0, value); }
  std::string integers(const std::vector<int64_t>& values) {
    const std::string result = name();
    model_.integers(result, values);
    return result;
  }
  std::string linear(const std::string& x, int64_t inputs, int64_t outputs) {
    const float scale = std::sqrt(3.0F / static_cast<float>(inputs));
    return node("Add", {node("MatMul", {x, constant({inputs, outputs}, scale)}), constant({outputs}, 0.5F)});
  }
  std::string heads(const std::string& x, const std::vector<int64_t>& permutation) {
    const std::string result =
        node("Transpose", {node("Reshape", {x, integers({1, kRows, kHeads, kHeadSize})})});
    model_.ints("perm", permutation);
    return result;
  }
  std::string mean(const std::string& x) {
    const std::string result = node("ReduceMean", {x});
    model_.ints("axes", {-1}).integer("keepdims", 1);
    return result;
  }
  std::string normalize(const std::string& x) {
    const std::string scale = constant({kHidden}, 0.2F, 1), bias = constant({kHidden}, 0.2F);
    if (fused_) {
      const std::string result = node("LayerNormalization", {x, scale, bias});
      model_.integer("axis", -1).number("epsilon", 1e-5F);
      return result;
    }
    const std::string centred = node("Sub", {x, mean(x)});
    const std::string variance = mean(node("Pow", {centred, scalar(2)}));
    const std::string deviation = node("Sqrt", {node("Add", {variance, scalar(1e-5F)})});
    return node("Add", {node("Mul", {node("Div", {centred, deviation}), scale}), bias});
  }

  graph::testing::ModelBuilder model_;
  Rng rng_{20260102};
  bool fused_;
  int names_ = 0;
};

struct AlignedDelete {
  void operator()(std::byte* p) const { std::free(p); }
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedDelete>;

AlignedBytes aligned(size_t bytes) {
  return AlignedBytes(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

// kernel: a substring of the name of one of the model's kernels.
void check_model(const std::string& bytes, const std::string& kernel) {
  const auto imported = graph::import_onnx_bytes(bytes, {}, "model");
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  Rng rng(7);
  std::vector<lower::Tensor> inputs;
  for (graph::ValueId id : imported->inputs)
    inputs.push_back(lower::random_tensor(ir::DType::kF32, imported->values[id].shape, rng));
  const auto expected = graph::evaluate(*imported, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message();

  const testing::TemporaryDirectory directory;
  engine::ModelSource model;
  model.path = directory.file("model.onnx");
  std::ofstream(model.path, std::ios::binary) << bytes;
  const auto loaded = engine::load_model(model);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const auto& tasks = loaded->partition.tasks;
  EXPECT_TRUE(
      std::any_of(tasks.begin(), tasks.end(),
                  [&](const graph::Task& task) { return task.name.find(kernel) != std::string::npos; }))
      << "no kernel " << kernel;
  for (int threads : {1, 2}) {
    const auto device = target::find_device("local:threads=" + std::to_string(threads));
    ASSERT_TRUE(device.ok()) << device.error().message();
    const auto schedules = engine::default_schedules(loaded->partition, *device);
    ASSERT_TRUE(schedules.ok()) << schedules.error().message();
    engine::CompileOptions options;
    options.directory = directory.file("compiled" + std::to_string(threads));
    options.model_name = "model";
    const Status compiled = engine::compile_model(*loaded, *device, *schedules, options);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message();
    runtime::LoadOptions load_options;
    load_options.threads = threads;
    const auto program = runtime::Model::load(options.directory, load_options);
    ASSERT_TRUE(program.ok()) << program.error().message();
    std::vector<AlignedBytes> memory;
    std::vector<const void*> in;
    for (const auto& tensor : inputs) {
      memory.push_back(aligned(tensor.data.size()));
      std::copy(tensor.data.begin(), tensor.data.end(), memory.back().get());
      in.push_back(memory.back().get());
    }
    const lower::Tensor& want = expected->front();
    memory.push_back(aligned(want.data.size()));
    const auto* got = reinterpret_cast<const float*>(memory.back().get());
    const std::vector<void*> out{memory.back().get()};
    ASSERT_TRUE((*program)->run(in, out).ok());
    for (int64_t i = 0; i < want.num_elements(); ++i)
      ASSERT_NEAR(got[i], want.at(i).f, 2e-5) << "element " << i << ", " << threads << " threads";
  }
}

class EncoderLayer : public ::testing::TestWithParam<bool> {};

TEST_P(EncoderLayer, MatchesTheReference) { check_model(Encoder(GetParam()).bytes(), "softmax"); }

// Queries, keys and values with random extents, and random operations on the scores.
std::string random_attention(Rng& rng) {
  const int64_t heads = rng.uniform_int(1, 4), queries = rng.uniform_int(100, 400);
  const int64_t keys = (int64_t{1} << 18) / (heads * queries) + rng.uniform_int(1, 100);
  const int64_t depth = rng.uniform_int(2, 40), width = rng.uniform_int(2, 70);
  const int64_t mask = rng.uniform_int(0, 3);
  graph::testing::ModelBuilder model;
  model.input("q", {1, heads, queries, depth}).input("v", {1, heads, keys, width}).output("y");
  // Keys are given transposed, or a node transposes them.
  if (rng.bernoulli(0.5)) {
    model.input("k", {1, heads, depth, keys});
  } else {
    model.input("rows", {1, heads, keys, depth})
        .node("Transpose", {"rows"}, {"k"})
        .ints("perm", {0, 1, 3, 2});
  }
  model.initializer("scale", {}, std::vector<float>{static_cast<float>(std::sqrt(depth))});
  model.node("MatMul", {"q", "k"}, {"scores"}).node("Div", {"scores", "scale"}, {"scaled"});
  if (mask == 1) {
    model.input("padding", {1, 1, 1, keys}).node("Add", {"padding", "scaled"}, {"seen"});
  } else if (mask == 2) {
    std::vector<float> hidden(static_cast<size_t>(queries * keys), 0);
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t j = i + 1; j < keys; ++j) hidden[static_cast<size_t>(i * keys + j)] = -1e9F;
    model.initializer("causal", {1, 1, queries, keys}, hidden).node("Add", {"scaled", "causal"}, {"seen"});
  } else if (mask == 3) {
    model.input("bias", {1, heads, queries, keys}).initializer("few", {}, std::vector<float>{-1e4F});
    model.initializer("zero", {}, std::vector<float>{0}).node("Less", {"bias", "zero"}, {"hides"});
    model.node("Where", {"hides", "few", "scaled"}, {"seen"});
  }
  model.node("Softmax", {mask == 0 ? "scaled" : "seen"}, {"p"}).integer("axis", -1);
  return model.node("MatMul", {"p", "v"}, {"y"}).bytes();
}

TEST(Attention, OfRandomSizesMatchesTheReference) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    check_model(random_attention(rng), "softmax_matmul");
    if (::testing::Test::HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Normalization, EncoderLayer, ::testing::Bool(),
                         [](const auto& test) { return std::string(test.param ? "OneNode" : "Decomposed"); });

}  // namespace
}  // namespace tensorsmith::tools::encoder_test
