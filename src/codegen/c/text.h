// C text under construction: expressions with their binding strength, lines with their indentation, names.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tensorsmith::codegen {

// Precedence of an expression's outermost operator, from C's grammar.
enum class Strength { kConditional, kOr, kAnd, kComparison, kSum, kProduct, kUnary, kPrimary };

struct Text {
  std::string text;
  Strength strength = Strength::kPrimary;

  // Returns the text, in parentheses if its precedence is lower than `least`.
  std::string at_least(Strength least) const { return strength < least ? "(" + text + ")" : text; }
};

inline Text call_text(std::string_view function, const std::vector<Text>& arguments) {
  std::string text = std::string(function) + "(";
  for (size_t i = 0; i < arguments.size(); ++i) text += (i > 0 ? ", " : "") + arguments[i].text;
  return {text + ")"};
}

// Lines of a function's body.
class Block {
 public:
  void line(std::string text) { lines_.emplace_back(indent_, std::move(text)); }
  void open(const std::string& head) {
    line(head.empty() ? "{" : head + " {");
    ++indent_;
  }
  void close(const std::string& tail = "}") {
    --indent_;
    line(tail);
  }
  // Ends a block and begins another, for example `} else {`.
  void middle(const std::string& text) {
    --indent_;
    line(text);
    ++indent_;
  }
  void append(Block other) {
    for (auto& [indent, text] : other.lines_) lines_.emplace_back(indent_ + indent, std::move(text));
  }
  bool empty() const { return lines_.empty(); }
  std::string str() const {
    std::string out;
    for (const auto& [indent, text] : lines_)
      out += (text.starts_with('#') ? "" : std::string(2 * indent, ' ')) + text + "\n";
    return out;
  }

 private:
  std::vector<std::pair<int, std::string>> lines_;
  int indent_ = 0;
};

// Makes identifiers that are distinct and are neither keywords of C nor names of the header.
class Names {
 public:
  std::string make(std::string_view wanted);

 private:
  std::unordered_set<std::string> taken_;
};

}  // namespace tensorsmith::codegen
