// The report page: one self-contained HTML file with its data, scripts, styles and a plotting
// library. It makes no network requests.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/report/report_data.h"

namespace tensorsmith::tools {

// The comment that identifies a report page.
inline constexpr const char* kReportMark = "<!-- tensorsmith report -->";

// State of a page that is updated during a run.
struct ReportLive {
  bool running = true;
  std::string state;   // display text: "measuring  12 s / 1:00 ..."; at the end the outcome of the run
  std::string url;     // where the page polls for newer data, on its own host
  std::string result;  // display text: where the result is written to
  std::string phase;   // "measuring schedules"
  double elapsed_seconds = 0;
  std::optional<double> left_seconds = {};  // nullopt: not known
};

// Returns the data of the page; docs/report.md lists the members. Unknown numbers are null.
nlohmann::json report_json(const engine::Report& report);
// As above, with a member "live", for a page that is served during a run.
nlohmann::json report_json(const engine::Report& report, const ReportLive& live);

// Whether the file is a report page; false if it cannot be read.
bool is_report_page(const std::string& path);
// Returns the data of such a page. kCorrupt if they are damaged; kUnsupported if another version
// wrote them.
Result<nlohmann::json> read_report_page(const std::string& path);

// Returns the page for the data of report_json(). No text in the data can become markup or script.
std::string report_page(const nlohmann::json& data);

}  // namespace tensorsmith::tools
