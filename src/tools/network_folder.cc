#include "tools/network_folder.h"

#include <fmt/format.h>

#include <algorithm>
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

// Returns a name for files of a network: "resnet18-batch=4" for "zoo:resnet18:batch=4". Names of ONNX files get
// a hash, since files in different folders may have the same name.
std::string file_name_of(const std::string& network) {
  if (!network.starts_with("zoo:"))
    return fmt::format("{}-{:08x}", fs::path(network).stem().string(),
                       Hasher().add(network).digest64() & 0xffffffff);
  std::string name = network.substr(4);
  for (char& c : name)
    if (c == ':' || c == '/') c = '-';
  return name;
}

bool is_positive(const OrderedJson& json) { return json.is_number() && json.get<double>() > 0; }

bool is_part(const OrderedJson& json) {
  const auto of = [](const OrderedJson& from, const char* name) { return from.value(name, OrderedJson()); };
  if (!json.is_object()) return false;
  const OrderedJson speedup = of(json, "speedup"), curve = of(json, "curve"), matched = of(json, "matched");
  return is_positive(of(json, "seconds")) && of(json, "trials").is_number_integer() &&
         of(json, "failures").is_number_integer() && speedup.is_object() &&
         is_positive(of(speedup, "untuned_seconds")) && is_positive(of(speedup, "tuned_seconds")) &&
         matched.is_object() && std::all_of(matched.begin(), matched.end(), is_positive) &&
         curve.is_array() && std::all_of(curve.begin(), curve.end(), [](const OrderedJson& point) {
           return point.is_array() && point.size() == 2 && is_positive(point[0]) && is_positive(point[1]);
         });
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

Result<NetworkFolder> NetworkFolder::open(const std::string& path, const OrderedJson& settings) {
  NetworkFolder folder(path);
  const std::string file = folder.file(kSettingsFile);
  const auto text = read_input(file, kMaxPartBytes);
  if (!text.ok() && text.error().code != ErrorCode::kNotFound) return text.error();
  const std::string parts = folder.file("parts");
  std::error_code ignored, failed;
  const bool same = text.ok() && parse_json<OrderedJson>(*text) == settings;
  // Without a finished part, no result depends on the settings of an earlier command.
  if (text.ok() && !same && fs::exists(parts, ignored) && !fs::is_empty(parts, ignored))
    return Error{ErrorCode::kMismatch, path,
                 "holds a comparison on another device or with other settings (settings.json); name another "
                 "folder"};
  if (!text.ok() && fs::exists(path, ignored) && !fs::is_empty(path, ignored))
    return Error{ErrorCode::kInvalidArgument, path,
                 "is not a folder of `compare --whole`, but holds other files; name another folder"};
  // The settings come first: a folder with them is continued, also if the program is killed here.
  fs::create_directories(path, failed);
  if (failed) return Error{ErrorCode::kIo, path, failed.message()};
  if (!same) TS_RETURN_IF_ERROR(write_file(file, settings));
  fs::create_directories(parts, failed);
  if (failed) return Error{ErrorCode::kIo, parts, failed.message()};
  return folder;
}

std::string NetworkFolder::file(const std::string& name) const { return (fs::path(path_) / name).string(); }

std::string NetworkFolder::curves_file(const std::string& network) const {
  return file("curves_" + file_name_of(network) + ".svg");
}

std::string NetworkFolder::part_file(const lab::NetworkRun& run) const {
  return file(fmt::format("parts/{}.{}.{}.json", file_name_of(run.network), run.method, run.seed));
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
