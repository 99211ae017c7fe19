#include "measure/builder.h"

namespace tensorsmith::measure {
namespace {

class CodegenBuilder final : public Builder {
 public:
  CodegenBuilder(const target::Device& device, const codegen::Backend& backend)
      : device_(device), backend_(backend) {}

  BuildResult build(const ir::Workload& workload, const sched::Trace& trace) const override {
    // A bug in a step, in lowering or in code generation costs this candidate, not the tuning run.
    try {
      auto schedule = sched::replay(workload, trace);
      if (!schedule.ok()) return BuildFailure{record::Outcome::kInvalidSchedule, schedule.error().message()};
      auto lowered = lower::lower(*schedule);
      if (!lowered.ok()) return BuildFailure{record::Outcome::kInvalidSchedule, lowered.error().message()};
      auto kernel = backend_.compile(lowered->program, device_, {});
      if (!kernel.ok()) return BuildFailure{record::Outcome::kBuildError, kernel.error().message()};
      return BuiltCandidate{std::move(kernel).value(), std::move(lowered->prepared)};
    } catch (const InternalError& e) {
      return BuildFailure{record::Outcome::kBuildError, std::string("internal error: ") + e.what()};
    }
  }

 private:
  target::Device device_;
  const codegen::Backend& backend_;
};

}  // namespace

std::unique_ptr<Builder> make_builder(const target::Device& device, const codegen::Backend& backend) {
  return std::make_unique<CodegenBuilder>(device, backend);
}

}  // namespace tensorsmith::measure
