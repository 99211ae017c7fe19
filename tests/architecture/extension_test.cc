// Counts the files that a new member of a family would touch: all files in src/ that name one of
// the present members, apart from those that only use it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tensorsmith::architecture::extension_test {
namespace {

namespace fs = std::filesystem;
using Files = std::set<std::string>;

bool is_part_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool has_word(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_part_of_word(line[at - 1])) && (end == line.size() || !is_part_of_word(line[end])))
      return true;
  }
  return false;
}

// Returns the files in src/ whose code (without comments) has one of the words, including lists of
// sources. The reader of MetaSchedule's records is left out: it names instructions of MetaSchedule, most of
// which have the name of a primitive; so are tables that a script makes (.inc).
Files mentions(const std::vector<std::string>& words) {
  const fs::path root = fs::path(TENSORSMITH_SOURCE_DIR) / "src";
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().parent_path() == root / "record" / "metaschedule" ||
        entry.path().extension() == ".inc")
      continue;
    const bool is_list = entry.path().filename() == "CMakeLists.txt";
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      const auto code = std::string_view(line).substr(0, line.find(is_list ? "#" : "//"));
      if (std::none_of(words.begin(), words.end(), [&](const auto& w) { return has_word(code, w); }))
        continue;
      files.insert(fs::relative(entry.path(), root).string());
      break;
    }
  }
  return files;
}

// Primitives that no plan and no reader of Ansor's records uses.
TEST(Extension, APrimitiveIsFourFiles) {
  EXPECT_EQ(mentions({"ReverseComputeAt", "reverse_compute_at"}),
            (Files{"sched/CMakeLists.txt", "sched/primitives/primitives.h",
                   "sched/primitives/reverse_compute_at.cc", "sched/step.h"}));
  EXPECT_EQ(mentions({"DecomposeReduction", "decompose_reduction"}),
            (Files{"sched/CMakeLists.txt", "sched/primitives/decompose_reduction.cc",
                   "sched/primitives/primitives.h", "sched/step.h"}));
}

TEST(Extension, AStrategyIsTwoFilesAndALine) {
  EXPECT_EQ(mentions({"AnnealingStrategy", "make_annealing_strategy", "annealing"}),
            (Files{"lab/CMakeLists.txt", "lab/strategies/annealing.cc", "lab/strategies/strategies.h"}));
}

// The file also has the operator's signature and traits.
TEST(Extension, AnElementwiseOperatorIsOneFile) {
  for (const char* op : {"Celu", "Mish", "BitwiseXor"}) EXPECT_EQ(mentions({op}).size(), 1U) << op;
}

TEST(Extension, AKindOfCostModelIsTwoFilesAndTwoLines) {
  EXPECT_EQ(mentions({"RandomLatency", "random_kind", "random_latency"}),
            (Files{"lab/CMakeLists.txt", "lab/kinds/kinds.cc", "lab/kinds/kinds.h",
                   "lab/kinds/random_latency.cc"}));
}

TEST(Extension, ANetIsTwoFilesAndALine) {
  EXPECT_EQ(mentions({"Cdmpp", "cdmpp", "cdmpp_design"}),
            (Files{"learn/net/CMakeLists.txt", "learn/net/cdmpp.cc", "learn/net/nets.h"}));
}

}  // namespace
}  // namespace tensorsmith::architecture::extension_test
