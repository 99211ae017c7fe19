// Compact encoding of traces, for files with millions of them. The codes are stored, so they never
// change their meaning; new steps get new codes.
#pragma once

#include <string>
#include <string_view>

#include "sched/step.h"

namespace tensorsmith::record {

// Appends the trace's bytes.
void encode_trace(const sched::Trace& trace, std::string& out);
// decode(encode(t)) == t. kCorrupt for bytes that are not a trace; never crashes.
Result<sched::Trace> decode_trace(std::string_view bytes);

}  // namespace tensorsmith::record
