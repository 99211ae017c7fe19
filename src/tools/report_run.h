// What `report` and `tune --report` have in common.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/report_data.h"

namespace tensorsmith::tools {

// "command", "seed", ... in the order in which they are shown.
using ReportSettings = std::vector<std::pair<std::string, std::string>>;

// What every report says of how it was made. version: as `tensorsmith --version` prints it.
ReportSettings common_settings(const std::string& version);

// Asks a cost model: the file that is given, or where that is empty the one that is shipped, for records of CPUs; "none":
// nobody. Only the file that is given may fail.
Status add_predictions(const std::string& given, engine::Report& report);

// Which decisions of the search mattered, on all processors.
void add_importance(engine::Report& report);

// Writes the page of report_json(), at once or not at all.
Status write_report(const nlohmann::json& data, const std::string& path);

}  // namespace tensorsmith::tools
