// Checks text for well-formed XML with an independent parser (libxml2).
#pragma once

#include <string>

namespace tensorsmith::testing {

// Returns an empty string for a well-formed document, else the parser's first complaint with its
// line.
std::string xml_problem(const std::string& text);
// Checks a file in the same way.
std::string xml_problem_of_file(const std::string& path);

}  // namespace tensorsmith::testing
