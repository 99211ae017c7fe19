// "Did you mean": the known word nearest to one that is not.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tensorsmith::tools {

// Insertions, deletions, replacements and swaps of neighbours that make one word of the other (optimal string
// alignment).
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of the names, or nothing if none is near: at most a third of the word's letters differ.
std::string nearest(std::string_view word, std::span<const std::string> names);

// After a command line that did not parse: "Did you mean `tune`?", of the first word that nothing knows. Empty
// if there is none, or nothing near it.
std::string did_you_mean(const CLI::App& app);

}  // namespace tensorsmith::tools
