// Input: bytes. Reading a model file never crashes, and an accepted model is written as it was read.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "learn/latency/model_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const auto file = learn::parse_model_file({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  const auto again = learn::parse_model_file(learn::to_bytes(*file));
  if (!again.ok() || again->tensors.size() != file->tensors.size()) std::abort();
  return 0;
}
