#include "tools/report_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/input_file.h"
#include "base/json_text.h"
#include "engine/report/report_json.h"
#include "record/disturbance.h"
#include "tools/console.h"
#include "tools/report_assets.h"
#include "tools/svg.h"

namespace tensorsmith::tools {
namespace {

using Json = nlohmann::json;

// Version of the page's data; pages of other versions cannot be read.
constexpr int kDataVersion = 2;
constexpr int64_t kMaxPageBytes = int64_t{256} << 20;
constexpr std::string_view kDataBegins = "<script type=\"application/json\" id=\"data\">";

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json number_if(double value) { return std::isfinite(value) && value > 0 ? Json(value) : Json(); }

Json roofs_json(const std::vector<engine::ReportRoof>& roofs) {
  Json list = Json::array();
  for (const engine::ReportRoof& roof : roofs)
    list.push_back({{"name", roof.name},
                    {"flops_per_second", number_if(roof.flops_per_second)},
                    {"bytes_per_second", number_if(roof.bytes_per_second)},
                    {"assumed", roof.assumed}});
  return list;
}

Json points_json(const std::vector<engine::ReportPoint>& points) {
  Json at = Json::array(), seconds = Json::array();
  for (const engine::ReportPoint& point : points) {
    at.push_back(point.at_seconds);
    seconds.push_back(number(point.seconds));
  }
  return {{"at", at}, {"seconds", seconds}};
}

Json setup_json(const engine::ReportSetup& setup) {
  const std::string name = setup.device ? setup.device->name : "not described";
  return {{"device", name},
          {"description", setup.device ? setup.device->description : ""},
          {"device_key", setup.device_key},
          {"threads", setup.settings.threads},
          {"cold_caches", setup.settings.flush_cache},
          {"estimate", engine::to_json(setup.estimate)},
          {"roofs", roofs_json(setup.roofs)}};
}

// Assigns indices to distinct names.
class Names {
 public:
  size_t place(std::string_view name) {
    const auto [at, fresh] = places_.emplace(std::string(name), places_.size());
    if (fresh) list_.push_back(std::string(name));
    return at->second;
  }
  const Json& list() const { return list_; }

 private:
  std::map<std::string, size_t> places_;
  Json list_ = Json::array();
};

// Lists records by column, which keeps a page with 10,000 records small.
Json records_json(const engine::ReportTask& task, Names& outcomes, Names& reasons) {
  Json at = Json::array(), seconds = Json::array(), outcome = Json::array(), reason = Json::array(),
       implausible = Json::array(), run = Json::array();
  for (size_t r = 0; r < task.records.size(); ++r) {
    const engine::ReportRecord& record = task.records[r];
    at.push_back(record.at_seconds);
    seconds.push_back(number(record.seconds));
    outcome.push_back(outcomes.place(record::to_string(record.outcome)));
    reason.push_back(reasons.place(record::to_string(record.reason)));
    run.push_back(record.run);
    if (!record.plausible) implausible.push_back(r);
  }
  return {{"at", at},         {"seconds", seconds},         {"outcome", outcome},
          {"reason", reason}, {"implausible", implausible}, {"run", run}};
}

// Lists values by column: [value, programs, fastest, median].
Json importance_json(const std::optional<engine::ReportImportance>& importance) {
  if (!importance) return {};
  Json decisions = Json::array();
  for (const engine::ReportDecision& decision : importance->decisions) {
    Json values = Json::array();
    for (const engine::ReportDecisionValue& v : decision.values)
      values.push_back({v.value, v.count, v.best_seconds, v.median_seconds});
    decisions.push_back({{"name", decision.name},
                         {"role", decision.role},
                         {"share", decision.share},
                         {"chance", decision.chance},
                         {"values", values}});
  }
  return {{"programs", importance->programs}, {"decisions", decisions}};
}

// Returns the disturbance of the best program's time; null unless it makes the time doubtful.
Json doubtful_disturbance(const engine::ReportTask& task) {
  if (!task.best) return {};
  const auto& disturbance = task.records[*task.best].disturbance;
  return record::is_doubtful(disturbance) ? Json(*disturbance) : Json();
}

Json task_json(const engine::ReportTask& task, Names& outcomes, Names& reasons) {
  Json failures = Json::array();
  for (const engine::ReportFailure& failure : task.failures)
    failures.push_back({{"outcome", record::to_string(failure.outcome)},
                        {"reason", failure.reason},
                        {"count", failure.count}});
  Json out = {{"key", task.key},
              {"name", task.name},
              {"setup", task.setup},
              {"flops", number_if(task.flops)},
              {"bytes", number_if(task.bytes)},
              {"untuned_seconds", number(task.untuned_seconds)},
              {"best_seconds", number(task.best_seconds)},
              {"best", task.best ? Json(*task.best) : Json()},
              {"strategy", task.strategy},
              {"disturbance", doubtful_disturbance(task)},
              {"trace", task.best ? task.records[*task.best].trace : ""},
              {"loops", task.loops},
              {"no_loops_because", task.no_loops_because},
              {"failures", failures},
              {"importance", importance_json(task.importance)}};
  out["records"] = records_json(task, outcomes, reasons);
  return out;
}

Json kernels_json(const engine::ReportModel& model) {
  Json list = Json::array();
  for (const engine::ReportKernel& kernel : model.kernels)
    list.push_back({{"task", kernel.task},
                    {"place", kernel.place ? Json(*kernel.place) : Json()},
                    {"begin_seconds", kernel.begin_seconds},
                    {"seconds", kernel.seconds},
                    {"flops", number_if(kernel.flops)},
                    {"bytes", number_if(kernel.bytes)}});
  return list;
}

Json model_json(const engine::ReportModel& model) {
  Json tasks = Json::array();
  for (const engine::ReportModelTask& task : model.tasks)
    tasks.push_back({{"task", task.task},
                     {"calls", task.calls},
                     {"untuned_in_model", number(task.untuned_in_model)},
                     {"tuned_in_model", number(task.tuned_in_model)},
                     {"kept_untuned", task.kept_untuned}});
  return {{"name", model.name},
          {"directory", model.directory},
          {"device", model.device},
          {"tool_version", model.tool_version},
          {"threads", model.threads},
          {"tasks", tasks},
          {"end_to_end", model.end_to_end ? engine::to_json(*model.end_to_end) : Json()},
          {"estimate", engine::to_json(model.estimate)},
          {"best_so_far", points_json(model.best_so_far)},
          {"run_seconds", model.run_seconds},
          {"not_run_because", model.not_run_because},
          {"kernels", kernels_json(model)},
          {"kernels_run_seconds", number_if(model.kernels_run_seconds)},
          {"roofs", roofs_json(model.roofs)}};
}

// Escapes JSON for a <script> element, where an end tag or a comment inside a string would end the
// script or change how it is parsed.
std::string in_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

nlohmann::json report_json(const engine::Report& report) {
  Names outcomes, reasons;
  Json out = {{"version", kDataVersion}, {"title", report.title}, {"predictor", report.predictor}};
  for (const char* list : {"setups", "tasks", "best_so_far", "models", "peers", "predictions", "settings"})
    out[list] = Json::array();
  for (const auto& setup : report.setups) out["setups"].push_back(setup_json(setup));
  for (const auto& task : report.tasks) out["tasks"].push_back(task_json(task, outcomes, reasons));
  for (const auto& points : report.best_so_far) out["best_so_far"].push_back(points_json(points));
  for (const auto& model : report.models) out["models"].push_back(model_json(model));
  for (const engine::ReportPeer& peer : report.peers)
    out["peers"].push_back({{"model", peer.model},
                            {"peer", peer.peer},
                            {"threads", peer.threads},
                            {"seconds", peer.seconds},
                            {"peer_seconds", peer.peer_seconds},
                            {"ratio", peer.ratio},
                            {"low", peer.low},
                            {"high", peer.high}});
  for (const engine::ReportPrediction& p : report.predictions)
    out["predictions"].push_back({{"task", p.task},
                                  {"record", p.record},
                                  {"seconds", p.seconds},
                                  {"low_seconds", number_if(p.low_seconds)},
                                  {"high_seconds", number_if(p.high_seconds)}});
  for (const auto& [name, value] : report.settings) out["settings"].push_back({name, value});
  out["notes"] = report.notes;
  out["outcomes"] = outcomes.list();
  out["reasons"] = reasons.list();
  return out;
}

nlohmann::json report_json(const engine::Report& report, const ReportLive& live) {
  Json out = report_json(report);
  out["live"] = {{"running", live.running},
                 {"state", live.state},
                 {"url", live.url},
                 {"result", live.result},
                 {"phase", live.phase},
                 {"elapsed_seconds", live.elapsed_seconds},
                 {"left_seconds", live.left_seconds ? Json(*live.left_seconds) : Json()}};
  return out;
}

bool is_report_page(const std::string& path) {
  const auto file = open_input(path);
  if (!file.ok()) return false;
  // The mark is in the head, before any text of the data.
  const auto bytes = input_bytes(*file, path);
  if (!bytes.ok()) return false;
  std::string head(std::min<int64_t>(*bytes, 1024), '\0');
  return read_exactly(*file, path, 0, head.data(), std::ssize(head)).ok() &&
         head.find(kReportMark) != std::string::npos;
}

Result<nlohmann::json> read_report_page(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string page, read_input(path, kMaxPageBytes));
  const size_t from = page.find(kDataBegins);
  const size_t to = from == std::string::npos ? from : page.find("</script>", from);
  if (to == std::string::npos) return Error{ErrorCode::kCorrupt, path, "is a report page without its data"};
  Json data = parse_json<Json>(
      std::string_view(page).substr(from + kDataBegins.size(), to - from - kDataBegins.size()));
  if (!data.is_object() || !data.contains("version"))
    return Error{ErrorCode::kCorrupt, path, "is a report page whose data are damaged"};
  if (data["version"] != kDataVersion)
    return Error{ErrorCode::kUnsupported, path,
                 "was made by another version of Tensorsmith; make it again with `tensorsmith report`"};
  for (const char* list : {"setups", "tasks", "models", "settings", "best_so_far"})
    if (!data.contains(list) || !data[list].is_array())
      return Error{ErrorCode::kCorrupt, path,
                   std::string("is a report page without the list '") + list + "'"};
  data.erase("beside");  // a page shows at most two runs
  data.erase("live");
  return data;
}

std::string report_page(const nlohmann::json& data) {
  const ReportAssets& assets = report_assets();
  const std::map<std::string_view, std::string> parts = {
      {"MARK", kReportMark},
      {"TITLE", svg_text(data.value("title", ""))},
      {"CONNECT", data.contains("live") ? "'self'" : "'none'"},
      {"CSS", std::string(assets.css)},
      {"DATA", in_script(json_text(data))},
      {"LIBRARY", std::string(assets.plotting)},
      {"JS", std::string(assets.js)}};
  std::string out;
  for (std::string_view rest = assets.html; !rest.empty();) {
    const size_t at = rest.find('@');
    const size_t end = at == std::string_view::npos ? at : rest.find('@', at + 1);
    if (end == std::string_view::npos) return out.append(rest);
    const auto part = parts.find(rest.substr(at + 1, end - at - 1));
    TS_CHECK(part != parts.end(), "the report page has a placeholder without content");
    out.append(rest.substr(0, at)).append(part->second);
    rest.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace tensorsmith::tools
