#include "ir/lexer.h"

namespace tensorsmith::ir {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Lexer::skip_space() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      line_start_ = ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++position_;
    } else if (c == '#') {
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
    } else {
      return;
    }
  }
}

Token Lexer::scan() {
  skip_space();
  Token out;
  out.line = line_;
  out.column = position_ - line_start_ + 1;
  if (position_ >= text_.size()) return out;
  const size_t start = position_;
  const auto finish = [&](Token::Kind kind) {
    out.kind = kind;
    out.text = text_.substr(start, position_ - start);
    return out;
  };
  const char c = text_[position_];
  if (is_letter(c)) {
    while (is_letter(at(0)) || is_digit(at(0)) || at(0) == '.') ++position_;
    return finish(Token::Kind::kName);
  }
  if (is_digit(c)) {
    Token::Kind kind = Token::Kind::kInt;
    while (is_digit(at(0))) ++position_;
    if (at(0) == '.' && is_digit(at(1))) {
      kind = Token::Kind::kFloat;
      ++position_;
      while (is_digit(at(0))) ++position_;
    }
    const size_t sign = at(1) == '+' || at(1) == '-' ? 2 : 1;
    if ((at(0) == 'e' || at(0) == 'E') && is_digit(at(sign))) {
      kind = Token::Kind::kFloat;
      position_ += sign;
      while (is_digit(at(0))) ++position_;
    }
    while (is_letter(at(0)) || is_digit(at(0))) ++position_;
    return finish(kind);
  }
  if (c == '"') {
    ++position_;
    while (position_ < text_.size() && text_[position_] != '"' && text_[position_] != '\n')
      position_ += text_[position_] == '\\' ? 2 : 1;
    if (position_ >= text_.size() || text_[position_] != '"') {
      position_ = text_.size();
      return finish(Token::Kind::kBad);
    }
    ++position_;
    return finish(Token::Kind::kQuoted);
  }
  static constexpr std::string_view kPairs[] = {"//", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>"};
  for (std::string_view pair : kPairs) {
    if (text_.substr(position_, 2) == pair) {
      position_ += 2;
      return finish(Token::Kind::kSymbol);
    }
  }
  ++position_;
  const bool known = std::string_view("()[]{}:,=+-*/%<>&|^!~").find(c) != std::string_view::npos;
  return finish(known ? Token::Kind::kSymbol : Token::Kind::kBad);
}

bool decode_name(const Token& token, std::string& out) {
  if (token.kind == Token::Kind::kName) {
    out = std::string(token.text);
    return true;
  }
  out.clear();
  const std::string_view body = token.text.substr(1, token.text.size() - 2);
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    if (i + 1 >= body.size()) return false;
    const char c = body[++i];
    if (c == '"' || c == '\\') {
      out += c;
    } else if (c == 'x' && i + 2 < body.size() && hex_value(body[i + 1]) >= 0 &&
               hex_value(body[i + 2]) >= 0) {
      out += hex_value(body[i + 1]) * 16 + hex_value(body[i + 2]);
      i += 2;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace tensorsmith::ir
