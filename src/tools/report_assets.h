// The files of src/tools/report_page and the plotting library, embedded in the program.
#pragma once

#include <string_view>

namespace tensorsmith::tools {

struct ReportAssets {
  std::string_view html;  // template with placeholders "@NAME@" for the other files
  std::string_view css;
  std::string_view js;        // all our scripts, concatenated
  std::string_view plotting;  // Chart.js, minified, with its license notice
};
const ReportAssets& report_assets();

}  // namespace tensorsmith::tools
