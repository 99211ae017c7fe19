// The simulated profile compared with independent counts: lists of lines for the caches, programs
// whose counts follow from their text, and valgrind's cachegrind on the same code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <random>

#include "codegen/build.h"
#include "measure/profile/cache.h"
#include "measure/profile/child_process.h"
#include "measure/profile/memory_model.h"
#include "measure/profile/perf_events.h"
#include "measure/profile/simulate.h"
#include "support/standard_workloads.h"

namespace tensorsmith::measure::profile_test {
namespace {

// A cache set as a list of lines, the most recently used first.
class ListCache {
 public:
  ListCache(size_t sets, size_t ways) : ways_(ways), sets_(sets) {}
  bool access(uint64_t line) {
    std::list<uint64_t>& set = sets_[line % sets_.size()];
    const auto at = std::find(set.begin(), set.end(), line);
    const bool hit = at != set.end();
    if (hit) set.erase(at);
    set.push_front(line);
    if (set.size() > ways_) set.pop_back();
    return hit;
  }

 private:
  size_t ways_;
  std::vector<std::list<uint64_t>> sets_;
};

TEST(Cache, IsTheLeastRecentlyUsedOfEachSet) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int ways = 1 + static_cast<int>(random() % 16);
    const int sets = 1 + static_cast<int>(random() % 40);
    Cache cache({int64_t{64} * ways * sets, ways}, 64);
    ASSERT_EQ(cache.sets(), sets);
    ListCache expected(static_cast<size_t>(sets), static_cast<size_t>(ways));
    uint64_t line = 0;
    for (int i = 0; i < 20'000; ++i) {
      line = random() % 3 == 0 ? line + 1 : random() % (2U * static_cast<uint32_t>(ways * sets));
      ASSERT_EQ(cache.access(line, random() % 2 == 0).hit, expected.access(line)) << "access " << i;
    }
  }
}

TEST(Cache, OnlyLinesThatWereWrittenAreWrittenBack) {
  Cache cache({128, 2}, 64);  // one set of two lines
  EXPECT_FALSE(cache.access(1, true).hit);
  EXPECT_FALSE(cache.access(2, false).hit);
  const Cache::Outcome third = cache.access(3, false);
  EXPECT_TRUE(third.writes_back);
  EXPECT_EQ(third.victim, 1U);
  EXPECT_FALSE(cache.access(4, false).writes_back);
}

TEST(MemoryModel, CountsMissesInOrderAndLinesThatAreSplit) {
  CacheHierarchy caches;
  caches.levels = {CacheShape{1 << 12, 4}, CacheShape{1 << 14, 4}, CacheShape{0, 1}};
  MemoryModel model(caches, 2);
  for (uint64_t i = 0; i < 512; ++i) model.access(0, 4 * i, 4, true);  // 2 KiB in order
  for (uint64_t i = 0; i < 8; ++i) model.access(1, 1 << 20 | (192 * i), 4, false);
  model.access(1, (1 << 20) + 62, 4, false);
  const AccessCounts& in_order = model.by_site()[0];
  EXPECT_EQ(in_order.accesses, 512);
  EXPECT_EQ(in_order.misses[0], 32);
  EXPECT_EQ(in_order.misses[1], 32);
  EXPECT_EQ(in_order.misses[2], 0);  // the hierarchy has no such level
  EXPECT_EQ(in_order.in_order[0], 31);
  const AccessCounts& apart = model.by_site()[1];
  EXPECT_EQ(apart.misses[0], 9);
  EXPECT_EQ(apart.in_order[0], 0);
  EXPECT_EQ(apart.split, 1);
  EXPECT_EQ(in_order.pages + apart.pages, 2);
}

std::map<std::string, double> profile(const ir::Workload& workload, const sched::Trace& trace,
                                      const target::Device& device, int64_t most = int64_t{1} << 25) {
  auto counters = simulate(workload, trace, device, codegen::default_backend(), {.most_accesses = most});
  EXPECT_TRUE(counters.ok()) << (counters.ok() ? "" : counters.error().message());
  return counters.ok() ? *counters : std::map<std::string, double>();
}

target::Device local() {
  auto device = target::find_device("local:threads=1");
  EXPECT_TRUE(device.ok());
  return *device;
}

TEST(Simulation, CountsWhatFollowsFromTheProgram) {
  const auto workload = test::standard::matmul(16, 16, 16);
  const auto c = profile(workload, {}, local());
  // At least one load per multiply-add, and each output is written once.
  EXPECT_GE(c.at("bytes_loaded"), 4 * 4096);
  EXPECT_GE(c.at("bytes_stored"), 4 * 256);
  EXPECT_EQ(c.at("simulated_share"), 1);
  EXPECT_EQ(c.at("l1.misses"), 0);  // the previous run left all 3 KiB in the cache
  EXPECT_GE(c.at("instructions"), 4096);
  EXPECT_EQ(c.at("buffer_bytes"), 3 * 4 * 256);
}

TEST(Simulation, DataBeyondACacheMissInIt) {
  const auto workload = test::standard::elementwise_chain(1 << 16);
  target::Device device = local();
  device.l1_bytes = 32 << 10;
  device.l2_bytes = 4 << 20;
  device.l3_bytes = 16 << 20;
  const auto c = profile(workload, {}, device);
  const double lines = (c.at("bytes_loaded") + c.at("bytes_stored")) / 64;
  // Each stage walks through tensors larger than L1: every line misses in L1, and none in L2.
  EXPECT_NEAR(c.at("l1.misses"), lines, 8);
  EXPECT_EQ(c.at("l2.misses"), 0);
  EXPECT_NEAR(c.at("l1.misses_in_order"), c.at("l1.misses"), 0.02 * lines);
  EXPECT_NEAR(c.at("l1.written_back"), c.at("bytes_stored") / 64, 8);
}

TEST(Simulation, IsTheSameAgain) {
  const auto workload = test::standard::softmax(40, 100);
  EXPECT_EQ(profile(workload, {}, local()), profile(workload, {}, local()));
}

// The program is uniform: its second half behaves like its first.
TEST(Simulation, APartStandsForTheRest) {
  const auto workload = test::standard::matmul(64, 96, 128);
  target::Device device = local();
  device.l1_bytes = 16 << 10;
  const auto all = profile(workload, {}, device), part = profile(workload, {}, device, 400'000);
  EXPECT_EQ(all.at("simulated_share"), 1);
  EXPECT_LT(part.at("simulated_share"), 0.6);
  for (const char* exact : {"instructions", "accesses", "bytes_loaded"})
    EXPECT_EQ(part.at(exact), all.at(exact));
  EXPECT_NEAR(part.at("l1.misses"), all.at("l1.misses"), 0.1 * all.at("l1.misses"));
}

TEST(Simulation, ErrorsSayWhy) {
  const auto workload = test::standard::matmul(8, 8, 8);
  target::Device device = local();
  device.arch = "aarch64";
  device.processor.clear();
  device.features.clear();
  const auto other = simulate(workload, {}, device, codegen::default_backend(), {});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kUnsupported);
  const auto c = simulate(workload, {}, local(), **codegen::find_backend("c"), {});
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code, ErrorCode::kUnsupported);
}

TEST(ChildProcess, AnswersAndCrashesAndTakesTooLong) {
  const auto answer = in_child_process(10, [] { return std::map<std::string, double>{{"x", 0.1}}; });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->at("x"), 0.1);
  const auto crash = in_child_process(10, []() -> std::map<std::string, double> { std::abort(); });
  ASSERT_FALSE(crash.ok());
  EXPECT_EQ(crash.error().code, ErrorCode::kIllegal);
  const auto slow = in_child_process(0.1, []() -> std::map<std::string, double> {
    for (;;) ::pause();
  });
  ASSERT_FALSE(slow.ok());
  EXPECT_EQ(slow.error().code, ErrorCode::kTimeout);
}

TEST(PerfEvents, CountOrSayWhyNot) {
  const auto workload = test::standard::matmul(64, 64, 64);
  const auto counters = count_events(workload, {}, local(), codegen::default_backend(), 30);
  if (const Status there = check_perf_events(); !there.ok()) {
    ASSERT_FALSE(counters.ok());
    EXPECT_EQ(counters.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(counters.error().message(), there.error().message());
    return;
  }
  ASSERT_TRUE(counters.ok());
  EXPECT_GT(counters->at("instructions"), 0);
}

// Counts of valgrind's model for `runs` calls of the kernel: instructions, data accesses, L1
// misses.
struct Cachegrind {
  double instructions = 0, accesses = 0, misses = 0;
};
std::optional<Cachegrind> cachegrind(const std::string& library, const std::string& sizes, int runs) {
  const std::string command = std::string(
                                  "valgrind --tool=cachegrind --cache-sim=yes --D1=32768,8,64 "
                                  "--LL=8388608,16,64 --cachegrind-out-file=/dev/null " KERNEL_RUNNER " ") +
                              library + " " + std::to_string(runs) + " " + sizes + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  Cachegrind out;
  char line[512];
  const auto number = [](const char* text) {
    std::string digits;
    for (const char* c = std::strchr(text, ':') + 1; *c != '\0' && *c != '('; ++c)
      if (*c >= '0' && *c <= '9') digits += *c;
    return std::stod(digits);
  };
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    const std::string text = line;
    if (text.find("I refs:") != std::string::npos || text.find("I   refs:") != std::string::npos)
      out.instructions = number(line);
    if (text.find("D refs:") != std::string::npos || text.find("D   refs:") != std::string::npos)
      out.accesses = number(line);
    if (text.find("D1  misses:") != std::string::npos) out.misses = number(line);
  }
  const bool ran = ::pclose(pipe) == 0;
  return ran && out.instructions > 0 ? std::optional(out) : std::nullopt;
}

// Simulates the same code with another simulator. The cost of one call is the difference between
// many and few calls. Instruction counts differ a little, since blocks that code generation adds
// are counted as the blocks before them.
TEST(Simulation, AgreesWithCachegrind) {
  if (std::system("valgrind --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "valgrind is not there";
  auto device = target::find_device("local:isa=avx2:threads=1");
  if (!device.ok()) GTEST_SKIP() << device.error().message();
  // The target of valgrind's support of AVX2.
  device->processor = "haswell";
  device->features = {"+avx2", "+fma", "+avx", "+sse4.2"};
  device->l1_bytes = 32 << 10;
  device->l2_bytes = 8 << 20;
  device->l3_bytes = 0;
  const std::string library = ::testing::TempDir() + "/profiled_" + std::to_string(::getpid()) + ".so";
  for (const auto& workload : {test::standard::matmul(48, 160, 96), test::standard::softmax(64, 300),
                               test::standard::conv2d({.h = 14, .w = 14, .ci = 16, .co = 24})}) {
    const auto built = codegen::build(workload, {}, *device, codegen::default_backend(), {});
    ASSERT_TRUE(built.ok()) << built.error().message();
    const auto linked = codegen::default_backend().link({built->kernel.object});
    ASSERT_TRUE(linked.ok());
    std::ofstream(library, std::ios::binary)
        .write(linked->data(), static_cast<std::streamsize>(linked->size()));
    std::string sizes;
    for (const auto* list : {&built->lowered.program.inputs, &built->lowered.program.outputs})
      for (const ir::Buffer& b : *list)
        sizes += std::to_string(b->num_elements() * ir::bytes_of(b->dtype)) + " ";
    sizes += std::to_string(built->kernel.shared_workspace_bytes) + " " +
             std::to_string(built->kernel.thread_workspace_bytes);
    const auto few = cachegrind(library, sizes, 1), many = cachegrind(library, sizes, 3);
    std::remove(library.c_str());
    if (!few || !many) GTEST_SKIP() << "valgrind does not run this code";
    const auto c = profile(workload, {}, *device);
    const double operands =
        c.at("loads") + c.at("broadcasts") + c.at("stores") + c.at("spills") + c.at("reloads");
    EXPECT_NEAR(c.at("instructions"), (many->instructions - few->instructions) / 2,
                0.03 * c.at("instructions") + 50);
    EXPECT_NEAR(operands, (many->accesses - few->accesses) / 2, 0.03 * operands + 50);
    EXPECT_NEAR(c.at("l1.misses"), (many->misses - few->misses) / 2, 0.05 * c.at("l1.misses") + 20);
  }
}

}  // namespace
}  // namespace tensorsmith::measure::profile_test
