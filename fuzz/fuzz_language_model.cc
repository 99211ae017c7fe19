// Input: a file. Reading a language model never crashes, and an accepted model has all of its weights.
#include <cstdlib>

#include "learn/lm/language_model.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const fuzz::MemoryFile file(data, size);
  const auto model = learn::lm::read_language_model(file.path());
  if (!model.ok()) return 0;
  for (const auto& [name, shape] : learn::lm::weight_shapes(model->sizes)) {
    const auto weight = model->weights.find(name);
    if (weight == model->weights.end() || weight->second.shape != shape) std::abort();
  }
  if (model->parameters() <= 0) std::abort();
  return 0;
}
