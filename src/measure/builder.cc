#include "measure/builder.h"

#include "codegen/build.h"

namespace tensorsmith::measure {
namespace {

class CodegenBuilder final : public Builder {
 public:
  CodegenBuilder(const target::Device& device, const codegen::Backend& backend)
      : device_(device), backend_(backend) {}

  BuildResult build(const ir::Workload& workload, const sched::Trace& trace) const override {
    // An exception in a step, in lowering or in code generation fails this candidate, not the
    // tuning run.
    try {
      auto step = codegen::BuildStep::kReplay;
      auto built = codegen::build(workload, trace, device_, backend_, {}, &step);
      if (built.ok()) return BuiltCandidate{std::move(built->kernel), std::move(built->lowered.prepared)};
      const bool compiled = step == codegen::BuildStep::kCompile;
      return BuildFailure{compiled ? record::Outcome::kBuildError : record::Outcome::kInvalidSchedule,
                          built.error().message()};
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
