// Tokens of the text form (docs/text_format.md).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorsmith::ir {

struct Token {
  enum class Kind : uint8_t { kName, kQuoted, kInt, kFloat, kSymbol, kEnd, kBad };
  Kind kind = Kind::kEnd;
  std::string_view text;  // numbers: with their dtype suffix; quoted names: with quotes
  int line = 1;
  int column = 1;

  bool is(std::string_view symbol_or_word) const {
    return (kind == Kind::kSymbol || kind == Kind::kName) && text == symbol_or_word;
  }
  bool is_name() const { return kind == Kind::kName || kind == Kind::kQuoted; }
};

// Splits text on demand; the text must outlive it.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {
    ahead_[0] = scan();
    ahead_[1] = scan();
  }
  const Token& peek(size_t ahead = 0) const { return ahead_[ahead]; }  // 0 or 1
  Token next() {
    const Token out = ahead_[0];
    ahead_[0] = ahead_[1];
    ahead_[1] = scan();
    return out;
  }

 private:
  Token scan();
  void skip_space();
  char at(size_t offset) const {
    return position_ + offset < text_.size() ? text_[position_ + offset] : '\0';
  }

  std::string_view text_;
  size_t position_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  std::array<Token, 2> ahead_;
};

// Decodes the name that a name token denotes; returns false if an escape is invalid.
bool decode_name(const Token& token, std::string& out);

}  // namespace tensorsmith::ir
