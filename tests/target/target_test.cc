#include "target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "target/attributes.h"
#include "target/device_files.h"
#include "target/isa.h"
#include "target/probe_clock.h"
#include "target/probe_memory.h"
#include "target/probe_time.h"

namespace tensorsmith::target::target_test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// Looks for a word in the kernel's flags line, as a check of CPUID.
bool kernel_reports(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("flags")) return (line + " ").find(" " + flag + " ") != std::string::npos;
  return false;
}

TEST(Registry, HasTheDevicesOfTheDataSets) {
  std::set<std::string> names;
  for (const Device& d : registry()) EXPECT_TRUE(names.insert(d.name).second) << d.name;
  EXPECT_EQ(names.size(), device_files().size());
  for (const char* name : {"a100", "a100-pcie", "e5-2673v4", "epyc-7452", "graviton2", "h100", "h200", "k80",
                           "mi50", "p100", "t4", "v100", "xeon-8272cl", "xeon-8358"})
    EXPECT_TRUE(names.contains(name)) << name;
}

// Each file equals the output of `devices show`, so that a copy of it is a start for a new device.
TEST(Registry, FilesAreSortedNamedAndInTheFormatThatIsPrinted) {
  std::string before;
  for (const DeviceFile& file : device_files()) {
    const Result<Device> device = parse_device(file.text, file.name);
    ASSERT_TRUE(device.ok()) << device.error().message();
    EXPECT_LT(before, device->name);
    before = device->name;
    EXPECT_EQ(device->name + ".json", file.name);
    EXPECT_EQ(to_json(*device) + "\n", file.text) << "write it with `tensorsmith devices show FILE`";
    EXPECT_FALSE(device->description.empty()) << file.name;
    EXPECT_FALSE(device->sources.empty()) << file.name;
  }
}

// The single precision peak of a board as published by the vendor, in TFLOP/s.
TEST(Registry, PeaksAreThePublishedOnes) {
  const std::pair<const char*, double> published[] = {
      {"a10", 31.2},       {"a100", 19.5},  {"a100-80gb", 19.5}, {"a30", 10.3},         {"a40", 37.4},
      {"gtx1080ti", 11.3}, {"h100", 67},    {"h100-pcie", 51},   {"h200", 67},          {"l4", 30.3},
      {"l40s", 91.6},      {"mi100", 23.1}, {"mi210", 22.6},     {"mi250x-gcd", 23.95}, {"mi300x", 163.4},
      {"mi50", 13.3},      {"mi60", 14.7},  {"p100-sxm2", 10.6}, {"rtx2080ti", 13.4},   {"rtx3090", 35.6},
      {"rtx4090", 82.6},   {"t4", 8.1},     {"v100", 15.7},      {"v100-pcie", 14}};
  for (const auto& [name, tflops] : published)
    EXPECT_NEAR(find_device(name).value().peak_f32_gflops, 1e3 * tflops, 15 * tflops) << name;
}

// Ranges that hold for every device on the market since 2014; a wrong unit is outside.
TEST(Registry, FiguresArePlausible) {
  for (const Device& d : registry()) {
    const bool gpu = d.kind() == DeviceKind::kGpu;
    EXPECT_TRUE(check_device(d).ok()) << d.name;
    EXPECT_GT(d.clock_ghz, 0.5) << d.name;
    EXPECT_LT(d.boost_clock_ghz, 6) << d.name;
    EXPECT_GT(d.boost_clock_ghz, 0) << d.name;
    EXPECT_GE(d.l1_bytes, 16 << 10) << d.name;
    EXPECT_LE(d.l1_bytes, 256 << 10) << d.name;
    EXPECT_GE(d.l2_bytes, gpu ? 1 << 20 : 256 << 10) << d.name;
    EXPECT_LE(d.l2_bytes, gpu ? 128 << 20 : 4 << 20) << d.name;
    EXPECT_GE(d.memory_gb, 8) << d.name;
    EXPECT_LE(d.memory_gb, 1024) << d.name;
    // Flops per byte of memory traffic: 5 (GPUs of the K80's age) to 110 (L4, desktop CPUs). Small
    // cores with SSE alone, which share their memory with graphics, have 0.9.
    const double balance = d.peak_f32_gflops / d.memory_bandwidth_gbs;
    EXPECT_GT(balance, gpu ? 5 : 0.9) << d.name;
    EXPECT_LT(balance, 110) << d.name;
    // CPUs have at least one channel of DDR5-4800.
    EXPECT_GT(d.memory_bandwidth_gbs, gpu ? 200 : 38) << d.name;
    EXPECT_LT(d.memory_bandwidth_gbs, gpu ? 6000 : 700) << d.name;
    // L4: 420 GFLOP/s per watt.
    EXPECT_LT(d.peak_f32_gflops, 450 * d.power_watts + (d.power_watts == 0 ? 1e6 : 0)) << d.name;
    if (gpu) {
      EXPECT_TRUE(d.gpu().warp_size == 32 || d.gpu().warp_size == 64) << d.name;
      EXPECT_EQ(d.gpu().max_threads_per_core % d.gpu().warp_size, 0) << d.name;
      EXPECT_EQ(d.gpu().registers_per_core % 65536, 0) << d.name;
    } else {
      EXPECT_GT(d.l3_bytes, 0) << d.name;
      EXPECT_EQ(d.cpu().vector_bytes == 64, d.has_feature("avx512vl")) << d.name;
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
  // Rates, which only the choice among schedules uses, are no part of the key.
  d.cpu().rates.loads_per_cycle = 5;
  EXPECT_EQ(d.key(), key);
  d.cpu().cores = 1;
  EXPECT_NE(d.key(), key);
}

TEST(Registry, KeysAreStable) {
  // Records store these keys: a change of the hash orphans them.
  Device d;
  d.arch = "x86-64";
  d.processor = "znver5";
  d.features = {"+avx512f"};
  EXPECT_EQ(d.key(), "2db447d3cd3c48ac9dd2faab4a676304");
}

TEST(DeviceFile, RejectsUnknownAttributesAndWrongTypes) {
  EXPECT_THAT(parse_device("[1]", "x.json").error().message(), HasSubstr("x.json: not a JSON object"));
  EXPECT_THAT(parse_device("{\"name\": ", "x.json").error().message(), HasSubstr("not a JSON object"));
  EXPECT_THAT(parse_device(R"({"nam": "a"})", "x").error().message(), HasSubstr("unknown attribute 'nam'"));
  EXPECT_THAT(parse_device(R"({"cores": "a"})", "x").error().message(),
              HasSubstr("'cores' has the wrong type"));
  EXPECT_THAT(parse_device(R"({"cores": 4294967297})", "x").error().message(),
              HasSubstr("'cores' has the wrong type"));
  EXPECT_THAT(parse_device(R"({"kind": "tpu"})", "x").error().message(),
              HasSubstr("'kind' has the wrong type"));
  EXPECT_THAT(parse_device(R"({"name": "a", "arch": "x", "features": ["avx"]})", "x").error().message(),
              HasSubstr("'avx' does not start with"));
  EXPECT_THAT(parse_device(R"({"name": "a", "arch": "x", "memory_gb": -1})", "x").error().message(),
              HasSubstr("'memory_gb' is negative"));
  const Result<Device> incomplete = parse_device(R"({"name": "a"})", "x");
  EXPECT_EQ(incomplete.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(incomplete.error().message(), HasSubstr("required"));
}

TEST(DeviceFile, RejectsAttributesOfTheOtherKind) {
  EXPECT_THAT(parse_device(R"({"name": "a", "arch": "x", "warp_size": 32})", "x").error().message(),
              HasSubstr("attribute 'warp_size' does not apply to CPUs"));
  EXPECT_THAT(
      parse_device(R"({"name": "a", "arch": "x", "fma_latency": 4, "kind": "gpu"})", "x").error().message(),
      HasSubstr("attribute 'fma_latency' does not apply to GPUs"));
}

TEST(DeviceFile, NamesKeepTheirMeaningForBothKinds) {
  const Device gpu = find_device("v100").value(), cpu = find_device("epyc-7452").value();
  EXPECT_EQ(gpu.gpu().multiprocessors, 80);
  EXPECT_EQ(gpu.gpu().lanes, 64);
  EXPECT_EQ(gpu.gpu().registers_per_thread, 255);
  EXPECT_EQ(gpu.compute_units(), 80);
  EXPECT_EQ(gpu.register_bytes(), 4);
  EXPECT_EQ(cpu.compute_units(), cpu.cpu().cores);
  EXPECT_EQ(cpu.register_bytes(), cpu.cpu().vector_bytes);
  EXPECT_EQ(cpu.fma_per_cycle(), cpu.cpu().fma_per_cycle);
  EXPECT_THROW(static_cast<void>(gpu.cpu()), InternalError);
  EXPECT_THROW(static_cast<void>(cpu.gpu()), InternalError);
}

// The rate at which blocks start is no part of the key, since it changes no measurement.
TEST(DeviceFile, BlockStartCycles) {
  Device device = find_device("a100").value();
  const std::string key = device.key();
  EXPECT_EQ(device.gpu().block_start_cycles, 0) << "not stated";
  device.gpu().block_start_cycles = 1.5;
  const Device read = parse_device(to_json(device), "x").value();
  EXPECT_EQ(read.gpu().block_start_cycles, 1.5);
  EXPECT_EQ(read.key(), key);
}

TEST(Attributes, EachHasItsOwnPlace) {
  for (const char* name : {"epyc-7452", "v100"}) {
    Device device = find_device(name).value();
    std::set<const void*> places;
    for (const Attribute& a : attributes()) {
      const bool has =
          visit_value(a, device, [&](auto& value) { EXPECT_TRUE(places.insert(&value).second) << a.name; });
      EXPECT_EQ(has, a.applies_to(device.kind())) << a.name;
    }
  }
}

// The table of the page is made of the list.
TEST(Attributes, AreThoseOfThePage) {
  std::stringstream page;
  page << std::ifstream(TENSORSMITH_SOURCE_DIR "/docs/devices.md").rdbuf();
  EXPECT_NE(page.str().find("\n" + attribute_table() + "\n"), std::string::npos)
      << "docs/devices.md has another table than:\n"
      << attribute_table();
}

// The schema of `devices list --json` has each attribute with its type, unit and meaning, and what the command adds.
TEST(Attributes, AreThoseOfTheSchema) {
  Json properties = {{"key", {{"type", "string"}, {"description", "as in records"}}},
                     {"used_by", {{"type", "string"}, {"description", "commands that can use it"}}},
                     {"kind", {{"type", "string"}, {"enum", {"cpu", "gpu"}}}}};
  Device cpu, gpu;
  gpu.figures = GpuFigures{};
  for (const Attribute& a : attributes()) {
    Device& device = a.applies_to(DeviceKind::kCpu) ? cpu : gpu;
    visit_value(a, device, [&]<typename T>(const T&) {
      Json& property = properties[std::string(a.name)];
      property["description"] =
          std::string(a.meaning) + (a.unit.empty() ? "" : ", in " + std::string(a.unit));
      if constexpr (std::is_arithmetic_v<T>) {
        property["type"] = std::is_integral_v<T> ? "integer" : "number";
        property["minimum"] = 0;
      } else if constexpr (std::is_same_v<T, std::string>) {
        property["type"] = "string";
      } else {
        property["type"] = "array";
        property["items"] = {{"type", "string"}};
      }
    });
  }
  std::ifstream file(TENSORSMITH_SOURCE_DIR "/docs/schemas/devices_list.schema.json");
  EXPECT_EQ(Json::parse(file)["items"]["properties"], properties) << properties.dump(2);
}

TEST(DeviceFile, RejectsFiguresThatContradictEachOther) {
  const auto reason = [](const char* name, auto change) {
    Device d = find_device(name).value();
    change(d);
    const Status status = check_device(d);
    const std::string text = status.ok() ? "" : status.error().reason;
    // The reader of files applies the same check.
    EXPECT_EQ(parse_device(to_json(d), "x").ok(), status.ok());
    return text;
  };
  EXPECT_EQ(reason("v100", [](Device&) {}), "");
  EXPECT_THAT(reason("v100", [](Device& d) { d.peak_f32_gflops *= 2; }), HasSubstr("peak_f32_gflops is not"));
  EXPECT_THAT(reason("epyc-7452", [](Device& d) { d.cpu().cores = 64; }),
              HasSubstr("peak_f32_gflops is not"));
  EXPECT_THAT(reason("epyc-7452", [](Device& d) { d.l2_bytes = 16; }), HasSubstr("l2_bytes is less"));
  EXPECT_THAT(reason("epyc-7452", [](Device& d) { d.l3_bytes = 128; }), HasSubstr("l3_bytes is less"));
  EXPECT_THAT(reason("epyc-7452", [](Device& d) { d.boost_clock_ghz = 2; }),
              HasSubstr("clock_ghz is not between"));
  EXPECT_THAT(reason("epyc-7452", [](Device& d) { d.cpu().cores = 0; }), HasSubstr("must be positive"));
  EXPECT_THAT(reason("t4", [](Device& d) { d.gpu().warp_size = 0; }), HasSubstr("needs a warp_size"));
  EXPECT_THAT(reason("t4", [](Device& d) { d.gpu().shared_memory_per_block = 1 << 20; }),
              HasSubstr("a block's limit"));
}

TEST(FindDevice, OptionsAndErrors) {
  const Device full = find_device("epyc-7452").value();
  const Device four = find_device("epyc-7452:threads=4").value();
  EXPECT_EQ(four.cpu().cores, 4);
  EXPECT_DOUBLE_EQ(four.peak_f32_gflops * 8, full.peak_f32_gflops);
  EXPECT_NE(four.key(), full.key());

  // Data sets spell names in various ways.
  EXPECT_EQ(find_device("xeon8358").value().name, "xeon-8358");
  EXPECT_EQ(find_device("Xeon_8358:threads=2").value().cpu().cores, 2);

  const Result<Device> unknown = find_device("epyc");
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(unknown.error().message(), HasSubstr("local, a10, a100, a100-80gb"));
  EXPECT_THAT(find_device("v100:threads=2").error().message(), HasSubstr("CPUs only"));
  EXPECT_THAT(find_device("epyc-7452:threads=33").error().message(), HasSubstr("has 32 cores"));
  EXPECT_THAT(find_device("epyc-7452:threads=0").error().message(), HasSubstr("not a positive number"));
  EXPECT_THAT(find_device("epyc-7452:threads=2x").error().message(), HasSubstr("not a positive number"));
  EXPECT_THAT(find_device("epyc-7452:turbo").error().message(), HasSubstr("options are isa="));
  EXPECT_EQ(find_device("epyc-7452:isa=avx512").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(find_device("graviton2:isa=avx2").error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(find_device("xeon-8358:isa=mmx").error().message(), HasSubstr("unknown instruction set 'mmx'"));
  Device gpu = find_device("v100").value();
  gpu.arch = "x86-64";
  gpu.features = {"+fma"};
  EXPECT_EQ(with_isa(gpu, "avx2").error().code, ErrorCode::kUnsupported);
}

TEST(FindDevice, ReadsAFile) {
  const std::string path = ::testing::TempDir() + "board.json";
  Device board = find_device("epyc-7452").value();
  board.name = "board";
  std::ofstream(path) << to_json(board);
  const Result<Device> found = find_device(path + ":threads=8");
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->name, "board");
  EXPECT_EQ(found->cpu().cores, 8);
  EXPECT_EQ(find_device(path).value().key(), board.key());
  EXPECT_EQ(to_json(find_device(path).value()), to_json(board));
  std::ofstream(path) << "{";
  EXPECT_EQ(find_device(path).error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(find_device(path).error().message(), HasSubstr("board.json: not a JSON object"));
  EXPECT_EQ(find_device("./absent").error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(find_device(::testing::TempDir() + "/").ok());
}

TEST(WithIsa, LevelsAreFoundByWhatTheyNeed) {
  EXPECT_EQ(isa_names("|"), "avx512|avx2|sse4.2");
  EXPECT_EQ(isa_level(find_device("graviton2").value()), nullptr);
  for (const IsaLevel& level : isa_levels()) {
    const Device device = find_device("xeon-8480plus:isa=" + std::string(level.name)).value();
    EXPECT_EQ(isa_level(device), &level);
    EXPECT_EQ(device.cpu().vector_bytes, level.vector_bytes);
    EXPECT_EQ(device.cpu().vector_registers, level.vector_registers);
  }
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
  EXPECT_EQ(avx2.cpu().vector_bytes, 32);
  EXPECT_EQ(avx2.cpu().vector_registers, 16);
  EXPECT_EQ(sse.cpu().vector_bytes, 16);
  EXPECT_DOUBLE_EQ(full.peak_f32_gflops / avx2.peak_f32_gflops, 2);
  EXPECT_DOUBLE_EQ(avx2.peak_f32_gflops / sse.peak_f32_gflops, 4);
  EXPECT_EQ(find_device("xeon-8358:isa=avx512").value().key(), full.key());
  // Matrix units are above AVX-512.
  EXPECT_TRUE(has_matrix_dot4(find_device("xeon-8480plus").value()));
  const Device vectors = find_device("xeon-8480plus:isa=avx512").value();
  EXPECT_FALSE(has_matrix_dot4(vectors) || has_matrix_dot2(vectors));
  EXPECT_TRUE(has_dot2(vectors));
  EXPECT_THAT(vectors.features, ::testing::Contains("-amx-tile"));
  // Pipes of 128 bits: as many flops per cycle if a multiplication and an addition together take
  // both pipes.
  EXPECT_EQ(find_device("core-i3-n305:isa=sse4.2").value().cpu().fma_per_cycle, 1);
  // A device without FMA loses nothing.
  const Device small = find_device("atom-x6425e").value();
  EXPECT_DOUBLE_EQ(find_device("atom-x6425e:isa=sse4.2").value().peak_f32_gflops, small.peak_f32_gflops);
}

TEST(Probe, AgreesWithTheKernel) {
  const Result<Device> probed = probe_local();
  ASSERT_TRUE(probed.ok()) << probed.error().message();
  const Device& d = *probed;
  EXPECT_EQ(d.name, "local");
  EXPECT_GE(d.cpu().cores, 1);
  EXPECT_GE(d.l1_bytes, 8 << 10);
  EXPECT_GE(d.l2_bytes, d.l1_bytes);
  EXPECT_EQ(d.key(), probe_local().value().key());
  EXPECT_TRUE(check_device(d).ok()) << check_device(d).error().message();
  const Result<Device> printed = parse_device(to_json(d), "local");
  ASSERT_TRUE(printed.ok()) << printed.error().message();
  EXPECT_EQ(printed->key(), d.key());
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
                                                                  {"amx-tile", "amx_tile"},
                                                                  {"amx-int8", "amx_int8"},
                                                                  {"amx-bf16", "amx_bf16"},
                                                                  {"avxvnni", "avx_vnni"}}) {
    EXPECT_EQ(d.has_feature(feature), kernel_reports(flag)) << feature;
  }
#endif
  const Result<Device> too_many = probe_local(d.cpu().cores + 1);
  EXPECT_EQ(too_many.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(probe_local(1).value().cpu().cores, 1);
}

// A bound that any machine of the last decades meets under any load; it checks the unit of the
// figure.
TEST(Probe, MemoryBandwidthIsPlausible) {
  Device device = probe_local(1).value();
  device.l3_bytes = 0;  // a small buffer will do
  const double bandwidth = measure_memory_bandwidth(device);
  EXPECT_GT(bandwidth, 0.05);
  EXPECT_LT(bandwidth, 5000);
}

// The bound is wide, too: no present core is slower or faster.
TEST(Probe, ClockIsMeasuredOnce) {
  for (const char* spec : {"local:threads=1", "local"}) {
    const Device before = find_device(spec).value();
    const double clock = measure_clock_ghz(before);
    EXPECT_GT(clock, 0.2) << spec;
    EXPECT_LT(clock, 10) << spec;
    const Device after = with_measured_clock(before);
    if (before.clock_ghz == 0)
      continue;  // the system does not report the clock, so the peak is not known
                 // either
    EXPECT_TRUE(check_device(after).ok()) << check_device(after).error().message();
    EXPECT_GE(after.clock_ghz, before.clock_ghz);
    EXPECT_EQ(after.base_clock_ghz, before.clock_ghz);
    EXPECT_NEAR(after.peak_f32_gflops / before.peak_f32_gflops, after.clock_ghz / before.clock_ghz, 1e-9);
    EXPECT_EQ(with_measured_clock(after).clock_ghz, after.clock_ghz);
  }
  // The clock of a device file is not measured.
  EXPECT_EQ(with_measured_clock(find_device("xeon-8358").value()).clock_ghz,
            find_device("xeon-8358").value().clock_ghz);
}

#if defined(__x86_64__)
// A chain of multiplications tells the clock, too: each takes three cycles on all 64-bit processors of Intel
// and AMD since 2008, and no processor executes them while it renames registers, as some do with additions.
TEST(Probe, MeasuresTheClockAtWhichMultiplicationsRun) {
  constexpr uint64_t kSteps = 2'000'000;
  double least = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < 100; ++pass) {
    uint64_t x = 3, count = kSteps;
    const double start = thread_seconds();
    __asm__ volatile("1:\nimul %0, %0\nimul %0, %0\ndec %1\njnz 1b\n" : "+r"(x), "+r"(count) : : "cc");
    least = std::min(least, thread_seconds() - start);
  }
  const double expected = 6e-9 * kSteps / least;
  // Narrow vectors, for which no processor lowers its clock. The margin is for clocks that change meanwhile;
  // additions that cost nothing would show as twice the clock.
  EXPECT_NEAR(measure_clock_ghz(find_device("local:isa=sse4.2:threads=1").value()), expected,
              0.25 * expected);
}
#endif

TEST(Probe, CacheRetention) {
  EXPECT_EQ(retained_share(1, 1, 3), 1);
  EXPECT_EQ(retained_share(1, 2, 3), 0.5);
  EXPECT_EQ(retained_share(1, 3, 3), 0);
  EXPECT_EQ(retained_share(1, 9, 3), 0);    // disturbed
  EXPECT_EQ(retained_share(2, 1, 3), 1);    // the same
  EXPECT_EQ(retained_share(1, 1, 0.9), 1);  // no cache that could be lost
  // The share of this machine is not known; the test only checks that the measurement ends with a
  // valid share.
  const double share = measure_cache_retention(probe_local(1).value());
  EXPECT_TRUE(share >= 0 && share <= 1) << share;
}

}  // namespace
}  // namespace tensorsmith::target::target_test
