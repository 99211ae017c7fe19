// A worker whose candidates are shared libraries: test doubles made by the system's compiler. With a mode as
// argument it misbehaves from the start.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "measure/worker.h"

using tensorsmith::Error;
using tensorsmith::ErrorCode;
using tensorsmith::Result;
using tensorsmith::measure::LoadedFunction;

namespace {

Result<LoadedFunction> load_library(const std::vector<char>& bytes, const std::string& symbol) {
  const int fd = ::memfd_create("candidate", 0);
  if (::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return Error{ErrorCode::kIo, "", "no memory file"};
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ::close(fd);
  if (!handle) return Error{ErrorCode::kCorrupt, "", ::dlerror()};
  LoadedFunction loaded;
  loaded.owner = std::shared_ptr<void>(handle, [](void* h) { ::dlclose(h); });
  loaded.function = reinterpret_cast<TensorsmithKernel>(::dlsym(handle, symbol.c_str()));
  if (!loaded.function) return Error{ErrorCode::kNotFound, "", "no symbol " + symbol};
  return loaded;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "exits") == 0) return 5;
  if (argc > 1 && std::strcmp(argv[1], "complains") == 0) {
    [[maybe_unused]] const ssize_t written = ::write(2, "no licence\n", 11);
    return 1;
  }
  return tensorsmith::measure::serve_worker(tensorsmith::measure::kWorkerSocket, load_library);
}
