// The files of src/tools/report_page and the plotting library, compiled in.
#pragma once

#include <string_view>

namespace tensorsmith::tools {

struct ReportAssets {
  std::string_view html;  // with places for the others, "@NAME@"
  std::string_view css;
  std::string_view js;        // all scripts of ours, one after the other
  std::string_view plotting;  // Chart.js, minified, with its notice
};
const ReportAssets& report_assets();

}  // namespace tensorsmith::tools
