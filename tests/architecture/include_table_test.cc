// Checks the code's includes against the table of directories in ARCHITECTURE.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace tensorsmith::architecture::include_table_test {
namespace {

namespace fs = std::filesystem;
using Rooms = std::map<std::string, std::set<std::string>>;

std::string trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Reads the Markdown table: directory -> directories that it may include directly.
Rooms read_table(const fs::path& file) {
  Rooms rooms;
  std::ifstream in(file);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("| room |", 0) == 0) {
      inside = true;
      continue;
    }
    if (!inside) continue;
    if (line.empty() || line[0] != '|') break;
    if (line.rfind("|---", 0) == 0) continue;
    std::vector<std::string> cells;
    std::stringstream row(line.substr(1));
    for (std::string cell; std::getline(row, cell, '|');) cells.push_back(trim(cell));
    if (cells.size() < 3) continue;
    std::stringstream list(cells[2]);
    for (std::string room; std::getline(list, room, ',');) {
      if (!trim(room).empty()) rooms[cells[0]].insert(trim(room));
    }
    rooms[cells[0]];
  }
  return rooms;
}

void add_reachable(const Rooms& rooms, const std::string& room, std::set<std::string>& out) {
  if (!out.insert(room).second) return;
  for (const auto& next : rooms.at(room)) add_reachable(rooms, next, out);
}

class IncludeTable : public ::testing::Test {
 protected:
  const fs::path root_ = TENSORSMITH_SOURCE_DIR;
  const Rooms rooms_ = read_table(root_ / "ARCHITECTURE.md");

  template <typename Fn>
  void for_each_include(Fn&& fn) const {
    static const std::regex kInclude("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"]");
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "src")) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc" && extension != ".hpp" && extension != ".c") continue;
      const fs::path relative = fs::relative(entry.path(), root_ / "src");
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        std::smatch match;
        if (std::regex_search(line, match, kInclude)) fn(relative, match[2].str());
      }
    }
  }
};

TEST_F(IncludeTable, NamesEveryRoom) {
  ASSERT_GE(rooms_.size(), 15u) << "the table in ARCHITECTURE.md was not found";
  for (const auto& entry : fs::directory_iterator(root_ / "src")) {
    if (entry.is_directory()) {
      EXPECT_TRUE(rooms_.count(entry.path().filename())) << entry.path();
    }
  }
  for (const auto& [room, allowed] : rooms_) {
    EXPECT_TRUE(fs::is_directory(root_ / "src" / room)) << room;
    for (const auto& other : allowed)
      EXPECT_TRUE(rooms_.count(other)) << room << " may include unknown " << other;
  }
}

TEST_F(IncludeTable, HasNoCycle) {
  for (const auto& [room, allowed] : rooms_) {
    for (const auto& next : allowed) {
      std::set<std::string> reachable;
      add_reachable(rooms_, next, reachable);
      EXPECT_FALSE(reachable.count(room)) << room << " includes itself through " << next;
    }
  }
}

TEST_F(IncludeTable, HoldsForEveryInclude) {
  size_t checked = 0;
  for_each_include([&](const fs::path& file, const std::string& included) {
    const std::string from = file.begin()->string();
    const std::string to = fs::path(included).begin()->string();
    if (!rooms_.count(to) || to == included) return;
    ++checked;
    std::set<std::string> allowed;
    add_reachable(rooms_, from, allowed);
    allowed.insert("base");
    EXPECT_TRUE(allowed.count(to)) << "src/" << file.string() << " includes " << included;
  });
  EXPECT_GT(checked, 50u);
}

TEST_F(IncludeTable, KeepsHeavyHeadersInTheirRooms) {
  const std::map<std::string, std::string> homes = {
      {"llvm/", "codegen/llvm/"}, {"llvm-c/", "codegen/llvm/"}, {"lld/", "codegen/llvm/"},
      {"xgboost/", "learn/gbt/"}, {"sqlite3.h", "record/"},     {"seccomp.h", "measure/"},
      {"libpq", "record/"},       {"onnx/", "graph/onnx/"},     {"google/protobuf", "graph/onnx/"},
      {"torch/", "learn/net/"},   {"ATen/", "learn/net/"},      {"CL/", "runtime/device/"},
      {"cuda", "runtime/device/"}};
  for_each_include([&](const fs::path& file, const std::string& included) {
    for (const auto& [prefix, home] : homes) {
      if (included.rfind(prefix, 0) == 0) {
        EXPECT_EQ(file.string().rfind(home, 0), 0u) << "src/" << file.string() << " includes " << included;
        if (file.extension() == ".h") {
          // Internal headers may include it, but public ones, which are at the directory's top
          // level, may not.
          EXPECT_NE(std::distance(file.begin(), file.end()), 2)
              << "src/" << file.string() << " shows " << included;
        }
      }
    }
  });
}

}  // namespace
}  // namespace tensorsmith::architecture::include_table_test
