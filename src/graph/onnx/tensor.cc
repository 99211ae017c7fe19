#include "graph/onnx/tensor.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/input_file.h"
#include "graph/files.h"
#include "graph/onnx/expand.h"
#include "graph/onnx/narrow.h"
#include "graph/ops/op_context.h"
#include "onnx/onnx-data_pb.h"

namespace tensorsmith::graph {

namespace {

static_assert(std::endian::native == std::endian::little, "ONNX raw data is little-endian");

Error corrupt(const onnx::TensorProto& proto, std::string reason) {
  return Error{ErrorCode::kCorrupt, "tensor '" + proto.name() + "'", std::move(reason)};
}

template <class T, class Field>
Status copy_field(const onnx::TensorProto& proto, const Field& field, int64_t count, lower::Tensor& tensor) {
  if (field.size() != count) {
    return corrupt(proto,
                   "has " + std::to_string(field.size()) + " elements instead of " + std::to_string(count));
  }
  tensor.data.resize(count * sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    const T element = static_cast<T>(field.Get(i));
    std::memcpy(tensor.data.data() + i * sizeof(T), &element, sizeof(T));
  }
  return {};
}

Status copy_typed(const onnx::TensorProto& proto, int64_t count, lower::Tensor& tensor) {
  switch (tensor.dtype) {
    case ir::DType::kF32:
      return copy_field<float>(proto, proto.float_data(), count, tensor);
    case ir::DType::kF64:
      return copy_field<double>(proto, proto.double_data(), count, tensor);
    case ir::DType::kI64:
      return copy_field<int64_t>(proto, proto.int64_data(), count, tensor);
    case ir::DType::kU64:
      return copy_field<uint64_t>(proto, proto.uint64_data(), count, tensor);
    case ir::DType::kU32:
      return copy_field<uint32_t>(proto, proto.uint64_data(), count, tensor);
    case ir::DType::kI32:
      return copy_field<int32_t>(proto, proto.int32_data(), count, tensor);
    case ir::DType::kI16:
    case ir::DType::kU16:
    case ir::DType::kF16:
    case ir::DType::kBF16:
      return copy_field<uint16_t>(proto, proto.int32_data(), count, tensor);
    case ir::DType::kI8:
    case ir::DType::kU8:
    case ir::DType::kBool:
      return copy_field<uint8_t>(proto, proto.int32_data(), count, tensor);
  }
  return corrupt(proto, "has an unknown dtype");
}

bool parse_number(const std::string& text, int64_t& value) {
  if (text.empty() || text.size() > 18) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) return false;
  value = std::stoll(text);
  return true;
}

// The file must be below the model's folder after its symlinks are resolved: the path comes with
// the model and is not trusted.
Status read_external(const onnx::TensorProto& proto, const TensorSource& source, int64_t bytes,
                     lower::Tensor& tensor) {
  std::string location;
  int64_t offset = 0;
  int64_t length = bytes;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset") {
      if (!parse_number(entry.value(), offset)) return corrupt(proto, "external data has a bad offset");
    } else if (entry.key() == "length") {
      if (!parse_number(entry.value(), length)) return corrupt(proto, "external data has a bad length");
    }
  }
  const std::filesystem::path path(location);
  const bool escapes = std::find(path.begin(), path.end(), "..") != path.end();
  if (location.empty() || location.find('\0') != std::string::npos || path.is_absolute() || escapes) {
    return corrupt(proto, "external data must be a path below the model's folder, not '" + location + "'");
  }
  if (!source.has_directory) {
    return Error{ErrorCode::kUnsupported, "tensor '" + proto.name() + "'",
                 "external data of a model that is not a file; import it from its path"};
  }
  if (length != bytes) {
    return corrupt(
        proto, "external data has " + std::to_string(length) + " bytes instead of " + std::to_string(bytes));
  }
  const std::filesystem::path full = std::filesystem::path(source.directory) / path;
  const auto file = open_input_below(source.directory, location, source.real_directory);
  if (!file.ok()) {
    return Error{file.error().code, full.string(),
                 "external data of tensor '" + proto.name() + "': " + file.error().reason};
  }
  TS_ASSIGN_OR_RETURN(const int64_t size, input_bytes(*file, full.string()));
  if (offset > size || bytes > size - offset) {
    return Error{ErrorCode::kCorrupt, full.string(),
                 "is too short for the external data of tensor '" + proto.name() + "'"};
  }
  tensor.data.resize(bytes);
  return read_exactly(*file, full.string(), offset, tensor.data.data(), bytes);
}

// Unpacks several elements per byte, the first in the lowest bits.
lower::Tensor unpacked(const lower::Tensor& bytes, const NarrowType& type, std::vector<int64_t> shape) {
  lower::Tensor tensor = lower::Tensor::zeros(type.held, std::move(shape));
  const int64_t per_byte = 8 / type.bits, range = int64_t{1} << type.bits;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const int64_t value = (bytes.at(i / per_byte).i >> (i % per_byte * type.bits)) & (range - 1);
    const bool negative = ir::is_signed_int(type.held) && value >= range / 2;
    tensor.set(i, ir::scalar_int(type.held, negative ? value - range : value));
  }
  return tensor;
}

}  // namespace

Result<lower::Tensor> tensor_from_proto(const onnx::TensorProto& proto, TensorSource& source) {
  const NarrowType* narrow = find_narrow(proto.data_type());
  const auto dtype = narrow != nullptr ? ir::DType::kU8 : onnx_dtype(proto.data_type());
  if (!dtype) {
    return Error{ErrorCode::kUnsupported, "tensor '" + proto.name() + "'",
                 "its type " + onnx_type_name(proto.data_type()) + " is not supported"};
  }
  if (proto.has_segment()) {
    return Error{ErrorCode::kUnsupported, "tensor '" + proto.name() + "'", "is stored in segments"};
  }
  lower::Tensor tensor;
  tensor.dtype = *dtype;
  tensor.shape.assign(proto.dims().begin(), proto.dims().end());
  if (!is_reasonable(tensor.shape)) {
    return corrupt(proto, "has the unreasonable shape " + describe(*dtype, tensor.shape));
  }
  const std::vector<int64_t> shape = tensor.shape;
  const int64_t per_byte = narrow != nullptr ? 8 / narrow->bits : 1;
  if (narrow != nullptr) tensor.shape = {(tensor.num_elements() + per_byte - 1) / per_byte};
  const int64_t count = tensor.num_elements();
  const int64_t bytes = ir::bytes_of(*dtype, count);
  if (bytes * per_byte > source.bytes_left) {
    return Error{ErrorCode::kResourceExhausted, "tensor '" + proto.name() + "'",
                 "the model's constants take too much memory"};
  }
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    TS_RETURN_IF_ERROR(read_external(proto, source, bytes, tensor));
  } else if (proto.has_raw_data()) {
    if (std::ssize(proto.raw_data()) != bytes) {
      return corrupt(proto, "has " + std::to_string(proto.raw_data().size()) + " bytes instead of " +
                                std::to_string(bytes));
    }
    tensor.data.resize(bytes);
    if (bytes > 0) std::memcpy(tensor.data.data(), proto.raw_data().data(), bytes);
  } else {
    TS_RETURN_IF_ERROR(copy_typed(proto, count, tensor));
  }
  source.bytes_left -= bytes * per_byte;
  if (narrow != nullptr) return unpacked(tensor, *narrow, shape);
  if (*dtype == ir::DType::kBool) {
    for (std::byte& b : tensor.data) b = b == std::byte{0} ? b : std::byte{1};
  }
  return tensor;
}

Status parse_message(std::string_view bytes, WireMessage kind, google::protobuf::MessageLite& message) {
  constexpr int kMaxBytes = std::numeric_limits<int>::max();
  if (std::ssize(bytes) > kMaxBytes)
    return Error{ErrorCode::kResourceExhausted, "", "is longer than the 2 GiB of a protobuf message"};
  TS_RETURN_IF_ERROR(check_wire(bytes, kind));
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                std::ssize(bytes));
  stream.SetRecursionLimit(kMaxWireNesting + 1);
  stream.SetTotalBytesLimit(kMaxBytes);
  if (message.ParsePartialFromCodedStream(&stream) && stream.ConsumedEntireMessage()) return {};
  return Error{ErrorCode::kCorrupt, "", "is damaged or cut off"};
}

Result<lower::Tensor> read_tensor_proto(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, std::numeric_limits<int>::max()));
  onnx::TensorProto proto;
  if (const Status parsed = parse_message(bytes, WireMessage::kTensor, proto); !parsed.ok()) {
    if (parsed.error().code != ErrorCode::kCorrupt)
      return Error{parsed.error().code, path, parsed.error().reason};
    return Error{ErrorCode::kCorrupt, path, "is not an ONNX tensor (truncated or of another format)"};
  }
  TensorSource source;
  auto tensor = tensor_from_proto(proto, source);
  if (!tensor.ok()) {
    Error error = std::move(tensor).error();
    error.place = path + ": " + error.place;
    return error;
  }
  return tensor;
}

namespace {

// Sequences and optionals have the same fields: a name, the kind of their elements, tensors. Returns false if
// the bytes are neither, or have no tensor: then they may be a TensorProto.
bool list_of(const std::string& bytes, onnx::SequenceProto& list) {
  const auto has_tensors = [&] {
    return list.tensor_values_size() > 0 &&
           std::ranges::all_of(list.tensor_values(), [](const auto& t) { return t.data_type() != 0; });
  };
  if (list.ParseFromString(bytes) && list.elem_type() == onnx::SequenceProto::TENSOR && has_tensors())
    return true;
  onnx::OptionalProto optional;
  if (!optional.ParseFromString(bytes) || optional.elem_type() != onnx::OptionalProto::SEQUENCE) return false;
  list = optional.sequence_value();
  list.set_name(optional.name());
  return has_tensors();
}

}  // namespace

Result<TestValue> read_test_value(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, std::numeric_limits<int>::max()));
  const google::protobuf::LogSilencer silencer;
  TestValue value;
  TensorSource source;
  const auto add = [&](const onnx::TensorProto& proto) -> Status {
    auto tensor = tensor_from_proto(proto, source);
    if (!tensor.ok()) {
      Error error = std::move(tensor).error();
      error.place = path + ": " + error.place;
      return error;
    }
    value.tensors.push_back(*std::move(tensor));
    return {};
  };
  onnx::SequenceProto list;
  if (list_of(bytes, list)) {
    value.name = list.name();
    value.is_list = true;
    for (const auto& proto : list.tensor_values()) TS_RETURN_IF_ERROR(add(proto));
    return value;
  }
  onnx::TensorProto proto;
  const Status parsed = parse_message(bytes, WireMessage::kTensor, proto);
  if (parsed.ok() && proto.data_type() != 0 && add(proto).ok()) {
    value.name = proto.name();
    return value;
  }
  value.tensors.clear();
  if (list.ParseFromString(bytes) && list.tensor_values_size() == 0 && !list.name().empty()) {
    value.name = list.name();  // an empty sequence or optional
    value.is_list = true;
    return value;
  }
  if (parsed.ok()) return add(proto).error();
  if (parsed.error().code != ErrorCode::kCorrupt)
    return Error{parsed.error().code, path, parsed.error().reason};
  return Error{ErrorCode::kCorrupt, path,
               "is no ONNX tensor, sequence or optional (truncated or of another format)"};
}

Status write_tensor_proto(const std::string& path, const std::string& name, const lower::Tensor& tensor) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(row_of(tensor.dtype).onnx);
  for (int64_t extent : tensor.shape) proto.add_dims(extent);
  proto.set_raw_data(tensor.data.data(), tensor.data.size());
  proto.set_doc_string(kTensorMark);  // the last field
  std::string bytes;
  if (!proto.SerializeToString(&bytes)) {
    return Error{ErrorCode::kResourceExhausted, path, "the tensor is too large for an ONNX file (2 GiB)"};
  }
  return write_file(path, bytes);
}

std::string name_of(const onnx::NodeProto& proto) {
  return proto.name().empty() ? proto.op_type() : proto.name();
}

lower::Tensor scalar(ir::DType dtype, int64_t value) {
  lower::Tensor tensor = lower::Tensor::zeros(dtype, {});
  tensor.set(0, ir::scalar_int(dtype, value));
  return tensor;
}

lower::Tensor vector(const std::vector<int64_t>& values) { return vector_of(ir::DType::kI64, values); }

}  // namespace tensorsmith::graph
