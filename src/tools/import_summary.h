// What a store was made of, and what of the databases it does not hold.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "learn/dataset/import.h"

namespace tensorsmith::tools {

// "162 are left out, whose timing was stopped after one reading ..."; a reason after the other, empty where nothing is.
std::string left_out_text(const learn::ImportReport& report);

// Each of the report's numbers.
nlohmann::json import_json(const learn::ImportReport& report);

}  // namespace tensorsmith::tools
