// How many files a new member of a family touches: all files in src/ that name one of the present members, beside
// those that happen to use it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;
using Files = std::set<std::string>;

// Files in src/ whose code, not their comments, has a word that matches; the names of lists of sources too.
Files mentions(const std::string& words) {
  const fs::path root = fs::path(TENSORSMITH_SOURCE_DIR) / "src";
  const std::regex word("\\b(" + words + ")(\\.cc)?\\b"), comment("(//|#(?!include|define)).*");
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (!std::regex_search(std::regex_replace(line, comment, ""), word)) continue;
      files.insert(fs::relative(entry.path(), root).string());
      break;
    }
  }
  return files;
}

// Of the primitives, these are used by no plan and no reader of foreign records.
TEST(Extension, APrimitiveIsFourFiles) {
  EXPECT_EQ(mentions("ReverseComputeAt|reverse_compute_at"),
            (Files{"sched/CMakeLists.txt", "sched/primitives/primitives.h",
                   "sched/primitives/reverse_compute_at.cc", "sched/step.h"}));
  EXPECT_EQ(mentions("DecomposeReduction|decompose_reduction"),
            (Files{"sched/CMakeLists.txt", "sched/primitives/decompose_reduction.cc",
                   "sched/primitives/primitives.h", "sched/step.h"}));
}

TEST(Extension, AStrategyIsTwoFilesAndALine) {
  EXPECT_EQ(mentions("AnnealingStrategy|make_annealing_strategy|annealing"),
            (Files{"search/CMakeLists.txt", "search/annealing.cc", "search/strategies.h"}));
}

}  // namespace
