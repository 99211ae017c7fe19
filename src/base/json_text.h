// JSON from outside: nesting is bounded before the text is parsed. The parser keeps its own stack, but what
// is done with the values later (printing, comparing) recurses.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace tensorsmith {

// Far deeper than anything Tensorsmith writes.
inline constexpr int kMaxJsonNesting = 64;

// Whether arrays and objects of the text, valid JSON or not, stand more than `limit` deep in each other.
bool nests_deeper(std::string_view json, int limit);

// Json: nlohmann::json or ordered_json, whose parsers are compiled once, here. Discarded, which is neither an array nor an
// object, where the text is no JSON or nests deeper than kMaxJsonNesting.
template <class Json>
Json parse_json(std::string_view text);

}  // namespace tensorsmith
