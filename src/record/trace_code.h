// Traces in few bytes, for files that hold millions of them. The numbers are stored, so they never change
// their meaning: new steps get new codes.
#pragma once

#include <string>
#include <string_view>

#include "sched/step.h"

namespace tensorsmith::record {

// Appends the trace's bytes.
void encode_trace(const sched::Trace& trace, std::string& out);
// decode(encode(t)) == t. kCorrupt for bytes that are no trace; never crashes.
Result<sched::Trace> decode_trace(std::string_view bytes);

}  // namespace tensorsmith::record
