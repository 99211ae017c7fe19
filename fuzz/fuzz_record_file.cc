// Input: a file of record lines, plain or compressed. Each line is read or refused in bounded time and
// memory.
#include "memory_file.h"
#include "record/jsonl.h"
#include "record/line_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const fuzz::MemoryFile file(data, size);
  const auto reader = record::LineReader::open(file.path(), size_t{1} << 16);
  if (!reader.ok()) return 0;
  record::LineReader::Line line;
  for (int n = 0; n < 10000; ++n) {
    const auto more = (*reader)->next(line);
    if (!more.ok() || !*more) return 0;
    if (!line.too_long) (void)record::parse_json_line(line.text);
  }
  return 0;
}
