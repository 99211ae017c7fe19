// Quality figures that tests compare with thresholds. Learned models differ between processors
// (libtorch and OpenBLAS have separate code for each instruction set), so a threshold needs a
// margin: scripts/measure_thresholds runs tests with other seeds and instruction sets and prints
// the mean, the spread and the worst of each figure beside its threshold. A comment beside each
// threshold gives "mean +- standard deviation" over 5 seeds and ATen's and OpenBLAS's code for
// AVX-512, AVX2 and SSE.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace tensorsmith::test {

// Returns the seed, or a different one for each value of TENSORSMITH_TEST_SEED.
inline uint64_t test_seed(uint64_t seed) {
  const char* other = std::getenv("TENSORSMITH_TEST_SEED");
  return other == nullptr ? seed : seed + 1000 * std::strtoull(other, nullptr, 10);
}

inline void print_quality(const std::string& name, double value, const char* sign, double threshold) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::printf("[ QUALITY  ] %s.%s %s: %.6g %s %.6g\n", test->test_suite_name(), test->name(), name.c_str(),
              value, sign, threshold);
}

// name: without blanks.
inline void expect_above(const std::string& name, double value, double threshold) {
  print_quality(name, value, ">", threshold);
  EXPECT_GT(value, threshold) << name;
}
inline void expect_below(const std::string& name, double value, double threshold) {
  print_quality(name, value, "<", threshold);
  EXPECT_LT(value, threshold) << name;
}

}  // namespace tensorsmith::test
