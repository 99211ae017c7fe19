// Input: a line. parse_ansor_record and decode_trace never crash, and the steps that are accepted keep
// their meaning in compact form.
#include <cstdint>
#include <cstdlib>

#include "record/ansor/ansor_record.h"
#include "record/trace_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tensorsmith;  // NOLINT(google-build-using-namespace)
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  (void)record::decode_trace(line);
  record::AnsorRecord record;
  if (!record::parse_ansor_record(line, record).ok()) return 0;
  std::string bytes;
  record::encode_trace(record.trace, bytes);
  const auto decoded = record::decode_trace(bytes);
  if (!decoded.ok() || !(*decoded == record.trace)) std::abort();
  return 0;
}
