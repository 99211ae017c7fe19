// The features of this machine's processor, against what the compiler's library says.
#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <set>

namespace tensorsmith::cpu_features_test {
namespace {

TEST(CpuFeatures, AgreeWithTheCompiler) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  EXPECT_TRUE(cpu_has_feature("sse2"));
  EXPECT_EQ(cpu_has_feature("sse4.2"), __builtin_cpu_supports("sse4.2") != 0);
  EXPECT_EQ(cpu_has_feature("avx"), __builtin_cpu_supports("avx") != 0);
  EXPECT_EQ(cpu_has_feature("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpu_has_feature("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(cpu_has_feature("bmi2"), __builtin_cpu_supports("bmi2") != 0);
  EXPECT_EQ(cpu_has_feature("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(cpu_has_feature("avx512vl"), __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(cpu_has_feature("avx512vnni"), __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(cpu_has_feature("avx512bf16"), __builtin_cpu_supports("avx512bf16") != 0);
#endif
  EXPECT_FALSE(cpu_has_feature("no such feature"));
}

TEST(CpuFeatures, AreListedOnce) {
  std::set<std::string_view> names;
  for (const CpuFeature& feature : cpu_features()) {
    EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
    EXPECT_LE(feature.usable(), feature.reported) << feature.name;
  }
}

}  // namespace
}  // namespace tensorsmith::cpu_features_test
