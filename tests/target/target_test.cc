#include "target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "target/device_files.h"

namespace tensorsmith::target {
namespace {

using ::testing::HasSubstr;

// Looks for a word in the flags line that the kernel prints: a second opinion on CPUID.
bool kernel_reports(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("flags")) return (line + " ").find(" " + flag + " ") != std::string::npos;
  return false;
}

TEST(Registry, HasEveryKnownDeviceOnceAndSortedByName) {
  std::vector<std::string> names;
  for (const Device& d : registry()) names.push_back(d.name);
  EXPECT_THAT(names, ::testing::ElementsAre("a100", "e5-2673v4", "epyc-7452", "graviton2", "h100", "h200",
                                            "k80", "mi50", "p100", "t4", "v100", "xeon-8272cl", "xeon-8358"));
}

TEST(Registry, PeakFollowsFromCoresClockAndWidth) {
  for (const Device& d : registry()) {
    const double lanes = d.vector_bytes / 4.0;
    const double peak = d.cores * d.clock_ghz * d.fma_per_cycle * 2 * lanes;
    EXPECT_NEAR(d.peak_f32_gflops, peak, 0.01 * peak) << d.name;
    EXPECT_GT(d.memory_bandwidth_gbs, 0) << d.name;
    EXPECT_GT(d.l2_bytes, d.l1_bytes) << d.name;
    if (d.kind == DeviceKind::kGpu) {
      EXPECT_GT(d.warp_size, 0) << d.name;
      EXPECT_GT(d.shared_memory_per_block, 0) << d.name;
    } else {
      EXPECT_EQ(d.warp_size, 0) << d.name;
    }
  }
}

TEST(Registry, KeysAreDistinctAndIgnoreNamesAndFeatureOrder) {
  std::set<std::string> keys;
  for (const Device& d : registry()) EXPECT_TRUE(keys.insert(d.key()).second) << d.name;
  Device d = find_device("xeon-8358").value();
  const std::string key = d.key();
  EXPECT_EQ(key.size(), 32u);
  d.name = "other";
  d.description.clear();
  std::swap(d.features.front(), d.features.back());
  EXPECT_EQ(d.key(), key);
  d.cores = 1;
  EXPECT_NE(d.key(), key);
}

TEST(Registry, KeysAreStable) {
  // Records store these: a change of the hash orphans them.
  Device d;
  d.arch = "x86-64";
  d.cpu = "znver5";
  d.features = {"+avx512f"};
  EXPECT_EQ(d.key(), "2db447d3cd3c48ac9dd2faab4a676304");
}

TEST(DeviceFile, RejectsUnknownAttributesAndWrongTypes) {
  EXPECT_THAT(parse_device("[1]", "x.json").error().message(), HasSubstr("x.json: not a JSON object"));
  EXPECT_THAT(parse_device("{\"name\": ", "x.json").error().message(), HasSubstr("not a JSON object"));
  EXPECT_THAT(parse_device(R"({"nam": "a"})", "x").error().message(), HasSubstr("unknown attribute 'nam'"));
  EXPECT_THAT(parse_device(R"({"cores": "a"})", "x").error().message(),
              HasSubstr("'cores' has the wrong type"));
  EXPECT_THAT(parse_device(R"({"name": "a", "arch": "x", "features": ["avx"]})", "x").error().message(),
              HasSubstr("'avx' does not start with"));
  const Result<Device> incomplete = parse_device(R"({"name": "a"})", "x");
  EXPECT_EQ(incomplete.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(incomplete.error().message(), HasSubstr("required"));
}

TEST(FindDevice, OptionsAndErrors) {
  const Device full = find_device("epyc-7452").value();
  const Device four = find_device("epyc-7452:threads=4").value();
  EXPECT_EQ(four.cores, 4);
  EXPECT_DOUBLE_EQ(four.peak_f32_gflops * 8, full.peak_f32_gflops);
  EXPECT_NE(four.key(), full.key());

  const Result<Device> unknown = find_device("epyc");
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message(), HasSubstr("local, a100, e5-2673v4"));
  EXPECT_THAT(find_device("v100:threads=2").error().message(), HasSubstr("CPUs only"));
  EXPECT_THAT(find_device("epyc-7452:threads=33").error().message(), HasSubstr("has 32 cores"));
  EXPECT_THAT(find_device("epyc-7452:threads=0").error().message(), HasSubstr("not a positive number"));
  EXPECT_THAT(find_device("epyc-7452:threads=2x").error().message(), HasSubstr("not a positive number"));
  EXPECT_THAT(find_device("epyc-7452:turbo").error().message(), HasSubstr("options are isa="));
  EXPECT_EQ(find_device("epyc-7452:isa=avx512").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(find_device("graviton2:isa=avx2").error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(find_device("xeon-8358:isa=mmx").error().message(), HasSubstr("unknown instruction set 'mmx'"));
}

TEST(WithIsa, WeakerLevelsDropFeaturesAndPeak) {
  const Device full = find_device("xeon-8358").value();
  const Device avx2 = find_device("xeon-8358:isa=avx2").value();
  const Device sse = find_device("xeon-8358:isa=sse4.2").value();
  EXPECT_TRUE(full.has_feature("avx512vl"));
  EXPECT_FALSE(avx2.has_feature("avx512vl"));
  EXPECT_THAT(avx2.features, ::testing::Contains("-avx512f"));
  EXPECT_TRUE(avx2.has_feature("fma"));
  EXPECT_FALSE(sse.has_feature("fma"));
  EXPECT_TRUE(sse.has_feature("sse4.2"));
  EXPECT_EQ(avx2.vector_bytes, 32);
  EXPECT_EQ(avx2.vector_registers, 16);
  EXPECT_EQ(sse.vector_bytes, 16);
  EXPECT_DOUBLE_EQ(full.peak_f32_gflops / avx2.peak_f32_gflops, 2);
  EXPECT_DOUBLE_EQ(avx2.peak_f32_gflops / sse.peak_f32_gflops, 4);
  EXPECT_EQ(find_device("xeon-8358:isa=avx512").value().key(), full.key());
}

TEST(Probe, AgreesWithTheKernel) {
  const Result<Device> probed = probe_local();
  ASSERT_TRUE(probed.ok()) << probed.error().message();
  const Device& d = *probed;
  EXPECT_EQ(d.name, "local");
  EXPECT_GE(d.cores, 1);
  EXPECT_GE(d.l1_bytes, 8 << 10);
  EXPECT_GE(d.l2_bytes, d.l1_bytes);
  EXPECT_EQ(d.key(), probe_local().value().key());
#if defined(__x86_64__)
  EXPECT_EQ(d.arch, "x86-64");
  for (const auto& [feature, flag] :
       std::initializer_list<std::pair<std::string, std::string>>{{"avx", "avx"},
                                                                  {"avx2", "avx2"},
                                                                  {"fma", "fma"},
                                                                  {"f16c", "f16c"},
                                                                  {"sse4.2", "sse4_2"},
                                                                  {"bmi2", "bmi2"},
                                                                  {"lzcnt", "abm"},
                                                                  {"avx512f", "avx512f"},
                                                                  {"avx512bw", "avx512bw"},
                                                                  {"avx512vl", "avx512vl"},
                                                                  {"avx512vnni", "avx512_vnni"},
                                                                  {"avx512vbmi2", "avx512_vbmi2"},
                                                                  {"avx512bf16", "avx512_bf16"},
                                                                  {"avxvnni", "avx_vnni"}}) {
    EXPECT_EQ(d.has_feature(feature), kernel_reports(flag)) << feature;
  }
#endif
  const Result<Device> too_many = probe_local(d.cores + 1);
  EXPECT_EQ(too_many.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(probe_local(1).value().cores, 1);
}

}  // namespace
}  // namespace tensorsmith::target
