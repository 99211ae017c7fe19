// Golden models with the importer, the passes and the reference interpreter. tests/tools compiles
// them.
#include "onnx_golden.h"

#include <gtest/gtest.h>

#include "graph/evaluate.h"
#include "onnx_testdata.h"

namespace tensorsmith::graph::onnx_golden_test {
namespace {

TEST(GoldenModels, MatchOnnxRuntime) {
  for (const testing::GoldenCase& c : testing::golden_cases()) {
    SCOPED_TRACE(c.name);
    ImportOptions options;
    options.bounded = c.bounded;
    auto graph = import_onnx_bytes(c.model, options, c.name);
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    for (const bool optimized : {false, true}) {
      if (optimized) {
        ASSERT_TRUE(optimize(*graph).ok());
      }
      const auto outputs = evaluate(*graph, c.inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message();
      ASSERT_EQ(outputs->size(), c.outputs.size());
      for (size_t i = 0; i < outputs->size(); ++i)
        EXPECT_EQ(testing::difference((*outputs)[i], c.outputs[i], 1e-5, 2e-6), "") << "output " << i;
    }
  }
}

}  // namespace
}  // namespace tensorsmith::graph::onnx_golden_test
