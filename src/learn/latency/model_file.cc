#include "learn/latency/model_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/input_file.h"
#include "base/json_text.h"
#include "record/jsonl.h"

namespace tensorsmith::learn {

namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "tensorsmith latency model";
constexpr int64_t kMaxModelFile = int64_t{4} << 30;

Error corrupt_model(const std::string& what) { return {ErrorCode::kCorrupt, "", what}; }

// Replaces bytes that are not UTF-8 (as in a file name in the command) by U+FFFD.
std::string model_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

constexpr const char* kNewDevice = "new_device";
constexpr const char* kNewKind = "new_kind";
constexpr const char* kDeviceKinds[] = {"cpu", "gpu"};  // in the order of target::DeviceKind

Json held_out_json(const std::array<HeldOutError, 2>& errors) {
  Json out = Json::object();
  for (size_t k = 0; k < errors.size(); ++k) {
    const HeldOutError& e = errors[k];
    if (!e.known()) continue;
    out[kDeviceKinds[k]] = {{"shift", e.shift},   {"log_sigma", e.log_sigma}, {"log_90", e.log_90},
                            {"log_95", e.log_95}, {"devices", e.devices},     {"records", e.records},
                            {"source", e.source}};
    if (e.other_sizes > 1) out[kDeviceKinds[k]]["other_sizes"] = e.other_sizes;
  }
  return out;
}

Json seen_json(const std::vector<SeenDevice>& seen) {
  Json out = Json::array();
  for (const SeenDevice& d : seen) {
    out.push_back({{"name", d.name},
                   {"kind", kDeviceKinds[static_cast<size_t>(d.kind)]},
                   {"cpu", d.cpu},
                   {"arch", d.arch},
                   {"cores", d.cores},
                   {"vector_bytes", d.vector_bytes},
                   {"clock_ghz", d.clock_ghz},
                   {"memory_bandwidth_gbs", d.memory_bandwidth_gbs}});
  }
  return out;
}

std::map<std::string, std::string> metadata_of(const ModelCard& card) {
  return {{"format", kFormat},
          {"seen", model_text(seen_json(card.seen))},
          {kNewDevice, model_text(held_out_json(card.new_device))},
          {kNewKind, model_text(held_out_json(card.new_kind))},
          {"version", std::to_string(kModelFileVersion)},
          {"kind", card.kind},
          {"feature_version", std::to_string(card.feature_version)},
          {"store_hash", card.store_hash},
          {"split", card.split},
          {"devices", model_text(card.devices)},
          {"workloads", model_text(card.workloads)},
          {"records", std::to_string(card.records)},
          {"seed", std::to_string(card.seed)},
          {"command", card.command},
          {"parameters", card.parameters},
          {"metrics", card.metrics}};
}

class MetadataReader {
 public:
  explicit MetadataReader(const Json& metadata) : metadata_(metadata) {}
  Result<std::string> text(const char* name) const {
    const auto it = metadata_.find(name);
    if (it == metadata_.end()) return corrupt_model(std::string("the model card has no \"") + name + "\"");
    return it->get<std::string>();
  }
  template <class T>
  Result<T> number(const char* name) const {
    TS_ASSIGN_OR_RETURN(const std::string digits, text(name));
    T value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      return corrupt_model(std::string("\"") + name + "\" of the model card is not a number");
    return value;
  }
  Result<std::vector<std::string>> list(const char* name) const {
    TS_ASSIGN_OR_RETURN(const std::string value, text(name));
    const Json json = parse_json<Json>(value);
    std::vector<std::string> out;
    const Error bad =
        corrupt_model(std::string("\"") + name + "\" of the model card is not a list of strings");
    if (!json.is_array()) return bad;
    for (const Json& item : json) {
      if (!item.is_string()) return bad;
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  // Returns the text of a JSON object.
  Result<std::string> object(const char* name) const {
    TS_ASSIGN_OR_RETURN(std::string value, text(name));
    if (!parse_json<Json>(value).is_object())
      return corrupt_model(std::string("\"") + name + "\" of the model card is not a JSON object");
    return value;
  }

 private:
  const Json& metadata_;
};

// Parses the metadata entry "seen", which older files lack.
Result<std::vector<SeenDevice>> parse_seen(const Json& metadata) {
  std::vector<SeenDevice> out;
  const auto it = metadata.find("seen");
  if (it == metadata.end()) return out;
  const Json json = parse_json<Json>(it->get<std::string>());
  const Error bad = corrupt_model("\"seen\" of the model card is not a list of devices");
  if (!json.is_array()) return bad;
  try {
    for (const Json& item : json) {
      SeenDevice d;
      const std::string kind = item.at("kind");
      if (kind != kDeviceKinds[0] && kind != kDeviceKinds[1]) return bad;
      d.kind = kind == kDeviceKinds[0] ? target::DeviceKind::kCpu : target::DeviceKind::kGpu;
      d.name = item.at("name");
      d.cpu = item.at("cpu");
      d.arch = item.value("arch", "");  // older files lack it
      d.cores = item.at("cores");
      d.vector_bytes = item.at("vector_bytes");
      d.clock_ghz = item.at("clock_ghz");
      d.memory_bandwidth_gbs = item.at("memory_bandwidth_gbs");
      out.push_back(std::move(d));
    }
  } catch (const nlohmann::json::exception&) {
    return bad;
  }
  return out;
}

Status parse_held_out(const Json& metadata, const char* name, std::array<HeldOutError, 2>& out) {
  const auto it = metadata.find(name);
  if (it == metadata.end()) return {};
  const Json json = parse_json<Json>(it->get<std::string>());
  const Error bad =
      corrupt_model("\"" + std::string(name) + "\" of the model card does not contain the errors of devices");
  if (!json.is_object()) return bad;
  try {
    for (size_t k = 0; k < out.size(); ++k) {
      if (!json.contains(kDeviceKinds[k])) continue;
      const Json& item = json[kDeviceKinds[k]];
      HeldOutError e;
      e.shift = item.at("shift");
      e.log_sigma = item.at("log_sigma");
      e.log_90 = item.at("log_90");
      e.log_95 = item.at("log_95");
      e.devices = item.at("devices");
      e.records = item.at("records");
      e.source = item.at("source");
      e.other_sizes = item.value("other_sizes", 1.0);
      if (!(e.other_sizes >= 1 && e.other_sizes < 100)) return bad;
      if (!(std::abs(e.shift) < 100) || !(e.log_sigma >= 0 && e.log_sigma <= e.log_90) ||
          !(e.log_90 <= e.log_95 && e.log_95 < 100))
        return bad;
      out[k] = std::move(e);
    }
  } catch (const nlohmann::json::exception&) {
    return bad;
  }
  return {};
}

Result<ModelCard> parse_card(const Json& metadata) {
  for (const auto& [name, value] : metadata.items()) {
    if (!value.is_string()) return corrupt_model("\"" + name + "\" of the metadata is not a string");
  }
  const MetadataReader reader(metadata);
  TS_ASSIGN_OR_RETURN(const std::string format, reader.text("format"));
  if (format != kFormat) return corrupt_model("is a safetensors file, but not a cost model");
  TS_ASSIGN_OR_RETURN(const int version, reader.number<int>("version"));
  if (version != kModelFileVersion)
    return Error{ErrorCode::kMismatch, "",
                 "has version " + std::to_string(version) +
                     " of the format, but this program reads version " + std::to_string(kModelFileVersion) +
                     "; train the model again"};
  ModelCard card;
  TS_ASSIGN_OR_RETURN(card.feature_version, reader.number<int>("feature_version"));
  if (card.feature_version != feature::kPerStoreVersion)
    return Error{ErrorCode::kMismatch, "",
                 "was trained on another version of the features; train the model again"};
  TS_ASSIGN_OR_RETURN(card.kind, reader.text("kind"));
  TS_ASSIGN_OR_RETURN(card.store_hash, reader.text("store_hash"));
  TS_ASSIGN_OR_RETURN(card.split, reader.text("split"));
  TS_ASSIGN_OR_RETURN(card.devices, reader.list("devices"));
  TS_ASSIGN_OR_RETURN(card.workloads, reader.list("workloads"));
  TS_ASSIGN_OR_RETURN(card.records, reader.number<int64_t>("records"));
  TS_ASSIGN_OR_RETURN(card.seed, reader.number<uint64_t>("seed"));
  TS_ASSIGN_OR_RETURN(card.command, reader.text("command"));
  TS_ASSIGN_OR_RETURN(card.parameters, reader.object("parameters"));
  TS_ASSIGN_OR_RETURN(card.metrics, reader.object("metrics"));
  TS_ASSIGN_OR_RETURN(card.seen, parse_seen(metadata));
  TS_RETURN_IF_ERROR(parse_held_out(metadata, kNewDevice, card.new_device));
  TS_RETURN_IF_ERROR(parse_held_out(metadata, kNewKind, card.new_kind));
  return card;
}

}  // namespace

std::string to_bytes(const ModelFile& file) {
  TensorFile whole = file;
  whole.metadata = metadata_of(file.card);
  return to_bytes(whole);
}

Result<ModelFile> parse_model_file(std::string_view bytes) {
  ModelFile file;
  const auto read_card = [&](const Metadata& metadata) -> Status {
    TS_ASSIGN_OR_RETURN(file.card, parse_card(metadata));
    return {};
  };
  TS_ASSIGN_OR_RETURN(static_cast<TensorFile&>(file), parse_tensor_file(bytes, read_card));
  return file;
}

Status write_model_file(const ModelFile& file, const std::string& path) {
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(writer->write(to_bytes(file)));
  return writer->commit();
}

Result<ModelFile> read_model_file(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, kMaxModelFile));
  auto file = parse_model_file(bytes);
  if (!file.ok()) return Error{file.error().code, path, file.error().reason};
  return file;
}

}  // namespace tensorsmith::learn
