// The generators that other tests rely on: their results are valid, deterministic, varied, and
// within the documented limits.
#include <gtest/gtest.h>

#include <set>

#include "ir/analysis.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::ir::support_test {
namespace {

TEST(Support, StandardWorkloadsVerify) {
  for (const Workload& w :
       {test::standard::matmul(3, 4, 5), test::standard::matmul(3, 4, 5, DType::kI8),
        test::standard::batch_matmul(2, 3, 4, 5), test::standard::dense_bias_relu(3, 4, 5),
        test::standard::conv2d({}), test::standard::conv2d({.pad = 0, .groups = 2}),
        test::standard::conv2d_bias_relu({.stride = 2}), test::standard::depthwise_conv2d({.dilation = 2}),
        test::standard::softmax(3, 5), test::standard::layernorm(3, 5),
        test::standard::max_pool(1, 2, 8, 8, 3, 2, 1), test::standard::elementwise_chain(9)}) {
    const Status s = verify(w);
    EXPECT_TRUE(s.ok()) << s.error().message();
  }
  EXPECT_EQ(flop_count(test::standard::conv2d({.pad = 0})), 2.0 * 4 * 6 * 6 * 4 * 9);
  EXPECT_EQ(test::standard::conv2d({.stride = 2}).outputs[0]->shape, (std::vector<int64_t>{1, 4, 4, 4}));
}

TEST(Support, RandomWorkloadsAreValidAndVaried) {
  std::set<std::string> kinds;
  int multi_output = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Workload w = test::random_workload(seed);
    const Status s = verify(w);
    ASSERT_TRUE(s.ok()) << "seed " << seed << ": " << s.error().message();
    ASSERT_FALSE(w.outputs.empty());
    multi_output += w.outputs.size() > 1 ? 1 : 0;
    for (const OperationRef& op : w.operations) {
      if (!op->is_placeholder()) kinds.insert(op->name.substr(0, op->name.find_first_of("0123456789")));
      EXPECT_LE(op->output()->num_elements(), 2048);
    }
    EXPECT_EQ(flop_count(w), flop_count(test::random_workload(seed)));
  }
  for (const char* kind : {"map",       "add",   "mul",     "sub",     "max",    "less",   "where",    "cast",
                           "matmul",    "conv",  "pool",    "pad",     "sum",    "prod",   "extremum", "arg",
                           "transpose", "slice", "reverse", "reshape", "concat", "gather", "logic"}) {
    EXPECT_EQ(kinds.count(kind), 1u) << kind;
  }
  EXPECT_GT(multi_output, 100);
}

}  // namespace
}  // namespace tensorsmith::ir::support_test
