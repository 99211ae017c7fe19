// Code shared by `report` and `tune --report`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/report/report_data.h"

namespace tensorsmith::tools {

// Pairs of name and value ("command", "seed", ...) in display order.
using ReportSettings = std::vector<std::pair<std::string, std::string>>;

// Settings that every report states. `version` is as printed by `tensorsmith --version`.
ReportSettings common_settings(const std::string& version);

// Adds a cost model's predictions: those of the given file or, if `given` is empty, of the shipped
// model, for records of CPUs; "none": no predictions. Only a given file can cause an error.
Status add_predictions(const std::string& given, engine::Report& report);

// Adds which search decisions mattered, computed on all processors.
void add_importance(engine::Report& report);

// Writes the page for the data of report_json() atomically.
Status write_report(const nlohmann::json& data, const std::string& path);

}  // namespace tensorsmith::tools
