#include "base/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/scratch_directory.h"

namespace tensorsmith::processors_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Numbers = std::vector<int>;

constexpr double kNone = std::numeric_limits<double>::infinity();

// A machine that is described by files.
class ProcessorFiles : public ::testing::Test {
 protected:
  ProcessorFiles()
      : root_(ScratchDirectory::create("tensorsmith-processors").value()),
        paths_{root_.file("sys"), root_.file("proc")} {}
  void write(const std::string& name, const std::string& text) const {
    const fs::path path = root_.file(name);
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  void siblings(int processor, const std::string& list) const {
    write("sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/thread_siblings_list",
          list + "\n");
  }
  // 8 processors in pairs: 0 and 4, 1 and 5, ...
  void eight_in_pairs() const {
    for (int i = 0; i < 8; ++i) siblings(i, std::to_string(i % 4) + "," + std::to_string(i % 4 + 4));
  }
  void cgroup(const std::string& lines) const { write("proc/self/cgroup", lines); }
  void v2(const std::string& folder, const std::string& max) const {
    write("sys/fs/cgroup" + folder + "/cpu.max", max + "\n");
  }
  void v1(const std::string& folder, const std::string& quota, const std::string& period) const {
    write("sys/fs/cgroup" + folder + "/cpu.cfs_quota_us", quota + "\n");
    write("sys/fs/cgroup" + folder + "/cpu.cfs_period_us", period + "\n");
  }
  Processors on(const Numbers& allowed) const { return processors_of(allowed, paths_); }
  Processors on_eight() const { return on({0, 1, 2, 3, 4, 5, 6, 7}); }

  ScratchDirectory root_;
  ProcessorPaths paths_;
};

TEST_F(ProcessorFiles, WithoutFilesEachProcessorIsACoreWithoutLimit) {
  const Processors p = on({1, 3, 5});
  EXPECT_THAT(p.allowed, ElementsAre(1, 3, 5));
  EXPECT_EQ(p.cores, p.allowed);
  EXPECT_EQ(p.physical_cores, 3);
  EXPECT_EQ(p.quota, kNone);
  EXPECT_EQ(p.at_once, 3);
  EXPECT_EQ(p.usable, 3);
  EXPECT_EQ(shortage(p), "");
}

TEST_F(ProcessorFiles, SiblingsAreOneCore) {
  eight_in_pairs();
  const Processors all = on_eight();
  EXPECT_THAT(all.cores, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_EQ(all.physical_cores, 4);
  EXPECT_EQ(all.at_once, 8);
  EXPECT_EQ(all.usable, 4);
  EXPECT_EQ(
      shortage(all),
      "this process sees 8 processors, which are hardware threads of 4 cores; the default is 4 threads");

  const Processors one_each = on({4, 5, 6});  // cores whose other threads are not allowed
  EXPECT_EQ(one_each.physical_cores, 3);
  EXPECT_EQ(one_each.usable, 3);
  EXPECT_EQ(shortage(one_each), "");

  for (int i = 0; i < 4; ++i) siblings(i, i < 2 ? "0-1" : "2-3");
  EXPECT_THAT(on({0, 1, 2, 3}).cores, ElementsAre(0, 0, 2, 2));
  EXPECT_EQ(on({1, 2, 3}).physical_cores, 2);
}

TEST_F(ProcessorFiles, WhatIsNoListIsACoreOfItsOwn) {
  siblings(0, "");
  siblings(1, "none");
  siblings(2, "7");
  siblings(3, "-1");
  EXPECT_THAT(on({0, 1, 2, 3}).cores, ElementsAre(0, 1, 2, 3));
}

TEST_F(ProcessorFiles, Version2TakesTheLeastOfAllAround) {
  cgroup("0::/user.slice/app.scope\n");
  EXPECT_EQ(on_eight().quota, kNone);
  v2("/user.slice/app.scope", "max 100000");
  EXPECT_EQ(on_eight().quota, kNone);
  v2("/user.slice/app.scope", "650000 100000");
  EXPECT_EQ(on_eight().quota, 6.5);
  EXPECT_EQ(on_eight().usable, 6);
  v2("/user.slice", "125000 50000");
  EXPECT_EQ(on_eight().quota, 2.5);
  EXPECT_EQ(on_eight().at_once, 2);
  EXPECT_EQ(on_eight().usable, 2);
  EXPECT_EQ(shortage(on_eight()),
            "this process sees 8 processors, but a cgroup limits its processor time to that of 2.5; the "
            "default is 2 threads");
  v2("/user.slice/other.scope", "10000 100000");  // not an enclosing cgroup
  v2("/user.slice/app.scope/inner", "10000 100000");
  EXPECT_EQ(on_eight().quota, 2.5);
  v2("", "150000 100000");
  EXPECT_EQ(on_eight().quota, 1.5);
  EXPECT_EQ(on_eight().usable, 1);
}

TEST_F(ProcessorFiles, LessThanOneProcessorIsOneThread) {
  cgroup("0::/\n");
  v2("", "25000 100000");
  const Processors p = on({0});
  EXPECT_EQ(p.quota, 0.25);
  EXPECT_EQ(p.usable, 1);
  EXPECT_THAT(shortage(p),
              HasSubstr("sees 1 processor, but a cgroup limits its processor time to that of 0.25"));
}

TEST_F(ProcessorFiles, AQuotaThatLeavesEveryCoreIsNoShortage) {
  cgroup("0::/\n");
  v2("", "800000 100000");
  EXPECT_EQ(on_eight().usable, 8);
  EXPECT_EQ(shortage(on_eight()), "");
  eight_in_pairs();
  v2("", "600000 100000");
  const Processors p = on_eight();
  EXPECT_EQ(p.at_once, 6);
  EXPECT_EQ(p.usable, 4);
  EXPECT_THAT(shortage(p), HasSubstr("hardware threads of 4 cores"));
  v2("", "300000 100000");
  EXPECT_EQ(on_eight().usable, 3);
  EXPECT_THAT(shortage(on_eight()), HasSubstr("time to that of 3; the default is 3 threads"));
}

TEST_F(ProcessorFiles, Version1) {
  cgroup("12:memory:/docker/a\n5:cpu,cpuacct:/docker/a\n1:name=systemd:/docker/a\n");
  EXPECT_EQ(on_eight().quota, kNone);
  v1("/cpu,cpuacct/docker/a", "-1", "100000");
  EXPECT_EQ(on_eight().quota, kNone);
  v1("/cpu,cpuacct/docker/a", "400000", "100000");
  EXPECT_EQ(on_eight().quota, 4);
  v1("/cpu,cpuacct/docker", "300000", "100000");
  EXPECT_EQ(on_eight().quota, 3);
  v1("/cpu/docker/a", "200000", "100000");
  EXPECT_EQ(on_eight().quota, 2);
  v1("/memory/docker/a", "100000", "100000");  // of another controller
  EXPECT_EQ(on_eight().quota, 2);
}

TEST_F(ProcessorFiles, OnlyTheCpuControllerOfVersion1Counts) {
  cgroup("3:cpuset:/a\n2:cpuacct:/a\n");
  v1("/cpuset/a", "100000", "100000");
  v1("/cpuacct/a", "100000", "100000");
  v1("/cpu/a", "100000", "100000");
  EXPECT_EQ(on_eight().quota, kNone);
  cgroup("3:cpuset:/a\n1:cpu:/a\n");
  EXPECT_EQ(on_eight().quota, 1);
}

// Inside a container, the path may be that of the host, although the mount begins at the
// container's own cgroup.
TEST_F(ProcessorFiles, APathThatIsNotThereLeavesTheRoot) {
  cgroup("0::/system.slice/docker-123.scope\n");
  v2("", "200000 100000");
  EXPECT_EQ(on_eight().quota, 2);
  cgroup("0::/../outside\n");
  v2("/outside", "100000 100000");
  EXPECT_EQ(on_eight().quota, 2);
  cgroup("4:cpu,cpuacct:/docker/123\n");
  v1("/cpu,cpuacct", "300000", "100000");
  EXPECT_EQ(on_eight().quota, 3);
}

TEST_F(ProcessorFiles, BothVersionsAtOnce) {
  cgroup("1:cpu:/a\n0::/b\n");
  v1("/cpu/a", "500000", "100000");
  v2("/b", "400000 100000");
  EXPECT_EQ(on_eight().quota, 4);
  v1("/cpu/a", "300000", "100000");
  EXPECT_EQ(on_eight().quota, 3);
}

TEST_F(ProcessorFiles, WhatCannotBeReadDoesNotLimit) {
  for (const char* lines : {"", "nonsense", "0:", "0::", "0::relative\n", "\n\n", "5:cpu:\n"}) {
    cgroup(lines);
    EXPECT_EQ(on_eight().quota, kNone) << lines;
  }
  cgroup("0::/a\n");
  for (const char* max : {"", "max", "1000", "0 100000", "-5 100000", "1000 0", "x y", "max 100000 9"}) {
    v2("/a", max);
    EXPECT_EQ(on_eight().quota, kNone) << max;
  }
  fs::remove(root_.file("sys/fs/cgroup/a/cpu.max"));
  fs::create_directories(root_.file("sys/fs/cgroup/a/cpu.max"));
  EXPECT_EQ(on_eight().quota, kNone);
}

TEST_F(ProcessorFiles, TeamsTakeEveryCoreFirst) {
  for (int i = 0; i < 6; ++i) siblings(i, std::to_string(i / 2 * 2) + "-" + std::to_string(i / 2 * 2 + 1));
  EXPECT_THAT(spread_over_cores(on({0, 1, 2, 3, 4, 5})), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(spread_over_cores(on({1, 2, 3})), ElementsAre(1, 2, 3));
  eight_in_pairs();
  EXPECT_THAT(spread_over_cores(on_eight()), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(ProcessorFiles, OthersKeepOffTheCoreWhereThereAreEnough) {
  eight_in_pairs();
  Numbers others;
  processors_beside(on_eight(), 5, 4, others);
  EXPECT_THAT(others, ElementsAre(0, 2, 3, 4, 6, 7));
  processors_beside(on_eight(), 5, 5, others);  // one more thread than cores
  EXPECT_THAT(others, ElementsAre(0, 1, 2, 3, 4, 6, 7));
  processors_beside(on({1, 5}), 5, 2, others);
  EXPECT_THAT(others, ElementsAre(1));
  processors_beside(on({1, 5}), 2, 2, others);  // the caller runs on a processor outside the team's
  EXPECT_THAT(others, ElementsAre(1, 5));
  processors_beside(on({1}), 1, 2, others);
  EXPECT_THAT(others, ElementsAre());
}

TEST(ProcessorMask, HoldsWhatItIsGiven) {
  ProcessorMask mask(1500);
  EXPECT_THAT(mask.numbers(), ElementsAre());
  mask.assign({0, 63, 64, 1023, 1024, 1500, 1000000, -1});
  EXPECT_THAT(mask.numbers(), ElementsAre(0, 63, 64, 1023, 1024, 1500));
  EXPECT_GT(mask.bytes() * 8, 1500u);
  mask.assign({7});
  EXPECT_THAT(mask.numbers(), ElementsAre(7));
}

TEST(Processors, OfThisMachine) {
  const Processors p = processors();
  EXPECT_EQ(p.allowed, allowed_processors());
  ASSERT_GE(p.allowed.size(), 1u);
  EXPECT_EQ(p.cores.size(), p.allowed.size());
  EXPECT_TRUE(std::is_sorted(p.allowed.begin(), p.allowed.end()));
  EXPECT_GT(p.quota, 0);
  EXPECT_GE(p.usable, 1);
  EXPECT_LE(p.usable, p.at_once);
  EXPECT_LE(p.usable, p.physical_cores);
  EXPECT_LE(p.at_once, static_cast<int>(p.allowed.size()));
}

TEST(Processors, FollowsTheAffinityOfTheThread) {
  ProcessorMask before(allowed_processors().back());
  before.assign(allowed_processors());
  const int last = allowed_processors().back();
  ProcessorMask one(last);
  one.assign({last});
  ASSERT_EQ(sched_setaffinity(0, one.bytes(), one.data()), 0);
  EXPECT_THAT(allowed_processors(), ElementsAre(last));
  EXPECT_EQ(processors().usable, 1);
  EXPECT_EQ(sched_setaffinity(0, before.bytes(), before.data()), 0);
}

}  // namespace
}  // namespace tensorsmith::processors_test
