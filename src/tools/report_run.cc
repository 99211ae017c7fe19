#include "tools/report_run.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/processors.h"
#include "base/shipped_file.h"
#include "engine/report/report_importance.h"
#include "engine/report/report_predictions.h"
#include "lab/kinds/kinds.h"
#include "record/jsonl.h"
#include "tools/command_line.h"
#include "tools/report_page.h"

namespace tensorsmith::tools {
namespace {

std::string utc_date() {
  const auto now = static_cast<std::time_t>(SystemClock().unix_milliseconds() / 1000);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts)};
}

}  // namespace

ReportSettings common_settings(const std::string& version) {
  return {{"command", command_line()}, {"made", utc_date()}, {"version", version}};
}

Status add_predictions(const std::string& given, engine::Report& report) {
  const int threads = std::max(1, processors().usable);
  if (given == "none") return {};
  if (!given.empty()) return engine::add_predictions(given, lab::cost_model_kinds(), threads, report);
  const bool cpu = std::any_of(report.setups.begin(), report.setups.end(), [](const auto& setup) {
    return setup.device && setup.device->kind() == target::DeviceKind::kCpu;
  });
  const std::string shipped = shipped_file(kCostModelFile);
  if (!cpu || shipped.empty()) return {};
  if (auto status = engine::add_predictions(shipped, lab::cost_model_kinds(), threads, report); !status.ok())
    report.notes.push_back("no predictions: " + status.error().message());
  return {};
}

void add_importance(engine::Report& report) {
  engine::add_importance(std::max(1, processors().usable), report);
}

Status write_report(const nlohmann::json& data, const std::string& path) {
  TS_ASSIGN_OR_RETURN(auto file, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(file->write(report_page(data)));
  return file->commit();
}

}  // namespace tensorsmith::tools
