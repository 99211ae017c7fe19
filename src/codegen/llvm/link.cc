// Links objects to a shared library, with lld in this process. lld would map a regular output file
// into memory, where a full disk raises SIGBUS. Into any other file it writes the finished library
// sequentially.
#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "codegen/llvm/load.h"

LLD_HAS_DRIVER(elf)

namespace tensorsmith::codegen {
namespace {

// An unnamed file in memory that has a path while this object lives.
class MemoryFile {
 public:
  explicit MemoryFile(const std::vector<char>& bytes) : descriptor_(memfd_create("kernel", MFD_CLOEXEC)) {
    size_t written = 0;
    while (ok() && written < bytes.size()) {
      const ssize_t n = write(descriptor_, bytes.data() + written, bytes.size() - written);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        close(descriptor_);
        descriptor_ = -1;
      } else {
        written += n;
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

// A pipe whose write end has a path; collects everything that is written there.
class PipeSink {
 public:
  PipeSink() {
    if (pipe2(ends_, O_CLOEXEC) != 0) return;
    try {
      reader_ = std::thread([this] { collect(); });
    } catch (const std::system_error& error) {
      for (int& end : ends_) close(std::exchange(end, -1));
      errno = error.code().value();
    }
  }
  ~PipeSink() { (void)finish(); }
  PipeSink(const PipeSink&) = delete;
  PipeSink& operator=(const PipeSink&) = delete;
  bool ok() const { return ends_[1] >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[1]); }
  // Call this when all writers of the path have finished.
  std::vector<char> finish() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));  // lets the reader reach the end of the file
    if (reader_.joinable()) reader_.join();
    if (ends_[0] >= 0) close(std::exchange(ends_[0], -1));
    return std::move(bytes_);
  }

 private:
  void collect() {
    constexpr size_t kChunk = size_t{1} << 16;
    while (true) {
      const size_t size = bytes_.size();
      bytes_.resize(size + kChunk);
      const ssize_t n = read(ends_[0], bytes_.data() + size, kChunk);
      bytes_.resize(size + (n > 0 ? n : 0));
      if (n == 0 || (n < 0 && errno != EINTR)) return;
    }
  }
  int ends_[2] = {-1, -1};
  std::vector<char> bytes_;
  std::thread reader_;
};

}  // namespace

Result<std::vector<char>> link_shared_library(const std::vector<std::vector<char>>& objects) {
  const std::string place = "linking";
  if (objects.empty()) return Error{ErrorCode::kInvalidArgument, place, "no objects"};
  const auto no_memory = [&] {
    return Error{ErrorCode::kResourceExhausted, place,
                 std::string("cannot create the memory file or the thread that linking needs: ") +
                     std::strerror(errno)};
  };
  PipeSink library;
  if (!library.ok()) return no_memory();
  std::vector<std::unique_ptr<MemoryFile>> files;
  std::vector<std::string> arguments = {
      "ld.lld",           "-shared",         "-z",          "defs", "-z",          "noexecstack",
      "--hash-style=gnu", "--build-id=none", "--threads=1", "-o",   library.path()};
  for (const std::vector<char>& object : objects) {
    files.push_back(std::make_unique<MemoryFile>(object));
    if (!files.back()->ok()) return no_memory();
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
    return Error{ErrorCode::kInvalidArgument, place, "lld: " + errors.substr(0, errors.find('\n'))};
  }
  return library.finish();
}

}  // namespace tensorsmith::codegen
