// JSON from outside: nesting is limited before the text is parsed. The parser does not recurse, but
// later operations on the values (printing, comparing) do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace tensorsmith {

// Much deeper than anything that Tensorsmith writes.
inline constexpr int kMaxJsonNesting = 64;

// Returns whether arrays and objects of the text, which need not be valid JSON, are nested more
// than `limit` deep.
bool nests_deeper(std::string_view json, int limit);

// Parses the text; Json is nlohmann::json or ordered_json, whose parsers are compiled only here.
// Returns a discarded value, which is neither an array nor an object, if the text is not JSON or
// nests deeper than kMaxJsonNesting.
template <class Json>
Json parse_json(std::string_view text);

}  // namespace tensorsmith
