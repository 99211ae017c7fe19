// Finds the known word that is nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tensorsmith {

// Returns the number of insertions, deletions, replacements and swaps of adjacent letters that turn
// one word into the other (optimal string alignment distance).
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the nearest of the names, or an empty string unless at most a third of the word's letters
// differ.
std::string nearest(std::string_view word, std::span<const std::string> names);

}  // namespace tensorsmith
