// Whether a text is XML, as a parser sees it that is not ours (libxml2).
#pragma once

#include <string>

namespace tensorsmith::testing {

// Empty for a well-formed document, else what the parser complains about first, with the line.
std::string xml_problem(const std::string& text);
// The same of a file.
std::string xml_problem_of_file(const std::string& path);

}  // namespace tensorsmith::testing
