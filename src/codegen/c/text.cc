#include "codegen/c/text.h"

#include <algorithm>
#include <array>

namespace tensorsmith::codegen {
namespace {

// Keywords of C99 and of its relatives, and lower-case macros of standard headers.
constexpr std::array<std::string_view, 62> kReserved = {
    "alignas",  "asm",      "auto",      "bool",     "break",    "case",     "catch",    "char",
    "class",    "const",    "constexpr", "continue", "default",  "delete",   "do",       "double",
    "else",     "enum",     "explicit",  "extern",   "false",    "float",    "for",      "friend",
    "global",   "goto",     "half",      "if",       "inline",   "int",      "kernel",   "linux",
    "local",    "long",     "namespace", "new",      "nullptr",  "operator", "private",  "public",
    "register", "restrict", "return",    "short",    "signed",   "sizeof",   "static",   "struct",
    "switch",   "template", "this",      "throw",    "true",     "typedef",  "typename", "typeof",
    "union",    "unix",     "unsigned",  "using",    "volatile", "while"};

}  // namespace

std::string Names::make(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (digit && name.empty()) name = "n";
    name += letter || digit ? c : '_';
  }
  if (name.empty() || name.front() == '_') name = "n" + name;
  // Names that begin with ts_ belong to the header, names in capitals to macros.
  const bool capitals =
      name.size() > 1 && std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  if (name.starts_with("ts_") || capitals ||
      std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end())
    name += "_";
  std::string unique = name;
  for (int i = 2; !taken_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

}  // namespace tensorsmith::codegen
