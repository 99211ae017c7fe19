// Headings of options in the help and in manual pages.
#pragma once

namespace tensorsmith::tools {

// The basic options of a command come first, under CLI11's own heading, "Options".
inline constexpr const char* kModelGroup = "Reading the model";
inline constexpr const char* kSearchGroup = "Search";
inline constexpr const char* kOutputGroup = "Output and progress";
inline constexpr const char* kAdvancedGroup = "Advanced options";  // always the last heading

}  // namespace tensorsmith::tools
