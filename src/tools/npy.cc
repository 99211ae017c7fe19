#include "tools/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "ir/scalar.h"
#include "record/jsonl.h"

namespace tensorsmith::tools {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 1 << 16;
constexpr size_t kMaxRank = 32;  // the limit of NumPy 1

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

// Parses {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. Every step returns false at
// an unexpected character.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::optional<Header> parse() {
    Header header;
    int found = 0;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      std::string key;
      if (!read_text(key) || !take(':')) return std::nullopt;
      const bool ok = key == "descr"           ? read_text(header.descr)
                      : key == "fortran_order" ? read_bool(header.fortran)
                      : key == "shape"         ? read_shape(header.shape)
                                               : false;
      if (!ok) return std::nullopt;
      ++found;
      if (!take(',') && peek() != '}') return std::nullopt;
    }
    skip_blanks();
    if (found != 3 || !text_.empty()) return std::nullopt;
    return header;
  }

 private:
  void skip_blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  char peek() {
    skip_blanks();
    return text_.empty() ? '\0' : text_[0];
  }
  bool take(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool read_text(std::string& out) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return false;
    const size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) return false;
    out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool read_bool(bool& out) {
    out = take("True");
    return out || take("False");
  }
  bool read_shape(std::vector<int64_t>& out) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_blanks();
      int64_t extent = 0;
      const auto [end, code] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (code != std::errc() || extent < 0 || out.size() == kMaxRank) return false;
      text_.remove_prefix(end - text_.data());
      out.push_back(extent);
      if (!take(',') && peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
};

using ir::DType;

std::optional<DType> dtype_of(std::string_view descr) {
  if (descr.size() != 3 || (descr[0] != '<' && descr[0] != '|' && descr[0] != '=')) return std::nullopt;
  const auto dtype = find_dtype(&DTypeRow::numpy, descr.substr(1));
  // '|': no byte order.
  return dtype && (descr[0] != '|' || bytes_of(*dtype) == 1) ? dtype : std::nullopt;
}

std::string descr_of(DType dtype) {
  TS_CHECK(!row_of(dtype).numpy.empty(), "NumPy does not have this element type");
  return (bytes_of(dtype) == 1 ? "|" : "<") + std::string(row_of(dtype).numpy);
}

// Alignment of the first element (numpy.lib.format).
constexpr size_t kAlignment = 64;
// Extra padding spaces that identify our files. NumPy adds at most 20 spaces, so that an array can
// grow.
constexpr size_t kMark = 2 * kAlignment;

// Returns everything before the elements.
std::string npy_header(DType dtype, const std::vector<int64_t>& shape) {
  const std::string extents = fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr_of(dtype), extents);
  constexpr size_t kBefore = 10;  // magic, version 1.0, two bytes of length
  const size_t least = kBefore + header.size() + 1;
  const size_t whole = (least + kAlignment - 1) / kAlignment * kAlignment + kMark;
  header.resize(whole - kBefore - 1, ' ');
  header += '\n';
  TS_CHECK(header.size() < kMaxHeader, "the header is too long for its length field");
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return out + header;
}

// Reorders from column-major to row-major.
void reorder(const char* from, const std::vector<int64_t>& shape, size_t bytes, std::byte* to) {
  std::vector<int64_t> index(shape.size(), 0), stride(shape.size(), 1);
  for (size_t d = 1; d < shape.size(); ++d) stride[d] = stride[d - 1] * shape[d - 1];
  int64_t count = 1, source = 0;
  for (int64_t extent : shape) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * bytes, from + source * bytes, bytes);
    for (size_t d = shape.size(); d-- > 0;) {
      source += stride[d];
      if (++index[d] < shape[d]) break;
      source -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

Result<lower::Tensor> parse_npy(std::string_view bytes, const std::string& path) {
  const Error damaged{ErrorCode::kCorrupt, path,
                      "is not a .npy file (it is truncated or has another format)"};
  if (bytes.size() < 10 || bytes.substr(0, kMagic.size()) != kMagic) return damaged;
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    return Error{ErrorCode::kUnsupported, path,
                 "has version " + std::to_string(version) + " of the .npy format, which is not supported"};
  size_t begin = 10, length = byte(8) | byte(9) << 8;
  if (version > 1) {
    if (bytes.size() < 12) return damaged;
    begin = 12;
    length |= byte(10) << 16 | byte(11) << 24;
  }
  if (length > kMaxHeader || length > bytes.size() - begin) return damaged;
  const std::optional<Header> header = HeaderParser(bytes.substr(begin, length)).parse();
  if (!header) return damaged;
  const auto dtype = dtype_of(header->descr);
  if (!dtype) {
    return Error{ErrorCode::kUnsupported, path,
                 "has elements of type '" + header->descr + "'; save it with little-endian numbers or bool"};
  }
  const std::string_view data = bytes.substr(begin + length);
  const size_t width = static_cast<size_t>(ir::bytes_of(*dtype));
  size_t count = 1;
  for (int64_t extent : header->shape) {
    if (__builtin_mul_overflow(count, static_cast<size_t>(extent), &count)) return damaged;
  }
  if (data.size() % width != 0 || data.size() / width != count) return damaged;
  lower::Tensor tensor;
  tensor.dtype = *dtype;
  tensor.shape = header->shape;
  tensor.data.resize(data.size());
  if (header->fortran && header->shape.size() > 1) {
    reorder(data.data(), header->shape, width, tensor.data.data());
  } else if (!data.empty()) {
    std::memcpy(tensor.data.data(), data.data(), data.size());
  }
  if (*dtype == ir::DType::kBool) {
    for (std::byte& b : tensor.data) b = b == std::byte{0} ? b : std::byte{1};
  }
  return tensor;
}

Status write_npy(const std::string& path, const lower::Tensor& tensor) {
  const bool widened = row_of(tensor.dtype).numpy.empty();
  TS_ASSIGN_OR_RETURN(const auto file, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(
      file->write(npy_header(widened ? row_of(tensor.dtype).computed : tensor.dtype, tensor.shape)));
  if (widened) {
    lower::Tensor wide = lower::Tensor::zeros(row_of(tensor.dtype).computed, tensor.shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) wide.set(i, ir::eval_cast(wide.dtype, tensor.at(i)));
    TS_RETURN_IF_ERROR(file->write({reinterpret_cast<const char*>(wide.data.data()), wide.num_bytes()}));
  } else {
    TS_RETURN_IF_ERROR(file->write({reinterpret_cast<const char*>(tensor.data.data()), tensor.num_bytes()}));
  }
  return file->commit();
}

bool has_npy_mark(std::string_view begin) {
  if (!begin.starts_with(kMagic)) return false;
  const size_t end = begin.find('\n');
  if (end == std::string_view::npos || end < kMark) return false;
  return begin.substr(end - kMark, kMark).find_first_not_of(' ') == std::string_view::npos;
}

}  // namespace tensorsmith::tools
