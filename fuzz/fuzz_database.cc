// Input: a file. A database that can be opened can be read and checked without a crash or a hang.
#include "memory_file.h"
#include "record/database.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const fuzz::MemoryFile file(data, size);
  const auto database = record::Database::open_read_only(file.path());
  if (!database.ok()) return 0;
  (void)(*database)->tasks();
  (void)(*database)->devices();
  (void)(*database)->for_each([](const record::Record&) { return Status(); });
  (void)(*database)->check_integrity();
  return 0;
}
