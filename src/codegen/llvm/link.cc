// Objects -> shared library, with lld in this process.
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "codegen/llvm/codegen.h"

LLD_HAS_DRIVER(elf)

namespace tensorsmith::codegen {
namespace {

// An unnamed file in memory, reachable by a path while this lives.
class MemoryFile {
 public:
  explicit MemoryFile(const std::vector<char>& bytes) : descriptor_(memfd_create("kernel.o", MFD_CLOEXEC)) {
    size_t written = 0;
    while (ok() && written < bytes.size()) {
      const ssize_t n = write(descriptor_, bytes.data() + written, bytes.size() - written);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        close(descriptor_);
        descriptor_ = -1;
      } else {
        written += static_cast<size_t>(n);
      }
    }
  }
  ~MemoryFile() {
    if (ok()) close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  bool ok() const { return descriptor_ >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

Status link_shared_library(const std::vector<std::vector<char>>& objects, const std::string& path) {
  const std::string place = "linking " + path;
  if (objects.empty()) return Error{ErrorCode::kInvalidArgument, place, "no objects"};
  std::vector<std::unique_ptr<MemoryFile>> files;
  std::vector<std::string> arguments = {
      "ld.lld",           "-shared",         "-z",          "defs", "-z", "noexecstack",
      "--hash-style=gnu", "--build-id=none", "--threads=1", "-o",   path};
  for (const std::vector<char>& object : objects) {
    files.push_back(std::make_unique<MemoryFile>(object));
    if (!files.back()->ok())
      return Error{ErrorCode::kResourceExhausted, place,
                   std::string("cannot hold an object in memory: ") + std::strerror(errno)};
    arguments.push_back(files.back()->path());
  }
  std::vector<const char*> pointers;
  for (const std::string& a : arguments) pointers.push_back(a.c_str());
  std::string output;
  std::string errors;
  llvm::raw_string_ostream output_stream(output);
  llvm::raw_string_ostream error_stream(errors);
  // lld keeps its state in globals.
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const lld::Result result =
      lld::lldMain(pointers, output_stream, error_stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    std::string first = errors.substr(0, errors.find('\n'));
    const bool io = errors.find("cannot open output file") != std::string::npos;
    return Error{io ? ErrorCode::kIo : ErrorCode::kInvalidArgument, place, "lld: " + first};
  }
  return {};
}

}  // namespace tensorsmith::codegen
