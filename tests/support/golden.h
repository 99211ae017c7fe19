// Golden files: the expected text is beside the test in golden/NAME. A missing file fails. To
// accept the present output of a test, run it with TENSORSMITH_UPDATE_GOLDEN=1 and review the
// difference before committing.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tensorsmith::test {

// path: relative to the tests folder, e.g. "sched/golden/split.txt".
inline void expect_golden(const std::string& path, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(TENSORSMITH_SOURCE_DIR) / "tests" / path;
  if (std::getenv("TENSORSMITH_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return;
  }
  std::ifstream in(file);
  ASSERT_TRUE(in) << "no golden file " << file << "; run with TENSORSMITH_UPDATE_GOLDEN=1 to make it";
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(text, expected.str()) << file;
}

}  // namespace tensorsmith::test
