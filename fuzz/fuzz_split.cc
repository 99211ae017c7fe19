// Input: a file. Reading a split of a store never crashes.
#include "learn/dataset/split.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tensorsmith::fuzz::MemoryFile file(data, size);
  (void)tensorsmith::learn::load_split(file.path());
  return 0;
}
