#include "tools/tensor_input.h"

#include <zip.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>

#include "base/input_file.h"
#include "graph/graph.h"
#include "tools/npy.h"

namespace tensorsmith::tools {
namespace {

constexpr int64_t kMaxFile = std::numeric_limits<int>::max();  // the limit of TensorProto files
constexpr uint64_t kMaxNpyHeader = 1 << 16;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

Result<lower::Tensor> read_npz(const std::string& path, const runtime::TensorInfo& input) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, kMaxFile));
  const Error damaged{ErrorCode::kCorrupt, path,
                      "is not a .npz archive (it is truncated or has another format)"};
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source == nullptr) return damaged;
  const std::unique_ptr<zip_t, CloseArchive> archive(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive == nullptr) {
    zip_source_free(source);
    return damaged;
  }
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  zip_int64_t index = zip_name_locate(archive.get(), (input.name + ".npy").c_str(), 0);
  if (index < 0 && entries == 1) index = 0;
  if (index < 0) {
    std::string names;
    for (zip_int64_t i = 0; i < std::min<zip_int64_t>(entries, 16); ++i) {
      const char* name = zip_get_name(archive.get(), i, 0);
      if (name != nullptr) names += (names.empty() ? "" : ", ") + std::filesystem::path(name).stem().string();
    }
    return Error{ErrorCode::kInvalidArgument, path,
                 "has no array '" + input.name + "'; it has " + (names.empty() ? "none" : names)};
  }
  zip_stat_t stat;
  if (zip_stat_index(archive.get(), index, 0, &stat) != 0 || (stat.valid & ZIP_STAT_SIZE) == 0)
    return damaged;
  // A few bytes can unpack to gigabytes, so an array larger than the input plus a header is
  // rejected before it is unpacked.
  const uint64_t most = static_cast<uint64_t>(input.bytes()) + kMaxNpyHeader;
  if (stat.size > most) {
    return Error{ErrorCode::kInvalidArgument, path,
                 "the array has " + std::to_string(stat.size) + " bytes, but the input needs " +
                     std::to_string(input.bytes())};
  }
  const std::unique_ptr<zip_file_t, CloseEntry> file(zip_fopen_index(archive.get(), index, 0));
  if (file == nullptr) return damaged;
  std::string array(stat.size, '\0');
  if (zip_fread(file.get(), array.data(), array.size()) != static_cast<zip_int64_t>(array.size()))
    return damaged;
  // libzip compares the checksum when the end is reached.
  char more = 0;
  if (zip_fread(file.get(), &more, 1) != 0) return damaged;
  return parse_npy(array, path);
}

Result<lower::Tensor> read_raw(const std::string& path, const runtime::TensorInfo& input) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, kMaxFile));
  if (std::ssize(bytes) != input.bytes()) {
    return Error{ErrorCode::kInvalidArgument, path,
                 "has " + std::to_string(bytes.size()) + " bytes, but the input needs " +
                     std::to_string(input.bytes())};
  }
  lower::Tensor tensor = lower::Tensor::zeros(input.dtype, input.shape);
  if (!bytes.empty()) std::memcpy(tensor.data.data(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

Result<lower::Tensor> read_tensor(const std::string& path, const runtime::TensorInfo& input) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".npy") {
    TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(path, kMaxFile));
    return parse_npy(bytes, path);
  }
  if (ending == ".npz") return read_npz(path, input);
  if (ending == ".raw" || ending == ".bin") return read_raw(path, input);
  return graph::read_tensor_proto(path);
}

}  // namespace tensorsmith::tools
