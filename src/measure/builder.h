// Builds object code from a trace. An interface, so that tests can supply faulty code.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "codegen/backend.h"
#include "ir/workload.h"
#include "lower/lower.h"
#include "record/record.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::measure {

struct BuiltCandidate {
  codegen::CompiledKernel kernel;
  std::vector<lower::PreparedConstant> prepared;
};
struct BuildFailure {
  record::Outcome outcome = record::Outcome::kBuildError;
  std::string reason;
};
using BuildResult = std::variant<BuildFailure, BuiltCandidate>;

class Builder {
 public:
  virtual ~Builder() = default;
  // Thread-safe.
  virtual BuildResult build(const ir::Workload& workload, const sched::Trace& trace) const = 0;
};

// Returns a builder that calls codegen::build() for the device.
std::unique_ptr<Builder> make_builder(const target::Device& device, const codegen::Backend& backend);

}  // namespace tensorsmith::measure
