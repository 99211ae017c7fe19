// The known word that is nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tensorsmith {

// Insertions, deletions, replacements and swaps of neighbours that make one word of the other (optimal string
// alignment).
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of the names, or nothing if none is near: at most a third of the word's letters differ.
std::string nearest(std::string_view word, std::span<const std::string> names);

}  // namespace tensorsmith
