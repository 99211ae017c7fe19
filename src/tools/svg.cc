#include "tools/svg.h"

#include "tools/console.h"

namespace tensorsmith::tools {
namespace {

// U+FFFE and U+FFFF, which XML does not allow even as references (XML 1.0, section 2.2).
constexpr std::string_view kNoCharacter = "\xEF\xBF";
bool is_no_character(std::string_view text) {
  return text.size() >= 3 && text.starts_with(kNoCharacter) && (text[2] == '\xBE' || text[2] == '\xBF');
}

}  // namespace

std::string plot_mark(std::string_view command) {
  return std::string(kPlotMark) + " " + std::string(command) + " -->";
}

std::string svg_text(std::string_view text) {
  const std::string shown = printable(text);
  std::string out;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (shown[i] == '<') {
      out += "&lt;";
    } else if (shown[i] == '>') {
      out += "&gt;";
    } else if (shown[i] == '&') {
      out += "&amp;";
    } else if (is_no_character(std::string_view(shown).substr(i))) {
      i += 2;
    } else {
      out += shown[i];
    }
  }
  return out;
}

}  // namespace tensorsmith::tools
