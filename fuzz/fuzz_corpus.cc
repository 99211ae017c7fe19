// Input: a file. Reading a corpus of programs never crashes; the indices in an accepted corpus are valid.
#include <cstdlib>

#include "learn/lm/corpus.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const fuzz::MemoryFile file(data, size);
  const auto corpus = learn::lm::read_corpus(file.path());
  if (!corpus.ok()) return 0;
  for (const auto& task : corpus->tasks) (void)corpus->devices.at(static_cast<size_t>(task.device));
  for (const auto& prompt : corpus->prompts) (void)corpus->tasks.at(static_cast<size_t>(prompt.task));
  for (const auto& sentence : corpus->sentences) {
    (void)corpus->prompts.at(static_cast<size_t>(sentence.prompt));
    if (sentence.quality >= learn::lm::Quality::kCount) std::abort();
  }
  (void)corpus->hash();
  return 0;
}
