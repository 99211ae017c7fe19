#include "base/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/scratch_directory.h"

namespace tensorsmith::memory_test {
namespace {

namespace fs = std::filesystem;

class MemoryFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const fs::path path = root_.file(name);
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  int64_t limit() const { return memory_limit(root_.file("proc"), root_.file("sys")); }

  ScratchDirectory root_ = ScratchDirectory::create("tensorsmith-memory").value();
};

TEST_F(MemoryFiles, WithoutCgroupsItIsTheMachines) {
  EXPECT_GT(limit(), int64_t{64} << 20);
  EXPECT_EQ(memory_limit("/nowhere", "/nowhere"), limit());
}

TEST_F(MemoryFiles, TheLeastOfTheCgroupsAroundCounts) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  const int64_t machine = limit();
  write("sys/fs/cgroup/outer/memory.max", "33554432\n");
  EXPECT_EQ(limit(), 33554432);
  write("sys/fs/cgroup/outer/inner/memory.max", "16777216\n");
  EXPECT_EQ(limit(), 16777216);
  write("sys/fs/cgroup/outer/inner/memory.max", "9223372036854771712\n");
  write("sys/fs/cgroup/outer/memory.max", "rubbish\n");
  EXPECT_EQ(limit(), machine);
}

TEST_F(MemoryFiles, Version1IsReadToo) {
  write("proc/self/cgroup", "7:memory:/box\n3:cpu,cpuacct:/box\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "50331648\n");
  EXPECT_EQ(limit(), 50331648);
}

TEST(Memory, ResidentBytesGrowWithWhatIsWritten) {
  const int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  const std::vector<char> block(64 << 20, 1);
  EXPECT_GT(resident_bytes() - before, 32 << 20);
  EXPECT_EQ(block.back(), 1);
}

}  // namespace
}  // namespace tensorsmith::memory_test
