// The table of plans compared with the folders, and what the rest of src/space may include of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "space/plan_kind.h"

namespace tensorsmith::space::plans_test {
namespace {

namespace fs = std::filesystem;
const fs::path kRoom = fs::path(TENSORSMITH_SOURCE_DIR) / "src" / "space";

TEST(Plans, EachFolderIsALineOfTheTable) {
  std::set<std::string> folders, names;
  for (const auto& entry : fs::directory_iterator(kRoom / "plans"))
    if (entry.is_directory()) folders.insert(entry.path().filename());
  for (const PlanKind* kind : plan_kinds()) EXPECT_TRUE(names.insert(std::string(kind->name)).second);
  EXPECT_EQ(names, folders);
  EXPECT_EQ(fallback_kind(target::DeviceKind::kCpu).name, "plain");
  EXPECT_EQ(fallback_kind(target::DeviceKind::kGpu).name, "gpu_plain");
}

// A new kind of plan changes no file outside its folder except the table.
TEST(Plans, NothingOutsideOfAFolderIncludesIt) {
  const std::regex include("#include \"space/plans/([a-z_]+)/");
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kRoom.parent_path())) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      ++seen;
      EXPECT_EQ(entry.path().parent_path(), kRoom / "plans" / match[1].str()) << entry.path();
    }
  }
  EXPECT_GT(seen, 10);
}

}  // namespace
}  // namespace tensorsmith::space::plans_test
