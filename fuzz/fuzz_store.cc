// Input: a file. Opening a store never crashes, and the content of an opened store can be read.
#include "learn/dataset/store.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const fuzz::MemoryFile file(data, size);
  const auto store = learn::Store::open(file.path());
  if (!store.ok()) return 0;
  (void)(*store)->verify();
  feature::LeafFeatures leaves;
  for (int64_t i = 0; i < (*store)->size(); ++i) {
    (void)(*store)->entry(i);
    (*store)->leaves(i, leaves);
    (void)(*store)->per_store(i);
    (void)(*store)->trace(i);
  }
  return 0;
}
