// The fitted numbers of the estimate are in the table of src/space/estimate/constants.h, and those
// of a processor in its device's file: the estimate's code contains neither.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace tensorsmith::architecture::estimate_constants_test {
namespace {

namespace fs = std::filesystem;

// Returns the line without comments and quoted text, which must not span lines.
std::string code_of(const std::string& line) {
  std::string code;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (!quoted && line.compare(i, 2, "//") == 0) break;
    if (!quoted && line[i] != '"') code += line[i];
  }
  return code;
}

// Numbers that are not geometric counts: all but 0 to 4 and 8, which are, for example, elements
// that a step reads and their bytes.
std::vector<std::string> fitted_numbers(const std::string& line) {
  const std::string code = code_of(line);
  std::vector<std::string> found;
  for (size_t i = 0; i < code.size();) {
    const auto is_word = [&](size_t at) {
      return at < code.size() &&
             (std::isalnum(static_cast<unsigned char>(code[at])) != 0 || code[at] == '_' || code[at] == '.');
    };
    size_t end = i;
    while (is_word(end)) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    const std::string word = code.substr(i, end - i);
    static const std::set<std::string> kCounts = {"0", "1", "2", "3", "4", "8", "0.0", "1.0"};
    const size_t first = word[0] == '.' ? 1 : 0;  // ".5", which is not a member access
    const bool is_number = first < word.size() && std::isdigit(static_cast<unsigned char>(word[first])) != 0;
    if (is_number && !kCounts.contains(word)) found.push_back(word);
    i = end;
  }
  return found;
}

TEST(EstimateConstants, FindsThem) {
  using Numbers = std::vector<std::string>;
  EXPECT_EQ(fitted_numbers("  cycles *= 1.4;  // 2.5"), Numbers{"1.4"});
  EXPECT_EQ(fitted_numbers("  constexpr double kTlbBytes = 4.5 * (1 << 20);"), (Numbers{"4.5", "20"}));
  EXPECT_EQ(fitted_numbers("  cycles += l2_bytes * 4 + vectors[0] + k.tail0.5x + std::max(1.0, 8 * f4);"),
            Numbers{});
  EXPECT_EQ(fitted_numbers("  cycles += m.fitted().spill * .5;"), Numbers{".5"});
  EXPECT_EQ(fitted_numbers("  print(\"1.5 // \", .3);"), Numbers{".3"});
}

TEST(EstimateConstants, StandInTheTable) {
  const fs::path space = fs::path(TENSORSMITH_SOURCE_DIR) / "src/space";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(space)) {
    const fs::path file = fs::relative(entry.path(), space);
    const std::string name = file.filename().string();
    const bool estimates = *file.begin() == "estimate" || name == "estimate.cc" || name == "traffic.cc";
    if (!estimates || name == "constants.h" || name == "gpu_constants.h") continue;
    // Sizes that all GPUs share.
    if (name.starts_with("gpu_units.")) continue;
    ++files;
    std::ifstream in(entry.path());
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      // Units of time, and the size of a page, are allowed.
      if (name.starts_with("machine.") &&
          (line.find("1e-") != std::string::npos || line.find("kPageBytes =") != std::string::npos))
        continue;
      for (const auto& literal : fitted_numbers(line))
        ADD_FAILURE() << "src/space/" << file.string() << ":" << number << ": " << literal
                      << " is a row of src/space/estimate/constants.h or a figure of the device";
    }
  }
  EXPECT_GE(files, 13);
}

}  // namespace
}  // namespace tensorsmith::architecture::estimate_constants_test
