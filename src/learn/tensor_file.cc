#include "learn/tensor_file.h"

#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/hash.h"
#include "base/input_file.h"
#include "base/json_text.h"
#include "record/jsonl.h"

namespace tensorsmith::learn {

static_assert(std::endian::native == std::endian::little, "tensors are written as memory is");

namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
// The limit of safetensors for a header, far more than any model needs.
constexpr uint64_t kMaxHeader = 100'000'000;
constexpr int64_t kMaxTensorFile = int64_t{4} << 30;
constexpr TensorType kTypes[] = {TensorType::kF64, TensorType::kF32, TensorType::kI32, TensorType::kU16,
                                 TensorType::kU8};

Error corrupt_tensors(const std::string& what) { return {ErrorCode::kCorrupt, "", what}; }

// Returns -1 if the number of elements overflows.
int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return -1;
    if (extent > 0 && count > std::numeric_limits<int64_t>::max() / 16 / extent) return -1;
    count *= extent;
  }
  return count;
}

// Replaces bytes that are not UTF-8 (as in a file name in the command) by U+FFFD.
std::string header_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Hashes everything except the hash itself.
std::string hash_of(Json header, std::string_view data) {
  header[kMetadata].erase("hash");
  return Hasher().add(header_text(header)).add(data).hex128();
}

struct Placed {
  ModelTensor tensor;
  int64_t begin = 0, end = 0;
};

Result<Placed> parse_entry(const std::string& name, const Json& entry, int64_t data_bytes) {
  const auto bad = [&](const std::string& what) { return corrupt_tensors("tensor '" + name + "' " + what); };
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
      // A number above the signed range becomes negative and is rejected, like every negative
      // length or offset.
      out.push_back(item.get<int64_t>());
      if (out.back() < 0) return false;
    }
    return true;
  };
  std::vector<int64_t> offsets;
  if (!numbers(entry["shape"], placed.tensor.shape) || !numbers(entry["data_offsets"], offsets) ||
      offsets.size() != 2)
    return bad("has a shape or offsets that are not lists of lengths");
  placed.begin = offsets[0];
  placed.end = offsets[1];
  const int64_t elements = elements_of(placed.tensor.shape);
  if (placed.begin > placed.end || placed.end > data_bytes || elements < 0 ||
      placed.end - placed.begin != elements * bytes_of(*type))
    return bad("is outside the file, or its size is not that of its shape");
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

const ModelTensor* TensorFile::find(std::string_view name) const {
  const auto it =
      std::find_if(tensors.begin(), tensors.end(), [&](const ModelTensor& t) { return t.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

void add_tensor(TensorFile& file, std::string name, TensorType type, std::vector<int64_t> shape,
                std::span<const std::byte> data) {
  TS_CHECK(!name.empty() && name != kMetadata && file.find(name) == nullptr,
           "model tensors need names of their own: " + name);
  TS_CHECK(elements_of(shape) >= 0 && static_cast<size_t>(elements_of(shape) * bytes_of(type)) == data.size(),
           "tensor " + name + " does not have the size of its shape");
  file.tensors.push_back({std::move(name), type, std::move(shape), {data.begin(), data.end()}});
}

Result<const ModelTensor*> find_tensor(const TensorFile& file, std::string_view name, TensorType type,
                                       std::span<const int64_t> shape) {
  const ModelTensor* tensor = file.find(name);
  if (tensor == nullptr) return corrupt_tensors("the model has no tensor '" + std::string(name) + "'");
  bool fits = tensor->type == type && tensor->shape.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] == -1 || shape[i] == tensor->shape[i];
  if (!fits)
    return corrupt_tensors("tensor '" + std::string(name) +
                           "' has another element type or shape than the model needs");
  return tensor;
}

std::string to_bytes(const TensorFile& file) {
  std::vector<const ModelTensor*> order;
  for (const ModelTensor& tensor : file.tensors) order.push_back(&tensor);
  // In this order, every tensor's offset is a multiple of its element size.
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
  header[kMetadata] = file.metadata;
  header[kMetadata]["hash"] = hash_of(header, data);
  std::string text = header_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text + data;
}

Result<TensorFile> parse_tensor_file(std::string_view bytes, const MetadataCheck& check) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length) return corrupt_tensors("is not a model file");
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeader || length > bytes.size() - sizeof length)
    return corrupt_tensors("is truncated, or not a model file");
  const Json header = parse_json<Json>(bytes.substr(sizeof length, length));
  if (!header.is_object() || !header.contains(kMetadata) || !header[kMetadata].is_object())
    return corrupt_tensors("is not a model file: its header is not a JSON object with metadata");
  const std::string_view data = bytes.substr(sizeof length + length);
  TensorFile file;
  for (const auto& [name, value] : header[kMetadata].items()) {
    if (!value.is_string()) return corrupt_tensors("\"" + name + "\" of the metadata is not a string");
    file.metadata[name] = value.get<std::string>();
  }
  if (check) TS_RETURN_IF_ERROR(check(file.metadata));
  std::vector<Placed> placed;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) continue;
    TS_ASSIGN_OR_RETURN(Placed one, parse_entry(name, entry, std::ssize(data)));
    placed.push_back(std::move(one));
  }
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  int64_t at = 0;
  for (Placed& one : placed) {
    if (one.begin != at) return corrupt_tensors("has gaps between its tensors, or tensors that overlap");
    at = one.end;
    const auto part = std::as_bytes(std::span(data))
                          .subspan(static_cast<size_t>(one.begin), static_cast<size_t>(one.end - one.begin));
    one.tensor.data.assign(part.begin(), part.end());
    file.tensors.push_back(std::move(one.tensor));
  }
  if (at != std::ssize(data)) return corrupt_tensors("has data that belongs to no tensor");
  const auto hash = file.metadata.find("hash");
  if (hash == file.metadata.end()) return corrupt_tensors("has no hash in its metadata");
  if (hash_of(header, data) != hash->second)
    return corrupt_tensors("is damaged: its contents do not match the hash in its header");
  file.metadata.erase(hash);
  return file;
}

Status write_tensor_file(const TensorFile& file, const std::string& path) {
  TS_ASSIGN_OR_RETURN(auto writer, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(writer->write(to_bytes(file)));
  return writer->commit();
}

Result<TensorFile> read_tensor_file(const std::string& path, const MetadataCheck& check) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, kMaxTensorFile));
  auto file = parse_tensor_file(bytes, check);
  if (!file.ok()) return Error{file.error().code, path, file.error().reason};
  return file;
}

}  // namespace tensorsmith::learn
