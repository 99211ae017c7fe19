// A small deterministic part of what fuzz/fuzz_onnx_import does: damaged models are rejected and
// never cause a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "graph/evaluate.h"
#include "onnx_golden.h"
#include "onnx_model_builder.h"

namespace tensorsmith::graph::onnx_mutation_test {
namespace {

void import_damaged(const std::string& bytes, bool bounded = false) {
  ImportOptions options;
  options.bounded = bounded;
  options.max_constant_bytes = 16 << 20;
  auto graph = import_onnx_bytes(bytes, options, "damaged.onnx");
  if (!graph.ok()) {
    EXPECT_FALSE(graph.error().reason.empty());
    return;
  }
  OptimizeOptions limits;
  limits.max_fold_cost = 1 << 10;
  limits.max_constant_bytes = 16 << 20;
  if (!optimize(*graph, limits).ok()) return;
  const auto workload = graph_workload(*graph);
  if (!workload.ok()) return;
  const Status status = ir::verify(workload->workload);
  EXPECT_TRUE(status.ok()) << status.error().message();
}

TEST(DamagedModels, BytesOfNodeCases) {
  const std::filesystem::path cases = "/usr/share/libonnx-testdata/data/node";
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << cases << " is absent; install libonnx-testdata";
  std::vector<std::filesystem::path> models;
  for (const auto& entry : std::filesystem::directory_iterator(cases))
    models.push_back(entry.path() / "model.onnx");
  std::sort(models.begin(), models.end());
  for (size_t m = 0; m < models.size(); ++m) {
    std::ifstream file(models[m], std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    Rng rng(m);
    SCOPED_TRACE(models[m].string() + ", seed " + std::to_string(m));
    for (int round = 0; round < 6; ++round) {
      std::string bytes = good;
      for (uint64_t k = rng.below(4) + 1; k > 0; --k)
        bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
      if (round == 0) bytes.resize(rng.below(bytes.size()));
      import_damaged(bytes);
    }
  }
}

// Bodies of loops, packed weights, attributes of attention, bounded results.
TEST(DamagedModels, BytesOfGoldenModels) {
  for (const testing::GoldenCase& c : testing::golden_cases()) {
    Rng rng(c.model.size());
    SCOPED_TRACE(c.name);
    for (int round = 0; round < 60; ++round) {
      std::string bytes = c.model;
      for (uint64_t k = rng.below(4) + 1; k > 0; --k)
        bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
      import_damaged(bytes, true);
    }
    onnx::ModelProto good;
    ASSERT_TRUE(good.ParseFromString(c.model));
    for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 33}) {
      // Changes one integer of the model at a time: attributes, then numbers in its constants.
      for (int changed = 0;; ++changed) {
        onnx::ModelProto model = good;
        int seen = 0;
        for (auto& node : *model.mutable_graph()->mutable_node()) {
          for (auto& attribute : *node.mutable_attribute()) {
            if (attribute.type() == onnx::AttributeProto::INT && seen++ == changed) attribute.set_i(value);
            for (int i = 0; i < attribute.ints_size(); ++i)
              if (seen++ == changed) attribute.set_ints(i, value);
          }
        }
        for (auto& initializer : *model.mutable_graph()->mutable_initializer())
          for (int i = 0; i < initializer.int64_data_size(); ++i)
            if (seen++ == changed) initializer.set_int64_data(i, value);
        if (seen <= changed) break;
        import_damaged(model.SerializeAsString(), true);
      }
    }
  }
}

// Attributes and shapes near the limits of 64 bits, where sums overflow.
TEST(DamagedModels, ExtremeAttributes) {
  const std::filesystem::path cases = "/usr/share/libonnx-testdata/data/node";
  if (!std::filesystem::exists(cases)) GTEST_SKIP() << cases << " is absent; install libonnx-testdata";
  std::vector<std::filesystem::path> models;
  for (const auto& entry : std::filesystem::directory_iterator(cases))
    models.push_back(entry.path() / "model.onnx");
  std::sort(models.begin(), models.end());
  for (const auto& path : models) {
    SCOPED_TRACE(path.string());
    onnx::ModelProto good;
    std::ifstream file(path, std::ios::binary);
    if (!good.ParseFromIstream(&file)) continue;
    for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 33}) {
      onnx::ModelProto model = good;
      for (auto& node : *model.mutable_graph()->mutable_node()) {
        for (auto& attribute : *node.mutable_attribute()) {
          if (attribute.type() == onnx::AttributeProto::INT) attribute.set_i(value);
          for (int i = 0; i < attribute.ints_size(); ++i) attribute.set_ints(i, value);
        }
      }
      import_damaged(model.SerializeAsString());
      model = good;
      for (auto& input : *model.mutable_graph()->mutable_input()) {
        auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
        for (auto& dim : *shape->mutable_dim()) dim.set_dim_value(value);
      }
      import_damaged(model.SerializeAsString());
    }
  }
}

}  // namespace
}  // namespace tensorsmith::graph::onnx_mutation_test
