#include "runtime/model_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/hash.h"
#include "base/input_file.h"
#include "runtime/file_io.h"

namespace tensorsmith::runtime {
namespace {

namespace fs = std::filesystem;

// Removes the directory at the end unless it was renamed.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(fs::path path) : path_(std::move(path)) {}
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void release() { path_.clear(); }

 private:
  fs::path path_;
};

int64_t aligned(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

Status write_whole(const fs::path& path, std::string_view bytes) {
  TS_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path.string()));
  TS_RETURN_IF_ERROR(writer.write(bytes.data(), bytes.size()));
  return writer.close();
}

// Every weight at its offset, zeros between. Sets the description's hash.
Status write_weights(const fs::path& path, const std::vector<WeightData>& weights, ModelDescription& d) {
  static constexpr std::array<char, kBufferAlignment> kZeros{};
  TS_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path.string()));
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto& bytes = weights[i].bytes;
    TS_RETURN_IF_ERROR(writer.write(bytes.data(), bytes.size()));
    const int64_t next = i + 1 < weights.size() ? d.weights[i + 1].offset : d.weights_bytes;
    const int64_t padding = next - d.weights[i].offset - d.weights[i].bytes;
    TS_RETURN_IF_ERROR(writer.write(kZeros.data(), static_cast<size_t>(padding)));
  }
  TS_RETURN_IF_ERROR(writer.close());
  TS_ASSIGN_OR_RETURN(const Mapping written, Mapping::file(path.string(), d.weights_bytes));
  d.weights_hash =
      content_key({reinterpret_cast<const char*>(written.data()), static_cast<size_t>(written.size())});
  return {};
}

// What is at the target may be replaced: nothing, an empty directory or a compiled model.
Status check_replaceable(const fs::path& target) {
  std::error_code error;
  const auto status = fs::symlink_status(target, error);
  if (!fs::exists(status)) return {};
  if (fs::is_directory(target, error)) {
    if (fs::exists(target / "manifest.json", error)) return {};
    if (fs::is_empty(target, error) && !error) return {};
  }
  return Error{ErrorCode::kInvalidArgument, target.string(),
               "exists and is not a compiled model; remove it or choose another name"};
}

// Puts `fresh` at `target`; `fresh` then names what was there before, or nothing.
Status exchange(const fs::path& fresh, const fs::path& target) {
  if (::rename(fresh.c_str(), target.c_str()) == 0) return {};  // nothing or an empty directory was there
  if (errno != ENOTEMPTY && errno != EEXIST) return file_error(target.string(), "cannot create", errno);
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return file_error(target.string(), "cannot replace", errno);
  // A file system that cannot exchange: the old model is away for a moment.
  const fs::path old = fresh.string() + ".old";
  if (::rename(target.c_str(), old.c_str()) != 0) return file_error(target.string(), "cannot replace", errno);
  if (::rename(fresh.c_str(), target.c_str()) != 0) {
    const int why = errno;
    if (::rename(old.c_str(), target.c_str()) != 0)
      return file_error(target.string(), "cannot replace; the old model is now at " + old.string(), why);
    return file_error(target.string(), "cannot replace", why);
  }
  if (::rename(old.c_str(), fresh.c_str()) != 0) return file_error(old.string(), "cannot remove", errno);
  return {};
}

}  // namespace

Status write_model(const std::string& directory, ModelDescription d, std::span<const char> kernels,
                   const std::vector<WeightData>& weights) {
  d.weights.clear();
  d.weights_bytes = 0;
  d.weights_hash.clear();
  for (const auto& weight : weights) {
    d.weights.push_back({weight.name, d.weights_bytes, static_cast<int64_t>(weight.bytes.size())});
    d.weights_bytes = aligned(d.weights_bytes + static_cast<int64_t>(weight.bytes.size()));
  }
  const std::string_view kernel_bytes(kernels.data(), kernels.size());
  d.kernels_hash = content_key(kernel_bytes);
  TS_RETURN_IF_ERROR(validate(d));

  fs::path target = fs::path(directory).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/model/"
  if (target.empty() || target == "." || target == "..")
    return Error{ErrorCode::kInvalidArgument, directory, "is no name for a new directory"};
  std::error_code error;
  if (fs::is_symlink(target, error)) target = fs::weakly_canonical(target, error);  // replace what it names
  TS_RETURN_IF_ERROR(check_replaceable(target));
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  fs::create_directories(parent, error);
  if (error) return file_error(parent.string(), "cannot create", error.value());

  std::string pattern = target.string() + ".tmp-XXXXXX";
  if (!::mkdtemp(pattern.data())) return file_error(target.string(), "cannot create", errno);
  TemporaryDirectory temporary{fs::path(pattern)};
  // mkdtemp is for secrets; a model is readable like any other file: 0777 less the mask that mkdir applies.
  const fs::path content = temporary.path() / "model";
  if (::mkdir(content.c_str(), 0777) != 0) return file_error(content.string(), "cannot create", errno);
  const auto write_all = [&]() -> Status {
    TS_RETURN_IF_ERROR(write_weights(content / "weights.bin", weights, d));
    TS_RETURN_IF_ERROR(write_whole(content / "kernels.so", kernel_bytes));
    TS_RETURN_IF_ERROR(write_whole(content / "manifest.json", print_manifest(d)));
    return sync_directory(content.string());
  };
  // The temporary folder is gone when the error is read: it speaks of the model.
  if (const Status written = write_all(); !written.ok())
    return Error{written.error().code, target.string(),
                 written.error().reason + "; nothing was changed, free some space or give another place"};
  TS_RETURN_IF_ERROR(exchange(content, target));
  return sync_directory(parent.string());
}

Status write_model(const std::string& directory, ModelDescription description,
                   const std::string& kernels_path, const std::vector<WeightData>& weights) {
  TS_ASSIGN_OR_RETURN(const std::string kernels, read_input(kernels_path, kMaxKernelBytes));
  return write_model(directory, std::move(description), std::span<const char>(kernels), weights);
}

}  // namespace tensorsmith::runtime
