#include "space/algorithm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>
#include <utility>

#include "space/plan_kind.h"
#include "space/plan_steps.h"

namespace tensorsmith::space {

namespace {

// The rule AlwaysInline: stages without a reduction that are not outputs, have one result, and are
// cheap where they are read. Not cheap are transcendental functions that are read more than once,
// and a select (padding) under data reuse, which would be evaluated in the innermost loop; plans
// decide about the latter. Stages that a pattern keeps are not inlined, either.
// An inlined stage is copied into each reader, so chains like x * sigmoid(x) grow fast. If a reader
// would become too large, its largest producers are not inlined.
IdVector<StageId, bool> always_inlined(const WorkloadAnalysis& analysis, const ir::Workload& workload,
                                       const Patterns& patterns) {
  const size_t n = analysis.stages.size();
  IdVector<StageId, bool> inlined(n, false), kept(n, false);
  for (const auto& pattern : patterns)
    for (const StageId s : pattern->never_inlined) kept[s] = true;
  IdVector<StageId, int64_t> written(n, 0);  // size of the bodies after inlining, written out
  IdVector<StageId, double> size(n, 1);      // operations of the body after inlining
  for (const StageId s : analysis.stages.ids()) {
    const auto& info = analysis.stages[s];
    if (info.placeholder) continue;
    while ((written[s] = written_size(workload, s, inlined, written)) > kMaxWrittenSize) {
      StageId largest;
      for (const auto& read : info.reads) {
        const StageId p = read.producer;
        if (inlined[p] && (!largest.valid() || written[p] > written[largest])) largest = p;
      }
      if (!largest.valid()) break;
      inlined[largest] = false;
    }
    size[s] = 1 + info.flops_per_point;
    for (const auto& read : info.reads)
      if (inlined[read.producer]) size[s] += read.loads * size[read.producer];
    // Packed elements (sched::Dot) are meant to be computed once.
    bool words = false;
    for (const StageId c : info.consumers) words = words || analysis.stages[c].dot;
    if (words || kept[s]) continue;
    if (info.reduction || info.output || info.arg_reduction || info.consumers.empty()) continue;
    bool reused = false;
    for (const StageId c : info.consumers) reused = reused || analysis.stages[c].data_reuse;
    const bool once =
        info.consumers.size() == 1 && (analysis.reads_elementwise(info.consumers.front(), s) ||
                                       (analysis.stages[info.consumers.front()].reduction && !reused));
    if (size[s] > 400) continue;
    if (reused && (info.expensive || info.has_select || info.indirect)) continue;
    if (info.expensive && !once) continue;
    inlined[s] = true;
  }
  return inlined;
}

// With fewer channels than this, the transforms never pay off.
constexpr int64_t kMinChannels = 8;

std::unique_ptr<const Algorithm> rewritten_by_winograd(const ir::Workload& workload, int64_t m,
                                                       const EstimateMachine& machine) {
  sched::ScheduleBuilder builder(workload);
  // A step inserts stages before its own, so the last convolution is rewritten first.
  for (size_t s = workload.operations.size(); s-- > 0;) {
    const auto& op = *workload.operations[s];
    if (!op.has_reduction() || op.spatial.size() != 4) continue;
    if (std::min(op.spatial[1].extent, op.reduce.front().extent) < kMinChannels) continue;
    (void)builder.apply(sched::Winograd{static_cast<int>(s), m}).ok();
  }
  if (builder.trace().steps.empty()) return nullptr;
  return std::make_unique<Algorithm>(builder, machine);
}

// Returns whether Dot made products of bytes of the contraction that any vector unit computes
// exactly.
bool multiplies_narrow_bytes(const sched::Schedule& schedule, const ir::Operation& contraction) {
  const auto product = schedule.stage_named(contraction.name + ".product");
  if (!product) return false;
  const auto* call = ir::as<ir::Call>(schedule.stages[*product].op->bodies.front());
  return call != nullptr && call->intrinsic == ir::Intrinsic::kDot4Narrow;
}

// Rewrites contractions to packed elements, each along the reduce loop that fills the words best;
// null if there are none.
std::unique_ptr<const Algorithm> rewritten_by_dot(const ir::Workload& workload,
                                                  const EstimateMachine& machine) {
  sched::ScheduleBuilder builder(workload);
  const bool fours = machine.dot4 || std::ranges::any_of(workload.operations,
                                                         [](const auto& op) { return op->reduced_range; });
  // Stages before a rewritten one may be removed, so the last contraction is rewritten first.
  for (size_t s = workload.operations.size(); s-- > 0;) {
    const auto& op = *workload.operations[s];
    if (!op.has_reduction()) continue;
    const ir::DType sum = op.output()->dtype;
    if (sum != ir::DType::kI32 && sum != ir::DType::kF32) continue;
    const bool bytes = sum == ir::DType::kI32;
    const double per_word = bytes && fours ? 4 : 2;
    const auto stage = builder.schedule().stage_named(op.name);
    if (!stage) continue;
    std::vector<size_t> loops(op.reduce.size());
    std::iota(loops.begin(), loops.end(), size_t{0});
    const auto filled = [&](size_t r) {
      const double steps = op.reduce[r].extent;
      return steps / (std::ceil(steps / per_word) * per_word);
    };
    std::stable_sort(loops.begin(), loops.end(), [&](size_t x, size_t y) { return filled(x) > filled(y); });
    for (const size_t r : loops) {
      const int loop = op.spatial.size() + r;
      const int at = stage->place();
      if (!bytes || machine.dot4) {
        if (builder.apply(sched::Dot{at, loop}).ok()) break;
        continue;
      }
      sched::ScheduleBuilder by_bytes = builder;
      if (by_bytes.apply(sched::Dot{at, loop}).ok() && multiplies_narrow_bytes(by_bytes.schedule(), op)) {
        builder = std::move(by_bytes);
        break;
      }
      if (builder.apply(sched::Dot16{at, loop}).ok()) break;
    }
  }
  if (builder.trace().steps.empty()) return nullptr;
  return std::make_unique<Algorithm>(builder, machine);
}

// Outputs of a block: tiles of a reduction with data reuse have some thousand, others have one
// block per output.
constexpr double kOutputsOfBlock = 4096;
// Fewest points of a part that are worth a pass over the results of the parts.
constexpr int64_t kLeastPart = 32;

// Returns the reduce axis to be cut into about `wanted` parts of equal length, and the number of
// parts; none if the operation's outputs fill the device or no axis is long enough.
std::optional<std::pair<size_t, int64_t>> parts_of(const ir::Operation& op, const StageInfo& info,
                                                   int64_t wanted, const target::GpuMachine& gpu) {
  if (!op.has_reduction() || info.arg_reduction || op.reduce.empty()) return std::nullopt;
  const double outputs = info.spatial_points() / (info.data_reuse ? kOutputsOfBlock : 1);
  if (outputs * wanted > 4 * gpu.cores) return std::nullopt;
  size_t longest = 0;
  for (size_t r = 0; r < op.reduce.size(); ++r)
    if (op.reduce[r].extent > op.reduce[longest].extent) longest = r;
  const int64_t extent = op.reduce[longest].extent;
  if (extent < wanted * kLeastPart) return std::nullopt;
  const int64_t parts = largest_divisor(extent, wanted);
  if (2 * parts <= wanted) return std::nullopt;
  return std::pair(longest, parts);
}

// Returns null if no operation is cut.
std::unique_ptr<const Algorithm> rewritten_in_parts(const ir::Workload& workload, int64_t wanted,
                                                    const EstimateMachine& machine) {
  const WorkloadAnalysis analysis(workload);
  sched::ScheduleBuilder builder(workload);
  // A step inserts stages before its own, so the last reduction is rewritten first.
  for (size_t s = workload.operations.size(); s-- > 0;) {
    const auto& op = *workload.operations[s];
    const auto cut = parts_of(op, analysis.stages[StageId(s)], wanted, machine.gpu);
    if (!cut) continue;
    const auto stage = static_cast<int>(s), loop = static_cast<int>(op.spatial.size() + cut->first);
    const int64_t length = op.reduce[cut->first].extent / cut->second;
    sched::ScheduleBuilder tried = builder;
    if (tried.apply(sched::Split{stage, loop, {length}}).ok() &&
        tried.apply(sched::Rfactor{stage, loop, 0}).ok())
      builder = std::move(tried);
  }
  if (builder.trace().steps.empty()) return nullptr;
  auto made = std::make_unique<Algorithm>(builder, machine);
  made->label = "in " + std::to_string(wanted) + " parts: ";
  return made;
}

ir::Workload definitions(const sched::Schedule& schedule) {
  ir::Workload result;
  for (const auto& stage : schedule.stages) result.operations.push_back(stage.op);
  result.outputs = schedule.outputs;
  return result;
}

}  // namespace

Algorithm::Algorithm(const sched::ScheduleBuilder& made_by, const EstimateMachine& machine)
    : workload(definitions(made_by.schedule())),
      steps(made_by.trace().steps),
      analysis(workload, machine.kind != target::DeviceKind::kGpu),
      context{.workload = &workload,
              .analysis = &analysis,
              .rewriting = steps,
              .machine = machine,
              .inlined = {},
              .patterns = {}},
      plain{.workload = &workload,
            .analysis = &analysis,
            .rewriting = steps,
            .machine = machine,
            .inlined = {},
            .patterns = {}},
      start(made_by.schedule()) {
  for (const PlanKind* kind : plan_kinds())
    if (kind->device == machine.kind && kind->match != nullptr) kind->match(context, context.patterns);
  context.inlined = always_inlined(analysis, workload, context.patterns);
  plain.inlined.assign(analysis.stages.size(), false);
  sched::ScheduleBuilder builder(start);
  for (const auto& step : inlining())
    if (!builder.apply(step).ok()) return;
  inlined_start = std::move(builder).take();
}

std::vector<sched::Step> Algorithm::inlining() const {
  std::vector<sched::Step> result;
  for (const StageId s : std::views::reverse(context.inlined.ids()))
    if (context.inlined[s]) result.push_back(sched::ComputeInline{static_cast<int>(s.place())});
  return result;
}

std::vector<std::unique_ptr<const Algorithm>> make_algorithms(const ir::Workload& workload,
                                                              const EstimateMachine& machine, bool winograd) {
  std::vector<std::unique_ptr<const Algorithm>> result;
  result.push_back(std::make_unique<Algorithm>(sched::ScheduleBuilder(workload), machine));
  if (machine.kind == target::DeviceKind::kGpu) {
    for (const int64_t parts : {4, 16, 64})
      if (auto rewritten = rewritten_in_parts(workload, parts, machine))
        result.push_back(std::move(rewritten));
    return result;
  }
  if (auto rewritten = rewritten_by_dot(workload, machine)) result.push_back(std::move(rewritten));
  if (!winograd) return result;
  for (const int64_t m : {4, 2})
    if (auto rewritten = rewritten_by_winograd(workload, m, machine)) result.push_back(std::move(rewritten));
  return result;
}

}  // namespace tensorsmith::space
