#include "base/json_text.h"

#include <nlohmann/json.hpp>

namespace tensorsmith {

bool nests_deeper(std::string_view json, int limit) {
  int depth = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    switch (json[i]) {
      case '"':
        for (++i; i < json.size() && json[i] != '"'; ++i) {
          if (json[i] == '\\') ++i;
        }
        break;
      case '[':
      case '{':
        if (++depth > limit) return true;
        break;
      case ']':
      case '}':
        --depth;
        break;
      default:
        break;
    }
  }
  return false;
}

template <class Json>
Json parse_json(std::string_view text) {
  if (nests_deeper(text, kMaxJsonNesting)) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}
template nlohmann::json parse_json(std::string_view text);
template nlohmann::ordered_json parse_json(std::string_view text);

}  // namespace tensorsmith
