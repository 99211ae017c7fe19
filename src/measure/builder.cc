#include "measure/builder.h"

namespace tensorsmith::measure {
namespace {

class CodegenBuilder final : public Builder {
 public:
  explicit CodegenBuilder(const target::Device& device) : device_(device) {}

  BuildResult build(const ir::Workload& workload, const sched::Trace& trace) const override {
    // A bug in a step, in lowering or in code generation costs this candidate, not the tuning run.
    try {
      auto schedule = sched::replay(workload, trace);
      if (!schedule.ok()) return BuildFailure{record::Outcome::kInvalidSchedule, schedule.error().message()};
      auto lowered = lower::lower(*schedule);
      if (!lowered.ok()) return BuildFailure{record::Outcome::kInvalidSchedule, lowered.error().message()};
      auto kernel = codegen::compile(lowered->program, device_, {});
      if (!kernel.ok()) return BuildFailure{record::Outcome::kBuildError, kernel.error().message()};
      return BuiltCandidate{std::move(kernel).value(), std::move(lowered->prepared)};
    } catch (const InternalError& e) {
      return BuildFailure{record::Outcome::kBuildError, std::string("internal error: ") + e.what()};
    }
  }

 private:
  target::Device device_;
};

}  // namespace

std::unique_ptr<Builder> make_builder(const target::Device& device) {
  return std::make_unique<CodegenBuilder>(device);
}

}  // namespace tensorsmith::measure
