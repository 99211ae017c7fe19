// Input: a line. parse_json_line never crashes, and an accepted record is the same after writing and reading.
#include <cstdint>
#include <cstdlib>

#include "record/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const auto parsed = record::parse_json_line({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  const auto line = std::visit([](const auto& item) { return record::to_json_line(item); }, *parsed);
  const auto again = record::parse_json_line(line);
  if (!again.ok() || again->index() != parsed->index()) std::abort();
  if (const auto* measured = std::get_if<record::Record>(&*parsed)) {
    if (std::get<record::Record>(*again).key() != measured->key()) std::abort();
    if (measured->result.best_estimate() != std::get<record::Record>(*again).result.best_estimate())
      std::abort();
  }
  return 0;
}
