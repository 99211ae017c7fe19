#include "tools/network_folder.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/hash.h"
#include "base/input_file.h"
#include "base/json_text.h"
#include "record/jsonl.h"
#include "tools/console.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kMaxPartBytes = int64_t{1} << 26;
constexpr const char* kSettingsFile = "settings.json";

OrderedJson finite_or_null(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(); }

double number_of(const OrderedJson& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::infinity();
}

Status write_file(const std::string& path, const OrderedJson& json) {
  TS_ASSIGN_OR_RETURN(const auto file, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(file->write_line(json_text(json)));
  return file->commit();
}

bool is_part(const OrderedJson& json) {
  const bool has_all = json.is_object() && json.contains("seconds") && json.contains("speedup") &&
                       json.contains("curve") && json.contains("matched") && json["matched"].is_object() &&
                       json["curve"].is_array() && json["speedup"].is_object() &&
                       json.value("trials", OrderedJson()).is_number_integer() &&
                       json.value("failures", OrderedJson()).is_number_integer();
  if (!has_all) return false;
  for (const OrderedJson& point : json["curve"])
    if (!point.is_array() || point.size() != 2) return false;
  return true;
}

}  // namespace

OrderedJson to_json(const lab::NetworkRun& run) {
  OrderedJson curve = OrderedJson::array(), matched = OrderedJson::object();
  for (const auto& [seconds, kernels] : run.curve)
    curve.push_back({finite_or_null(seconds), finite_or_null(kernels)});
  for (const auto& [method, seconds] : run.matched) matched[method] = finite_or_null(seconds);
  return {{"network", run.network},
          {"method", run.method},
          {"seed", run.seed},
          {"source", run.source.empty() ? OrderedJson() : OrderedJson(run.source)},
          {"seconds", finite_or_null(run.seconds)},
          {"trials", run.trials},
          {"failures", run.failures},
          {"speedup",
           {{"ratio", finite_or_null(run.whole.ratio())},
            {"untuned_seconds", finite_or_null(run.whole.untuned_seconds)},
            {"tuned_seconds", finite_or_null(run.whole.tuned_seconds)},
            {"spread", finite_or_null(run.whole.spread)}}},
          {"worst_difference", finite_or_null(run.worst_difference)},
          {"untuned_kernel_seconds", finite_or_null(run.untuned_kernel_seconds)},
          {"kernel_seconds", finite_or_null(run.kernel_seconds)},
          {"matched", matched},
          {"curve", curve}};
}

std::string file_name_of(const std::string& network) {
  std::string name = network.starts_with("zoo:") ? network.substr(4) : fs::path(network).stem().string();
  for (char& c : name)
    if (c == ':' || c == '/') c = '-';
  return name;
}

Result<NetworkFolder> NetworkFolder::open(const std::string& path, const OrderedJson& settings) {
  NetworkFolder folder(path);
  const std::string file = folder.file(kSettingsFile);
  const auto text = read_input(file, kMaxPartBytes);
  if (!text.ok() && text.error().code != ErrorCode::kNotFound) return text.error();
  if (text.ok()) {
    if (parse_json<OrderedJson>(*text) == settings) return folder;
    return Error{ErrorCode::kMismatch, path,
                 "holds a comparison on another device or with other settings (settings.json); name another "
                 "folder"};
  }
  std::error_code failed;
  if (fs::exists(path, failed) && !fs::is_empty(path, failed))
    return Error{ErrorCode::kInvalidArgument, path,
                 "is not a folder of `compare --whole`, but holds other files; name another folder"};
  fs::create_directories(fs::path(path) / "parts", failed);
  if (failed) return Error{ErrorCode::kIo, path, failed.message()};
  TS_RETURN_IF_ERROR(write_file(file, settings));
  return folder;
}

std::string NetworkFolder::file(const std::string& name) const { return (fs::path(path_) / name).string(); }

std::string NetworkFolder::part_file(const lab::NetworkRun& run) const {
  // Two networks may have files of the same name in different folders.
  return file(fmt::format("parts/{}-{:08x}.{}.{}.json", file_name_of(run.network),
                          Hasher().add(run.network).digest64() & 0xffffffff, run.method, run.seed));
}

bool NetworkFolder::find(lab::NetworkRun& run) const {
  const auto text = read_input(part_file(run), kMaxPartBytes);
  if (!text.ok()) return false;
  const auto json = parse_json<OrderedJson>(*text);
  if (!is_part(json)) return false;
  if (json.value("network", OrderedJson()) != run.network ||
      json.value("method", OrderedJson()) != run.method)
    return false;
  const OrderedJson& speedup = json["speedup"];
  const auto of = [](const OrderedJson& from, const char* name) {
    return number_of(from.value(name, OrderedJson()));
  };
  if (const OrderedJson source = json.value("source", OrderedJson()); source.is_string())
    run.source = source.get<std::string>();
  run.seconds = of(json, "seconds");
  run.trials = json["trials"].get<int64_t>();
  run.failures = json["failures"].get<int64_t>();
  run.whole = {of(speedup, "untuned_seconds"), of(speedup, "tuned_seconds"), of(speedup, "spread")};
  run.worst_difference = of(json, "worst_difference");
  run.untuned_kernel_seconds = of(json, "untuned_kernel_seconds");
  run.kernel_seconds = of(json, "kernel_seconds");
  for (const auto& [method, seconds] : json["matched"].items()) run.matched[method] = number_of(seconds);
  for (const OrderedJson& point : json["curve"])
    run.curve.emplace_back(number_of(point[0]), number_of(point[1]));
  return true;
}

Status NetworkFolder::keep(const lab::NetworkRun& run, record::Database& measured) const {
  TS_ASSIGN_OR_RETURN(const auto records, record::Database::open(file("records.db")));
  TS_ASSIGN_OR_RETURN(const auto copied, records->copy_from(measured));
  static_cast<void>(copied);
  return write_file(part_file(run), to_json(run));
}

}  // namespace tensorsmith::tools
