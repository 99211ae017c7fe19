// The process that runs candidates. It trusts them with nothing but itself: inputs are read-only, buffers are
// fenced, memory is limited, and the parent ends it when it takes too long.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::measure {

// The descriptor on which a worker finds its socket.
inline constexpr int kWorkerSocket = 3;
// The first argument of a program that is started as a worker.
inline constexpr const char* kWorkerArgument = "__worker";

struct LoadedFunction {
  std::shared_ptr<void> owner;  // keeps the code loaded
  TensorsmithKernel function = nullptr;
};
using KernelLoader =
    std::function<Result<LoadedFunction>(const std::vector<char>& object, const std::string& symbol)>;

// Serves requests (measure/protocol.h) until the parent closes the socket. The exit code. worker_main() is
// this with object code loaded by codegen; tests load doubles.
int serve_worker(int socket, const KernelLoader& loader);

}  // namespace tensorsmith::measure
