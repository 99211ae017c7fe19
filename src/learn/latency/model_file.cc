#include "learn/latency/model_file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/hash.h"
#include "base/input_file.h"
#include "base/json_text.h"
#include "record/jsonl.h"

namespace tensorsmith::learn {

static_assert(std::endian::native == std::endian::little, "model files are written as memory is");

namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "tensorsmith latency model";
constexpr const char* kMetadata = "__metadata__";
// What safetensors allows for a header, and far more than any model of ours has.
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr int64_t kMaxFile = int64_t{4} << 30;
constexpr TensorType kTypes[] = {TensorType::kF64, TensorType::kF32, TensorType::kI32, TensorType::kU16,
                                 TensorType::kU8};

Error corrupt(const std::string& what) { return {ErrorCode::kCorrupt, "", what}; }

// -1 where the number does not fit.
int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return -1;
    if (extent > 0 && count > std::numeric_limits<int64_t>::max() / 16 / extent) return -1;
    count *= extent;
  }
  return count;
}

// Bytes that are not UTF-8 (a file name in the command) become U+FFFD.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

constexpr const char* kNewDevice = "new_device";
constexpr const char* kNewKind = "new_kind";
constexpr const char* kDeviceKinds[] = {"cpu", "gpu"};  // by target::DeviceKind

Json held_out_json(const std::array<HeldOutError, 2>& errors) {
  Json out = Json::object();
  for (size_t k = 0; k < errors.size(); ++k) {
    const HeldOutError& e = errors[k];
    if (!e.known()) continue;
    out[kDeviceKinds[k]] = {{"shift", e.shift},   {"log_sigma", e.log_sigma}, {"log_90", e.log_90},
                            {"log_95", e.log_95}, {"devices", e.devices},     {"records", e.records},
                            {"source", e.source}};
  }
  return out;
}

Json seen_json(const std::vector<SeenDevice>& seen) {
  Json out = Json::array();
  for (const SeenDevice& d : seen) {
    out.push_back({{"name", d.name},
                   {"kind", kDeviceKinds[static_cast<size_t>(d.kind)]},
                   {"cpu", d.cpu},
                   {"cores", d.cores},
                   {"vector_bytes", d.vector_bytes},
                   {"clock_ghz", d.clock_ghz},
                   {"memory_bandwidth_gbs", d.memory_bandwidth_gbs}});
  }
  return out;
}

Json metadata_of(const ModelCard& card) {
  return {{"format", kFormat},
          {"seen", dump(seen_json(card.seen))},
          {kNewDevice, dump(held_out_json(card.new_device))},
          {kNewKind, dump(held_out_json(card.new_kind))},
          {"version", std::to_string(kModelFileVersion)},
          {"kind", card.kind},
          {"feature_version", std::to_string(card.feature_version)},
          {"store_hash", card.store_hash},
          {"split", card.split},
          {"devices", dump(card.devices)},
          {"workloads", dump(card.workloads)},
          {"records", std::to_string(card.records)},
          {"seed", std::to_string(card.seed)},
          {"command", card.command},
          {"parameters", card.parameters},
          {"metrics", card.metrics}};
}

// Of everything but the hash itself.
std::string hash_of(Json header, std::string_view data) {
  header[kMetadata].erase("hash");
  return Hasher().add(dump(header)).add(data).hex128();
}

class MetadataReader {
 public:
  explicit MetadataReader(const Json& metadata) : metadata_(metadata) {}
  Result<std::string> text(const char* name) const {
    const auto it = metadata_.find(name);
    if (it == metadata_.end()) return corrupt(std::string("the card has no \"") + name + "\"");
    return it->get<std::string>();
  }
  template <class T>
  Result<T> number(const char* name) const {
    TS_ASSIGN_OR_RETURN(const std::string digits, text(name));
    T value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      return corrupt(std::string("\"") + name + "\" of the card is no number");
    return value;
  }
  Result<std::vector<std::string>> list(const char* name) const {
    TS_ASSIGN_OR_RETURN(const std::string value, text(name));
    const Json json = parse_json<Json>(value);
    std::vector<std::string> out;
    const Error bad = corrupt(std::string("\"") + name + "\" of the card is no list of texts");
    if (!json.is_array()) return bad;
    for (const Json& item : json) {
      if (!item.is_string()) return bad;
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  // A JSON object, as text.
  Result<std::string> object(const char* name) const {
    TS_ASSIGN_OR_RETURN(std::string value, text(name));
    if (!parse_json<Json>(value).is_object())
      return corrupt(std::string("\"") + name + "\" of the card is no JSON object");
    return value;
  }

 private:
  const Json& metadata_;
};

// Of a text of the metadata that files of before do not have.
Result<std::vector<SeenDevice>> parse_seen(const Json& metadata) {
  std::vector<SeenDevice> out;
  const auto it = metadata.find("seen");
  if (it == metadata.end()) return out;
  const Json json = Json::parse(it->get<std::string>(), nullptr, false);
  const Error bad = corrupt("\"seen\" of the card is no list of devices");
  if (!json.is_array()) return bad;
  try {
    for (const Json& item : json) {
      SeenDevice d;
      const std::string kind = item.at("kind");
      if (kind != kDeviceKinds[0] && kind != kDeviceKinds[1]) return bad;
      d.kind = kind == kDeviceKinds[0] ? target::DeviceKind::kCpu : target::DeviceKind::kGpu;
      d.name = item.at("name");
      d.cpu = item.at("cpu");
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
  const Json json = Json::parse(it->get<std::string>(), nullptr, false);
  const Error bad = corrupt("\"" + std::string(name) + "\" of the card has no errors of devices");
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
    if (!value.is_string()) return corrupt("\"" + name + "\" of the metadata is no text");
  }
  const MetadataReader reader(metadata);
  TS_ASSIGN_OR_RETURN(const std::string format, reader.text("format"));
  if (format != kFormat) return corrupt("is a safetensors file of something else than a cost model");
  TS_ASSIGN_OR_RETURN(const int version, reader.number<int>("version"));
  if (version != kModelFileVersion)
    return Error{ErrorCode::kMismatch, "",
                 "has version " + std::to_string(version) + " of the format, this program reads version " +
                     std::to_string(kModelFileVersion) + "; train the model again"};
  ModelCard card;
  TS_ASSIGN_OR_RETURN(card.feature_version, reader.number<int>("feature_version"));
  if (card.feature_version != feature::kPerStoreVersion)
    return Error{ErrorCode::kMismatch, "", "was trained on another version of the features; train it again"};
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

struct Placed {
  ModelTensor tensor;
  int64_t begin = 0, end = 0;
};

Result<Placed> parse_entry(const std::string& name, const Json& entry, int64_t data_bytes) {
  const auto bad = [&](const std::string& what) { return corrupt("tensor '" + name + "' " + what); };
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    return bad("is not described by dtype, shape and data_offsets");
  Placed placed;
  placed.tensor.name = name;
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](TensorType t) { return entry["dtype"] == Json(to_string(t)); });
  if (type == std::end(kTypes)) return bad("has an element type that models do not use");
  placed.tensor.type = *type;
  const auto numbers = [](const Json& list, std::vector<int64_t>& out) {
    if (!list.is_array()) return false;
    for (const Json& item : list) {
      if (!item.is_number_integer()) return false;
      // A number above the signed range becomes negative, which no length and no offset is.
      out.push_back(item.get<int64_t>());
      if (out.back() < 0) return false;
    }
    return true;
  };
  std::vector<int64_t> offsets;
  if (!numbers(entry["shape"], placed.tensor.shape) || !numbers(entry["data_offsets"], offsets) ||
      offsets.size() != 2)
    return bad("has a shape or offsets that are no lists of lengths");
  placed.begin = offsets[0];
  placed.end = offsets[1];
  const int64_t elements = elements_of(placed.tensor.shape);
  if (placed.begin > placed.end || placed.end > data_bytes || elements < 0 ||
      placed.end - placed.begin != elements * bytes_of(*type))
    return bad("lies outside of the file or does not have the size of its shape");
  return placed;
}

}  // namespace

std::string_view to_string(TensorType type) {
  switch (type) {
    case TensorType::kF64:
      return "F64";
    case TensorType::kF32:
      return "F32";
    case TensorType::kI32:
      return "I32";
    case TensorType::kU16:
      return "U16";
    case TensorType::kU8:
      return "U8";
  }
  return "?";
}

int64_t bytes_of(TensorType type) {
  switch (type) {
    case TensorType::kF64:
      return 8;
    case TensorType::kF32:
    case TensorType::kI32:
      return 4;
    case TensorType::kU16:
      return 2;
    case TensorType::kU8:
      return 1;
  }
  return 1;
}

const ModelTensor* ModelFile::find(std::string_view name) const {
  const auto it =
      std::find_if(tensors.begin(), tensors.end(), [&](const ModelTensor& t) { return t.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

void add_tensor(ModelFile& file, std::string name, TensorType type, std::vector<int64_t> shape,
                std::span<const std::byte> data) {
  TS_CHECK(!name.empty() && name != kMetadata && file.find(name) == nullptr,
           "model tensors need names of their own: " + name);
  TS_CHECK(elements_of(shape) >= 0 && static_cast<size_t>(elements_of(shape) * bytes_of(type)) == data.size(),
           "tensor " + name + " does not have the size of its shape");
  file.tensors.push_back({std::move(name), type, std::move(shape), {data.begin(), data.end()}});
}

Result<const ModelTensor*> find_tensor(const ModelFile& file, std::string_view name, TensorType type,
                                       std::span<const int64_t> shape) {
  const ModelTensor* tensor = file.find(name);
  if (tensor == nullptr) return corrupt("the model has no tensor '" + std::string(name) + "'");
  bool fits = tensor->type == type && tensor->shape.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] == -1 || shape[i] == tensor->shape[i];
  if (!fits)
    return corrupt("tensor '" + std::string(name) +
                   "' has another element type or shape than the model needs");
  return tensor;
}

std::string to_bytes(const ModelFile& file) {
  std::vector<const ModelTensor*> order;
  for (const ModelTensor& tensor : file.tensors) order.push_back(&tensor);
  // Then every tensor's offset is a multiple of its element's size.
  std::sort(order.begin(), order.end(), [](const ModelTensor* a, const ModelTensor* b) {
    const int64_t wide_a = bytes_of(a->type), wide_b = bytes_of(b->type);
    return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
  });
  Json header = Json::object();
  std::string data;
  for (const ModelTensor* tensor : order) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size());
    header[tensor->name] = {
        {"dtype", to_string(tensor->type)}, {"shape", tensor->shape}, {"data_offsets", {begin, data.size()}}};
  }
  header[kMetadata] = metadata_of(file.card);
  header[kMetadata]["hash"] = hash_of(header, data);
  std::string text = dump(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text + data;
}

Result<ModelFile> parse_model_file(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length) return corrupt("is no model file");
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeader || length > bytes.size() - sizeof length)
    return corrupt("is cut off, or no model file");
  const Json header = parse_json<Json>(bytes.substr(sizeof length, length));
  if (!header.is_object() || !header.contains(kMetadata) || !header[kMetadata].is_object())
    return corrupt("is no model file: its header is no JSON object with metadata");
  const std::string_view data = bytes.substr(sizeof length + length);
  ModelFile file;
  TS_ASSIGN_OR_RETURN(file.card, parse_card(header[kMetadata]));
  std::vector<Placed> placed;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) continue;
    TS_ASSIGN_OR_RETURN(Placed one, parse_entry(name, entry, static_cast<int64_t>(data.size())));
    placed.push_back(std::move(one));
  }
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  int64_t at = 0;
  for (Placed& one : placed) {
    if (one.begin != at) return corrupt("has gaps between its tensors, or tensors that overlap");
    at = one.end;
    const auto part = std::as_bytes(std::span(data))
                          .subspan(static_cast<size_t>(one.begin), static_cast<size_t>(one.end - one.begin));
    one.tensor.data.assign(part.begin(), part.end());
    file.tensors.push_back(std::move(one.tensor));
  }
  if (at != static_cast<int64_t>(data.size())) return corrupt("has data that belongs to no tensor");
  TS_ASSIGN_OR_RETURN(const std::string hash, MetadataReader(header[kMetadata]).text("hash"));
  if (hash_of(header, data) != hash)
    return corrupt("is damaged: its contents do not have the hash that its header names");
  return file;
}

Status write_model_file(const ModelFile& file, const std::string& path) {
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(writer->write(to_bytes(file)));
  return writer->commit();
}

Result<ModelFile> read_model_file(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, kMaxFile));
  auto file = parse_model_file(bytes);
  if (!file.ok()) return Error{file.error().code, path, file.error().reason};
  return file;
}

}  // namespace tensorsmith::learn
