#include "tools/shape_advice.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "tools/command_line.h"

namespace tensorsmith::tools {
namespace {

constexpr int64_t kChannels = 3, kPixels = 224, kTokens = 128;
// With more open inputs, a line with the shape of each would be too long to read.
constexpr size_t kShapesAtMost = 3;

// Returns a typical length for such a dimension.
int64_t guess(std::string name, size_t place, size_t rank) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const char* part) { return name.find(part) != std::string::npos; });
  };
  if (has({"batch"}) || name == "n" || name == "b") return 1;
  if (has({"seq", "len", "token", "time"})) return kTokens;
  if (has({"height", "width"}) || name == "h" || name == "w") return kPixels;
  if (has({"channel"}) || name == "c") return kChannels;
  if (place == 0) return 1;
  constexpr size_t kImageRank = 4;
  if (rank != kImageRank) return kTokens;
  return place == 1 ? kChannels : kPixels;
}

// Makes one guess per dimension name.
class Guesses {
 public:
  int64_t of(const graph::DeclaredDimension& dim, size_t place, size_t rank) {
    if (dim.length >= 0) return dim.length;
    const int64_t length = guess(dim.name, place, rank);
    if (dim.name.empty()) {
      all_named_ = false;
      return length;
    }
    const auto [found, fresh] = by_name_.emplace(dim.name, length);
    if (fresh) names_.push_back(dim.name);
    return found->second;
  }
  void add_unnamed() { all_named_ = false; }
  bool all_named() const { return all_named_; }
  // Returns " --dim batch=1 --dim height=224", in order of first use.
  std::string options() const {
    std::string out;
    for (const std::string& name : names_)
      out += " --dim " + shell_word(name + "=" + std::to_string(by_name_.at(name)));
    return out;
  }

 private:
  std::map<std::string, int64_t> by_name_;
  std::vector<std::string> names_;
  bool all_named_ = true;
};

std::string shape_text(const graph::OpenInput& input, Guesses& guesses) {
  if (!input.shape) {
    guesses.add_unnamed();
    return input.is_sequence ? "2x3" : "1x3x224x224";
  }
  std::string out;
  for (size_t d = 0; d < input.shape->size(); ++d)
    out += (d == 0 ? "" : "x") + std::to_string(guesses.of((*input.shape)[d], d, input.shape->size()));
  return out;
}

}  // namespace

std::string shape_advice(std::span<const graph::OpenInput> inputs, const std::string& command) {
  Guesses guesses;
  std::string shapes, empty;
  for (const graph::OpenInput& input : inputs) {
    const std::string name = input.is_sequence ? input.name + "[0]" : input.name;
    shapes += " --shape " + shell_word(name + "=" + shape_text(input, guesses));
    if (!input.is_sequence) continue;
    guesses.add_unnamed();  // the length of a sequence has no name
    empty += "--absent " + shell_word(input.name) + " if '" + input.name + "' is empty, ";
  }
  const std::string dims = guesses.options();
  const bool by_name = inputs.size() > kShapesAtMost && guesses.all_named();
  std::string out = "choose the lengths of these dimensions";
  if (!by_name && !dims.empty()) out += ", by name (" + dims.substr(1) + ") or by input";
  if (!empty.empty()) out += " (" + empty.substr(0, empty.size() - 2) + ")";
  return out + ", for instance: " + command + (by_name ? dims : shapes);
}

}  // namespace tensorsmith::tools
