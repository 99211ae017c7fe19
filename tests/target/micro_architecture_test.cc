#include "target/micro_architecture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace tensorsmith::target::micro_architecture_test {
namespace {

using Features = std::vector<std::string_view>;

constexpr std::string_view kIntel = "GenuineIntel";
constexpr std::string_view kAmd = "AuthenticAMD";

// Returns the features of a known device and `more`.
Features features_of(std::string_view device, const Features& more = {}) {
  Features out;
  for (const Device& d : registry()) {
    if (d.name != device) continue;
    for (const std::string& f : d.features)
      if (f[0] == '+') out.push_back(std::string_view(f).substr(1));
  }
  EXPECT_FALSE(out.empty()) << device;
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

bool is_level_of_x86_64(std::string_view name) { return name.starts_with("x86-64"); }

bool has_rates(std::string_view name) {
  const CoreRates rates = known_rates(name);
  return rates.fma_latency > 0 && rates.reorder_buffer > 0 && rates.l3_bytes_per_cycle > 0 &&
         rates.l2_ways > 0;
}

TEST(MicroArchitecture, IntelModels) {
  struct Case {
    int model;
    const char* device;  // a device with the processor's features
    const char* name;
  };
  const Case cases[] = {
      {0x1a, "atom-x6425e", "nehalem"},
      {0x2c, "atom-x6425e", "westmere"},
      {0x2d, "atom-x6425e", "sandybridge"},
      {0x3e, "atom-x6425e", "ivybridge"},
      {0x3f, "e5-2680v3", "haswell"},
      {0x4f, "e5-2673v4", "broadwell"},
      {0x9e, "core-i9-10900k", "skylake"},
      {0xa5, "core-i9-10900k", "skylake"},
      {0x55, "xeon-8180", "skylake-avx512"},
      {0x55, "xeon-6248", "cascadelake"},
      {0x6a, "xeon-8358", "icelake-server"},
      {0x7e, "xeon-8358", "icelake-client"},
      {0x8c, "xeon-8358", "tigerlake"},
      {0xa7, "core-i9-11900k", "rocketlake"},
      {0x8f, "xeon-8480plus", "sapphirerapids"},
      {0xcf, "xeon-8592plus", "emeraldrapids"},
      {0xad, "xeon-6980p", "graniterapids"},
      {0xae, "xeon-6980p", "graniterapids"},
      {0x97, "core-i9-12900k", "alderlake"},
      {0xb7, "core-i9-12900k", "raptorlake"},
      {0xaa, "core-i9-12900k", "meteorlake"},
      {0xc5, "core-i9-12900k", "arrowlake"},
      {0xc6, "core-i9-12900k", "arrowlake-s"},
      {0xbd, "core-i9-12900k", "lunarlake"},
      {0xcc, "core-i9-12900k", "pantherlake"},
      {0x37, "atom-x6425e", "silvermont"},
      {0x5c, "atom-x6425e", "goldmont"},
      {0x7a, "atom-x6425e", "goldmont-plus"},
      {0x96, "atom-x6425e", "tremont"},
      {0xbe, "core-i3-n305", "gracemont"},
      {0xaf, "xeon-6780e", "sierraforest"},
      {0xb6, "xeon-6780e", "grandridge"},
      {0xdd, "xeon-6780e", "clearwaterforest"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(micro_architecture({kIntel, 6, c.model, features_of(c.device)}), c.name) << c.model;
  EXPECT_EQ(micro_architecture({kIntel, 6, 0x55, features_of("xeon-6248", {"avx512bf16"})}), "cooperlake");
}

TEST(MicroArchitecture, AmdFamilies) {
  struct Case {
    int family, model;
    const char* device;
    const char* name;
  };
  const Case cases[] = {
      {0x17, 0x01, "epyc-7452", "znver1"},   {0x17, 0x18, "epyc-7452", "znver1"},
      {0x17, 0x31, "epyc-7452", "znver2"},   {0x17, 0x71, "epyc-7452", "znver2"},
      {0x19, 0x01, "epyc-7763", "znver3"},   {0x19, 0x21, "ryzen-5950x", "znver3"},
      {0x19, 0x50, "ryzen-5950x", "znver3"}, {0x19, 0x11, "epyc-9654", "znver4"},
      {0x19, 0x61, "ryzen-7950x", "znver4"}, {0x19, 0xa0, "epyc-9654", "znver4"},
      {0x1a, 0x02, "epyc-9755", "znver5"},   {0x1a, 0x44, "ryzen-9950x", "znver5"},
      {0x1b, 0x00, "epyc-9755", "znver5"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(micro_architecture({kAmd, c.family, c.model, features_of(c.device)}), c.name)
        << c.family << " " << c.model;
}

// Virtual machines may report a model that is older than the features.
TEST(MicroArchitecture, AModelThatFeaturesContradictIsNotBelieved) {
  const auto rocket_lake = [](const Features& features) {
    return micro_architecture({kIntel, 6, 0xa7, features});
  };
  EXPECT_EQ(rocket_lake(features_of("xeon-6980p", {"amx-fp16", "prefetchi"})), "graniterapids");
  EXPECT_EQ(rocket_lake(features_of("xeon-6980p", {"amx-fp16"})), "graniterapids");
  // AMX is hidden.
  EXPECT_EQ(rocket_lake(features_of("xeon-6980p", {"prefetchi"})), "graniterapids");
  EXPECT_EQ(rocket_lake(features_of("xeon-8480plus")), "sapphirerapids");

  EXPECT_EQ(micro_architecture({kIntel, 6, 0x8f, features_of("xeon-6980p", {"prefetchi"})}), "graniterapids");
  EXPECT_EQ(micro_architecture({kIntel, 6, 0x3f, features_of("xeon-8358")}), "icelake-server");
  EXPECT_EQ(micro_architecture({kIntel, 6, 0x55, features_of("xeon-8358")}), "icelake-server");
  EXPECT_EQ(micro_architecture({kIntel, 6, 0x97, features_of("xeon-8480plus")}), "sapphirerapids");
  EXPECT_EQ(micro_architecture({kAmd, 0x17, 0x01, features_of("epyc-7452", {"clwb"})}), "znver2");
  EXPECT_EQ(micro_architecture({kAmd, 0x17, 0x31, features_of("epyc-7763")}), "znver3");
  EXPECT_EQ(micro_architecture({kAmd, 0x19, 0x01, features_of("epyc-9654")}), "znver4");
  EXPECT_EQ(micro_architecture({kAmd, 0x19, 0x11, features_of("epyc-9755")}), "znver5");
}

// Virtual machines hide features; the model may still be right.
TEST(MicroArchitecture, HiddenFeaturesDoNotContradictAModel) {
  EXPECT_EQ(micro_architecture({kIntel, 6, 0x6a, features_of("e5-2673v4")}), "icelake-server");
  EXPECT_EQ(micro_architecture({kIntel, 6, 0x3f, {"sse4.2"}}), "haswell");
  EXPECT_EQ(micro_architecture({kAmd, 0x19, 0x11, features_of("epyc-7763")}), "znver4");
}

TEST(MicroArchitecture, UnknownModelsAreNamedByFeatures) {
  const auto intel = [](const Features& features) {
    const std::string_view name = micro_architecture({kIntel, 6, 0xff, features});
    // Unknown families are named in the same way.
    EXPECT_EQ(micro_architecture({kIntel, 19, 1, features}), name);
    return name;
  };
  EXPECT_EQ(intel(features_of("xeon-6980p", {"amx-fp16"})), "graniterapids");
  EXPECT_EQ(intel(features_of("xeon-8480plus")), "sapphirerapids");
  EXPECT_EQ(intel(features_of("xeon-6248", {"avx512bf16"})), "cooperlake");
  EXPECT_EQ(intel(features_of("xeon-8358")), "icelake-server");
  EXPECT_EQ(intel(features_of("xeon-6248")), "cascadelake");
  EXPECT_EQ(intel(features_of("xeon-8180")), "skylake-avx512");
  EXPECT_EQ(intel(features_of("core-i9-12900k")), "alderlake");
  EXPECT_EQ(intel(features_of("core-i9-10900k")), "skylake");
  EXPECT_EQ(intel(features_of("e5-2680v3")), "haswell");
  EXPECT_EQ(intel(features_of("atom-x6425e")), "x86-64-v2");

  const auto amd = [](const Features& features) { return micro_architecture({kAmd, 0x15, 0x65, features}); };
  EXPECT_EQ(amd(features_of("epyc-9755")), "znver5");
  EXPECT_EQ(amd(features_of("epyc-9654")), "znver4");
  EXPECT_EQ(amd(features_of("epyc-7763")), "znver3");
  EXPECT_EQ(amd(features_of("epyc-7452", {"clwb"})), "znver2");
  EXPECT_EQ(amd(features_of("epyc-7452")), "znver1");
  EXPECT_EQ(amd({"sse4.2", "avx", "avx2", "fma"}), "x86-64-v3") << "Excavator";
  EXPECT_EQ(amd({"sse4.2", "avx", "fma"}), "x86-64-v2");
}

TEST(MicroArchitecture, OtherVendorsGetLevelsOfX86_64) {
  for (const std::string_view vendor : {"HygonGenuine", "  Shanghai  ", "CentaurHauls", ""}) {
    // These families and models are those of processors of Intel and AMD.
    for (const int family : {6, 0x17, 0x18, 0x19}) {
      EXPECT_EQ(micro_architecture({vendor, family, 1, features_of("xeon-8358")}), "x86-64-v4");
      EXPECT_EQ(micro_architecture({vendor, family, 1, features_of("epyc-7452")}), "x86-64-v3");
      EXPECT_EQ(micro_architecture({vendor, family, 1, features_of("atom-x6425e")}), "x86-64-v2");
      EXPECT_EQ(micro_architecture({vendor, family, 1, {}}), "x86-64");
    }
  }
}

TEST(MicroArchitecture, FmasACycle) {
  const ProcessorId fma{kIntel, 6, 0, {"fma"}};
  struct Case {
    const char* name;
    double of_32_bytes, of_64_bytes;
  };
  for (const Case& c : {Case{"icelake-client", 2, 1}, Case{"tigerlake", 2, 1}, Case{"rocketlake", 2, 1},
                        Case{"znver4", 2, 1}, Case{"skylake-avx512", 2, 2}, Case{"icelake-server", 2, 2},
                        Case{"graniterapids", 2, 2}, Case{"znver5", 2, 2}, Case{"x86-64-v4", 2, 2}}) {
    EXPECT_EQ(fma_per_cycle(fma, c.name, 32), c.of_32_bytes) << c.name;
    EXPECT_EQ(fma_per_cycle(fma, c.name, 64), c.of_64_bytes) << c.name;
  }
  for (const char* name :
       {"haswell", "skylake", "alderlake", "clearwaterforest", "znver2", "znver3", "x86-64-v3"})
    EXPECT_EQ(fma_per_cycle(fma, name, 32), 2) << name;
  for (const char* name : {"gracemont", "sierraforest", "znver1"}) {
    EXPECT_EQ(fma_per_cycle(fma, name, 32), 1) << name;
    EXPECT_EQ(fma_per_cycle(fma, name, 16), 2) << name;
  }
  for (const char* name : {"goldmont", "tremont", "nehalem", "sandybridge", "x86-64-v2"})
    EXPECT_EQ(fma_per_cycle({kIntel, 6, 0, {"sse4.2"}}, name, 16), 1) << name;
  // Turin, Strix Point.
  EXPECT_EQ(fma_per_cycle({kAmd, 0x1a, 0x02, {"fma"}}, "znver5", 64), 2);
  EXPECT_EQ(fma_per_cycle({kAmd, 0x1a, 0x24, {"fma"}}, "znver5", 64), 1);
  EXPECT_EQ(fma_per_cycle({kAmd, 0x1a, 0x24, {"fma"}}, "znver5", 32), 2);
}

TEST(MicroArchitecture, DeviceFilesHaveTheSameFmas) {
  for (const Device& d : registry()) {
    if (d.arch != "x86-64") continue;
    EXPECT_EQ(fma_per_cycle({"", 0, 0, features_of(d.name)}, d.processor, d.cpu().vector_bytes),
              d.cpu().fma_per_cycle)
        << d.name;
  }
}

// All models of all families, with the features of each known device.
TEST(MicroArchitecture, EachNameHasRates) {
  std::vector<Features> features = {{}, {"sse4.2"}, {"sse4.2", "avx"}};
  for (const Device& d : registry()) {
    if (d.arch != "x86-64") continue;
    features.push_back(features_of(d.name));
    features.push_back(features_of(d.name, {"clwb", "prefetchi", "avx512bf16"}));
  }
  std::set<std::string_view> names;
  for (const Features& f : features) {
    for (int model = 0; model < 256; ++model) {
      for (const int family : {6, 15, 19}) names.insert(micro_architecture({kIntel, family, model, f}));
      for (const int family : {0x10, 0x15, 0x17, 0x19, 0x1a, 0x1b})
        names.insert(micro_architecture({kAmd, family, model, f}));
    }
  }
  EXPECT_GT(names.size(), 35u);
  for (const std::string_view name : names) EXPECT_TRUE(is_level_of_x86_64(name) || has_rates(name)) << name;
  EXPECT_FALSE(has_rates("x86-64-v3"));
  EXPECT_FALSE(has_rates("cortex-a53"));
}

TEST(MicroArchitecture, RatesAreThoseOfTheNearestRelative) {
  EXPECT_EQ(known_rates("raptorlake").reorder_buffer, known_rates("alderlake").reorder_buffer);
  EXPECT_EQ(known_rates("goldmont").reorder_buffer, known_rates("tremont").reorder_buffer);
  EXPECT_EQ(known_rates("tigerlake").l2_ways, known_rates("icelake-server").l2_ways);
  EXPECT_EQ(known_rates("graniterapids").loads_per_cycle, 1.6);
}

TEST(MicroArchitecture, ProductsWithoutFmas) {
  // With FMA, a product takes one instruction.
  EXPECT_EQ(products_per_cycle(find_device("xeon-8480plus").value()), 2);
  EXPECT_EQ(products_per_cycle(find_device("epyc-9654").value()), 1);
  EXPECT_EQ(products_per_cycle(find_device("graviton3").value()),
            find_device("graviton3").value().fma_per_cycle());
  // Without FMA, additions have their own pipes, or share those of multiplications.
  EXPECT_EQ(products_per_cycle(find_device("xeon-8480plus:isa=sse4.2").value()), 1.5);
  EXPECT_EQ(products_per_cycle(find_device("epyc-9654:isa=sse4.2").value()), 1.5);
  EXPECT_EQ(products_per_cycle(find_device("xeon-6248:isa=sse4.2").value()), 1);
}

#if defined(__x86_64__)
TEST(Probe, ProcessorsOfIntelAndAmdHaveRates) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const bool known = text.find(kIntel) != std::string::npos || text.find(kAmd) != std::string::npos;
  const Device local = probe_local().value();
  if (!known || !local.has_feature("avx2")) GTEST_SKIP() << "an unknown vendor, or no AVX2";
  EXPECT_FALSE(is_level_of_x86_64(local.processor)) << local.processor;
  EXPECT_TRUE(has_rates(local.processor)) << local.processor;
  EXPECT_EQ(local.cpu().rates.reorder_buffer, known_rates(local.processor).reorder_buffer);
}
#endif

}  // namespace
}  // namespace tensorsmith::target::micro_architecture_test
