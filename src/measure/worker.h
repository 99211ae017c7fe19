// The process that runs candidates. It protects only the rest of the system from them: inputs are
// read-only, buffers are fenced, memory is limited, and the parent ends the process if it takes too
// long.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::measure {

// Descriptor of a worker's socket.
inline constexpr int kWorkerSocket = 3;
// First argument of a program that is started as a worker.
inline constexpr const char* kWorkerArgument = "__worker";

struct LoadedFunction {
  std::shared_ptr<void> owner;  // keeps the code loaded
  TensorsmithKernel function = nullptr;
};
using KernelLoader =
    std::function<Result<LoadedFunction>(const std::vector<char>& object, const std::string& symbol)>;

// Serves requests (measure/protocol.h) until the parent closes the socket; returns the exit code.
// worker_main() calls it with codegen's loader of object code; tests pass other loaders.
int serve_worker(int socket, const KernelLoader& loader);

}  // namespace tensorsmith::measure
