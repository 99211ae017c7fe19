// A worker whose candidates are functions of a shared library: test doubles compiled by the
// system's compiler. With a mode as argument it misbehaves from the start.
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>

#include "measure/worker.h"

using tensorsmith::Error;
using tensorsmith::ErrorCode;
using tensorsmith::Result;
using tensorsmith::measure::LoadedFunction;

namespace {

// Opened before the worker is confined; afterwards it cannot open files.
void* doubles = nullptr;

Result<LoadedFunction> find_double(const std::vector<char>& bytes, const std::string& symbol) {
  if (bytes.size() < 4 || std::memcmp(bytes.data(),
                                      "\x7f"
                                      "ELF",
                                      4) != 0)
    return Error{ErrorCode::kCorrupt, "", "not an object"};
  LoadedFunction loaded;
  loaded.function = reinterpret_cast<TensorsmithKernel>(::dlsym(doubles, symbol.c_str()));
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
  doubles = ::dlopen(DOUBLES, RTLD_NOW | RTLD_LOCAL);
  if (!doubles) return 6;
  return tensorsmith::measure::serve_worker(tensorsmith::measure::kWorkerSocket, find_double);
}
