#include "runtime/model_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/hash.h"
#include "base/input_file.h"
#include "runtime/file_io.h"

namespace tensorsmith::runtime {
namespace {

namespace fs = std::filesystem;

// All files of a compiled model; it has one of the last two.
constexpr std::array<const char*, 4> kFiles = {"manifest.json", "weights.bin", "kernels.so", "kernels.gpu"};

// Removes the files of a model and their directory; other files that have appeared in it stay.
Status remove_model(const fs::path& directory) {
  for (const char* name : kFiles) ::unlink((directory / name).c_str());
  if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return {};
  // NFS keeps a removed file under such a name as long as a program has it open.
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  while (!error && entry != fs::directory_iterator() && entry->path().filename().string().starts_with(".nfs"))
    entry.increment(error);
  if (!error && entry == fs::directory_iterator()) return {};
  return file_error(directory.string(),
                    "contains the former contents of the replaced directory, which cannot be removed",
                    ENOTEMPTY);
}

// A directory that holds a model while it is written, content(). In the end, it is removed together
// with the model that is then in it (the unfinished or the replaced one). If it contains anything
// else, that and the directory stay.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(fs::path path) : path_(std::move(path)) {}
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { [[maybe_unused]] const Status removed = remove(); }
  fs::path content() const { return path_ / "model"; }
  Status remove() {
    TS_RETURN_IF_ERROR(remove_model(content()));
    ::rmdir(path_.c_str());
    return {};
  }

 private:
  fs::path path_;
};

Status write_whole(const fs::path& path, std::string_view bytes) {
  TS_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path.string()));
  TS_RETURN_IF_ERROR(writer.write(bytes.data(), bytes.size()));
  return writer.close();
}

constexpr std::array<char, kBufferAlignment> kZeros{};

// Returns the zeros that follow weight i.
std::string_view padding_after(const ModelDescription& d, size_t i) {
  const int64_t next = i + 1 < d.weights.size() ? d.weights[i + 1].offset : d.weights_bytes;
  return {kZeros.data(), static_cast<size_t>(next - d.weights[i].offset - d.weights[i].bytes)};
}

// Returns content_key() of weights.bin: every weight at its offset, with zeros between them.
std::string hash_weights(const std::vector<WeightData>& weights, const ModelDescription& d) {
  Hasher hasher;
  hasher.add(d.weights_bytes);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto& bytes = weights[i].bytes;
    hasher.add_words({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    // The last word of a weight included some of the zeros behind it; whole words remain.
    const size_t padding = padding_after(d, i).size() / sizeof(uint64_t) * sizeof(uint64_t);
    hasher.add_words({kZeros.data(), padding});
  }
  return hasher.hex128();
}

// Creates weights.bin. If `old` has the same content, it is a hard link to that file, otherwise it
// is written.
Status make_weights(const fs::path& path, const fs::path& old, const std::vector<WeightData>& weights,
                    const ModelDescription& d) {
  const auto before = Mapping::file(old.string(), d.weights_bytes);
  if (before.ok() &&
      content_key({reinterpret_cast<const char*>(before->data()), static_cast<size_t>(before->size())}) ==
          d.weights_hash &&
      ::link(old.c_str(), path.c_str()) == 0)
    return {};
  TS_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path.string()));
  for (size_t i = 0; i < weights.size(); ++i) {
    TS_RETURN_IF_ERROR(writer.write(weights[i].bytes.data(), weights[i].bytes.size()));
    const std::string_view padding = padding_after(d, i);
    TS_RETURN_IF_ERROR(writer.write(padding.data(), padding.size()));
  }
  return writer.close();
}

Error cannot_replace(const fs::path& target, const std::string& why) {
  return {ErrorCode::kInvalidArgument, target.string(),
          "exists and " + why + "; remove it yourself or choose another name"};
}

// Returns an entry of the directory that is not a file of a compiled model.
Result<std::optional<std::string>> foreign_entry(const fs::path& directory) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool ours = std::find(kFiles.begin(), kFiles.end(), name) != kFiles.end() &&
                      fs::is_regular_file(entry->symlink_status(error));
    if (!ours) return std::optional<std::string>(name);
  }
  if (error) return file_error(directory.string(), "cannot list", error.value());
  return std::optional<std::string>();
}

// Returns the path that the name denotes, without a final slash and with links resolved.
Result<fs::path> target_of(const std::string& directory) {
  fs::path target = fs::path(directory).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/model/"
  if (!target.has_filename() || target == "." || target == "..")
    return Error{ErrorCode::kInvalidArgument, directory, "is not a name for a new directory"};
  std::error_code error;
  if (!fs::is_symlink(target, error)) return target;
  const fs::path behind = fs::canonical(target, error);
  if (error) return cannot_replace(target, "is a symbolic link to a path that does not exist");
  return behind;
}

// A directory that is a mount point cannot be renamed.
bool is_mount_point(const fs::path& directory) {
  struct statx info{};
  return ::statx(AT_FDCWD, directory.c_str(), AT_SYMLINK_NOFOLLOW, 0, &info) == 0 &&
         (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

Status check_target(const fs::path& target) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (!fs::exists(status)) return {};
  if (!fs::is_directory(status)) return cannot_replace(target, "is a file, not a compiled model");
  if (is_mount_point(target)) {
    return Error{ErrorCode::kInvalidArgument, target.string(),
                 "is a mount point, which cannot be replaced; name a folder inside it"};
  }
  if (fs::is_empty(target, error) && !error) return {};
  const fs::path manifest = target / kFiles[0];
  if (!fs::is_regular_file(fs::symlink_status(manifest, error)))
    return cannot_replace(target, "is not a compiled model (it has no manifest.json)");
  TS_ASSIGN_OR_RETURN(const std::string text, read_input(manifest.string(), kMaxManifestBytes));
  const auto description = parse_manifest(text);
  // A model of another format version may be replaced, too.
  if (!description.ok() && description.error().code != ErrorCode::kMismatch)
    return cannot_replace(target,
                          "is not a compiled model: its manifest.json has another format or is damaged");
  if (description.ok() && (description->kernels_hash.empty() || description->weights_hash.empty()))
    return cannot_replace(target, "is not a compiled model: its manifest.json has no hashes");
  TS_ASSIGN_OR_RETURN(const auto foreign, foreign_entry(target));
  if (foreign)
    return cannot_replace(target, "holds '" + *foreign + "', which does not belong to a compiled model");
  return {};
}

// Puts `fresh` at `target`; afterwards, `fresh` names what was there before, or nothing.
Status exchange(const fs::path& fresh, const fs::path& target) {
  if (::rename(fresh.c_str(), target.c_str()) == 0) return {};  // nothing or an empty directory was there
  if (errno != ENOTEMPTY && errno != EEXIST) return file_error(target.string(), "cannot create", errno);
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return file_error(target.string(), "cannot replace", errno);
  // If the file system cannot exchange directories, the old model is missing for a moment.
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

Status check_replaceable(const std::string& directory) {
  TS_ASSIGN_OR_RETURN(const fs::path target, target_of(directory));
  return check_target(target);
}

Status write_model(const std::string& directory, ModelDescription d, std::span<const char> kernels,
                   const std::vector<WeightData>& weights) {
  place_weights(d, weights);
  const std::string_view kernel_bytes(kernels.data(), kernels.size());
  d.kernels_hash = content_key(kernel_bytes);
  d.weights_hash = hash_weights(weights, d);
  TS_RETURN_IF_ERROR(validate(d));
  const std::string manifest = print_manifest(d);
  if (std::ssize(manifest) > kMaxManifestBytes) {
    return Error{ErrorCode::kResourceExhausted, directory,
                 "the description of " + std::to_string(d.calls.size()) +
                     " kernel calls is longer than the limit for reading it; split the model"};
  }

  TS_ASSIGN_OR_RETURN(const fs::path target, target_of(directory));
  TS_RETURN_IF_ERROR(check_target(target));
  std::error_code error;
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  fs::create_directories(parent, error);
  if (error) return file_error(parent.string(), "cannot create", error.value());

  std::string pattern = target.string() + ".tmp-XXXXXX";
  if (!::mkdtemp(pattern.data())) return file_error(target.string(), "cannot create", errno);
  TemporaryDirectory temporary{fs::path(pattern)};
  // mkdtemp makes a private directory. A model is readable like any other file: mkdir's 0777 less
  // the process' umask.
  const fs::path content = temporary.content();
  if (::mkdir(content.c_str(), 0777) != 0) return file_error(content.string(), "cannot create", errno);
  const auto write_all = [&]() -> Status {
    TS_RETURN_IF_ERROR(make_weights(content / "weights.bin", target / "weights.bin", weights, d));
    TS_RETURN_IF_ERROR(write_whole(content / kernels_file(d), kernel_bytes));
    TS_RETURN_IF_ERROR(write_whole(content / "manifest.json", manifest));
    return sync_directory(content.string());
  };
  // The error names the model, since the temporary directory no longer exists when the error is
  // read.
  if (const Status written = write_all(); !written.ok())
    return Error{written.error().code, target.string(),
                 written.error().reason + "; nothing was changed. Free some space or give another path"};
  TS_RETURN_IF_ERROR(check_target(target));  // checked again, since writing took some time
  TS_RETURN_IF_ERROR(exchange(content, target));
  TS_RETURN_IF_ERROR(sync_directory(parent.string()));
  return temporary.remove();  // the old model, if there was one
}

}  // namespace tensorsmith::runtime
