// Summarizes the imported records of a store, and the left-out ones.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "learn/dataset/import.h"

namespace tensorsmith::tools {

// Lists the reasons for left-out records, "162 are left out, whose timing was stopped after one
// reading ..."; empty if none was left out.
std::string left_out_text(const learn::ImportReport& report);

// All numbers of the report.
nlohmann::json import_json(const learn::ImportReport& report);

}  // namespace tensorsmith::tools
