// Input: bytes. parse_npy never crashes, and an accepted tensor has the bytes of its shape and dtype.
#include <cstdint>
#include <cstdlib>

#include "tools/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const auto tensor = tools::parse_npy({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!tensor.ok()) return 0;
  if (tensor->data.size() !=
      static_cast<size_t>(tensor->num_elements()) * static_cast<size_t>(bytes_of(tensor->dtype)))
    std::abort();
  return 0;
}
