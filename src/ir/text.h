// Text form of workloads and programs; parse(print(x)) is structurally equal to x, and print(parse(t)) is a
// fixed point.
#pragma once

#include <string>
#include <string_view>

#include "ir/stmt.h"
#include "ir/workload.h"

namespace tensorsmith::ir {

std::string print(const Expr& e);
std::string print(const Stmt& s);
std::string print(const Program& program);
std::string print(const Workload& workload);

// Errors have "line:column" as their place. Never crashes, whatever the text is (fuzzed); nesting
// is limited.
Result<Workload> parse_workload(std::string_view text);
Result<Program> parse_program(std::string_view text);

}  // namespace tensorsmith::ir
