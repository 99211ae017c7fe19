#include "tools/import_summary.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace tensorsmith::tools {

std::string left_out_text(const learn::ImportReport& report) {
  const std::array<std::pair<int64_t, const char*>, 4> reasons = {
      {{report.stopped_early,
        "because their timing was stopped early: one reading was several times the task's fastest, which "
        "is too little to learn from"},
       {report.corrupt, "because they cannot be used (see the warnings)"},
       {report.other_versions, "because another version of Tensorsmith measured them"},
       {report.repeated, "because an earlier database has them too"}}};
  std::string out;
  for (const auto& [count, reason] : reasons) {
    if (count > 0) out += fmt::format("{}{} left out {}", out.empty() ? "" : "; ", count, reason);
  }
  return out;
}

nlohmann::json import_json(const learn::ImportReport& report) {
  return {{"records", report.records},
          {"failed", report.failed},
          {"corrupt", report.corrupt},
          {"stopped_early", report.stopped_early},
          {"other_versions", report.other_versions},
          {"repeated", report.repeated}};
}

}  // namespace tensorsmith::tools
