// Input: a file. Reading it as an ONNX tensor never crashes, and an accepted tensor has the size of its
// shape.
#include "graph/graph.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const fuzz::MemoryFile file(data, size);
  const auto tensor = graph::read_tensor_proto(file.path());
  if (!tensor.ok()) return 0;
  if (static_cast<int64_t>(tensor->data.size()) != tensor->num_elements() * ir::bytes_of(tensor->dtype))
    std::abort();
  return 0;
}
