#include "graph/onnx/wire.h"

#include <cstdint>
#include <initializer_list>

#include "base/input_file.h"

namespace tensorsmith::graph {
namespace {

// Messages of onnx.proto that contain others; kLeaf is a text, packed numbers, or a message that
// contains only these.
enum class Kind : uint8_t {
  kLeaf,
  kModel,
  kTraining,
  kFunction,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparse,
  kValueInfo,
  kType,
  kElementType,
  kShapedType,
  kShape,
  kEntries,  // contains only messages of texts
};

struct Child {
  uint32_t field;
  Kind kind;
};

std::initializer_list<Child> children(Kind kind) {
  static constexpr std::initializer_list<Child> kNone = {};
  static constexpr std::initializer_list<Child> kOfModel = {{7, Kind::kGraph},     {8, Kind::kEntries},
                                                            {14, Kind::kEntries},  {20, Kind::kTraining},
                                                            {25, Kind::kFunction}, {26, Kind::kEntries}};
  static constexpr std::initializer_list<Child> kOfTraining = {
      {1, Kind::kGraph}, {2, Kind::kGraph}, {3, Kind::kEntries}, {4, Kind::kEntries}};
  static constexpr std::initializer_list<Child> kOfFunction = {{7, Kind::kNode},
                                                               {9, Kind::kEntries},
                                                               {11, Kind::kAttribute},
                                                               {12, Kind::kValueInfo},
                                                               {14, Kind::kEntries}};
  static constexpr std::initializer_list<Child> kOfGraph = {
      {1, Kind::kNode},       {5, Kind::kTensor},   {11, Kind::kValueInfo}, {12, Kind::kValueInfo},
      {13, Kind::kValueInfo}, {14, Kind::kEntries}, {15, Kind::kSparse},    {16, Kind::kEntries}};
  static constexpr std::initializer_list<Child> kOfNode = {
      {5, Kind::kAttribute}, {9, Kind::kEntries}, {10, Kind::kEntries}};
  static constexpr std::initializer_list<Child> kOfAttribute = {
      {5, Kind::kTensor}, {6, Kind::kGraph}, {10, Kind::kTensor}, {11, Kind::kGraph},
      {14, Kind::kType},  {15, Kind::kType}, {22, Kind::kSparse}, {23, Kind::kSparse}};
  static constexpr std::initializer_list<Child> kOfTensor = {
      {3, Kind::kEntries}, {13, Kind::kEntries}, {16, Kind::kEntries}};
  static constexpr std::initializer_list<Child> kOfSparse = {{1, Kind::kTensor}, {2, Kind::kTensor}};
  static constexpr std::initializer_list<Child> kOfValueInfo = {{2, Kind::kType}, {4, Kind::kEntries}};
  static constexpr std::initializer_list<Child> kOfType = {{1, Kind::kShapedType},
                                                           {4, Kind::kElementType},
                                                           {5, Kind::kElementType},
                                                           {8, Kind::kShapedType},
                                                           {9, Kind::kElementType}};
  static constexpr std::initializer_list<Child> kOfElementType = {{1, Kind::kType}, {2, Kind::kType}};
  static constexpr std::initializer_list<Child> kOfShapedType = {{2, Kind::kShape}};
  static constexpr std::initializer_list<Child> kOfShape = {{1, Kind::kEntries}};
  switch (kind) {
    case Kind::kLeaf:
    case Kind::kEntries:
      return kNone;
    case Kind::kModel:
      return kOfModel;
    case Kind::kTraining:
      return kOfTraining;
    case Kind::kFunction:
      return kOfFunction;
    case Kind::kGraph:
      return kOfGraph;
    case Kind::kNode:
      return kOfNode;
    case Kind::kAttribute:
      return kOfAttribute;
    case Kind::kTensor:
      return kOfTensor;
    case Kind::kSparse:
      return kOfSparse;
    case Kind::kValueInfo:
      return kOfValueInfo;
    case Kind::kType:
      return kOfType;
    case Kind::kElementType:
      return kOfElementType;
    case Kind::kShapedType:
      return kOfShapedType;
    case Kind::kShape:
      return kOfShape;
  }
  return kNone;
}

// Memory of a field in addition to its bytes: for a message or a text, including its entry in a
// list, and for an element of an unpacked list of numbers.
constexpr int64_t kMessageBytes = 256;
constexpr int64_t kNumberBytes = 16;

class Walker {
 public:
  Status walk(std::string_view bytes, Kind kind, int depth) {
    if (depth > kMaxWireNesting)
      return Error{ErrorCode::kCorrupt, "",
                   "its parts are nested more than " + std::to_string(kMaxWireNesting) + " deep"};
    while (!bytes.empty()) {
      uint64_t tag = 0;
      if (!varint(bytes, tag)) return damaged();
      uint64_t length = 0;
      switch (tag & 7) {
        case 0:
          if (!varint(bytes, length)) return damaged();
          cost_ += kNumberBytes;
          break;
        case 1:
        case 5:
          length = (tag & 7) == 1 ? 8 : 4;
          if (length > bytes.size()) return damaged();
          bytes.remove_prefix(length);
          cost_ += length;
          break;
        case 2: {
          if (!varint(bytes, length) || length > bytes.size()) return damaged();
          cost_ += kMessageBytes;
          Kind inner = Kind::kLeaf;
          for (const Child& child : children(kind)) {
            if (child.field == tag >> 3) inner = child.kind;
          }
          if (inner != Kind::kLeaf) TS_RETURN_IF_ERROR(walk(bytes.substr(0, length), inner, depth + 1));
          bytes.remove_prefix(length);
          break;
        }
        default:  // groups, which ONNX does not use
          return damaged();
      }
      if (cost_ > kMaxWireBytes)
        return Error{ErrorCode::kResourceExhausted, "",
                     "has too many parts: they would take more than " + describe_bytes(kMaxWireBytes)};
    }
    return {};
  }

 private:
  static Error damaged() { return {ErrorCode::kCorrupt, "", "is damaged or cut off"}; }
  static bool varint(std::string_view& bytes, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70 && !bytes.empty(); shift += 7) {
      const uint8_t byte = bytes.front();
      bytes.remove_prefix(1);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  int64_t cost_ = 0;
};

}  // namespace

Status check_wire(std::string_view bytes, WireMessage root) {
  return Walker().walk(bytes, root == WireMessage::kModel ? Kind::kModel : Kind::kTensor, 0);
}

}  // namespace tensorsmith::graph
