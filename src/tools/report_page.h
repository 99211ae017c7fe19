// The report page: one HTML file with its data, its own scripts and styles and a plotting library, which asks nothing of
// any network.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/report_data.h"

namespace tensorsmith::tools {

// The comment by which a page of ours is known.
inline constexpr const char* kReportMark = "<!-- tensorsmith report -->";

// Shown by a page that changes while a run goes on.
struct ReportLive {
  bool running = true;
  std::string state;   // for people: "measuring  12 s / 1:00 ..."; at the end what became of the run
  std::string url;     // where the page asks for newer data, on its own host
  std::string result;  // for people: where the result is written to
  std::string phase;   // "measuring schedules"
  double elapsed_seconds = 0;
  std::optional<double> left_seconds = {};  // nothing: not known
};

// What the page reads; docs/report.md lists the members. Numbers that are not known are null.
nlohmann::json report_json(const engine::Report& report);
// With a member "live", as of a page that is served while a run goes on.
nlohmann::json report_json(const engine::Report& report, const ReportLive& live);

// Whether the file is a page of ours; false where it cannot be read.
bool is_report_page(const std::string& path);
// The data of such a page. kCorrupt where they are damaged; kUnsupported where another version made them.
Result<nlohmann::json> read_report_page(const std::string& path);

// The page of report_json(). Whatever text the data hold, none of it becomes markup or script.
std::string report_page(const nlohmann::json& data);

}  // namespace tensorsmith::tools
