#include "space/algorithm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "space/attention_plan.h"

namespace tensorsmith::space {

namespace {

// AlwaysInline: no reduction, not an output, one result, and cheap where it is read. Not cheap:
// transcendental functions read more than once; a select (padding) under data reuse, which would be decided
// in the innermost loop: that is a decision of the tiled plan. The stages of a rewritten convolution are
// there to be computed.
// What is read twice is there twice, so chains like x * sigmoid(x) grow fast: a reader that would become too
// large computes its producers.
// Masked scores are read twice, and made in the register tile that sums up the scores.
std::vector<bool> always_inlined(const WorkloadAnalysis& analysis, const ir::Workload& workload,
                                 const std::vector<WinogradStages>& winograd,
                                 const std::vector<AttentionStages>& attention) {
  std::vector<bool> inlined(analysis.stages.size(), false), kept(analysis.stages.size(), false);
  for (const auto& w : winograd)
    for (int s : {w.data, w.rows, w.input, w.product, w.columns, w.result})
      kept[static_cast<size_t>(s)] = true;
  const auto masked = [&](size_t s) {
    return std::any_of(attention.begin(), attention.end(),
                       [&](const AttentionStages& a) { return a.masked == static_cast<int>(s); });
  };
  std::vector<int64_t> written(analysis.stages.size(), 0);  // size of the bodies after inlining, written out
  std::vector<double> size(analysis.stages.size(), 1);      // of the body after inlining
  for (size_t s = 0; s < analysis.stages.size(); ++s) {
    const auto& info = analysis.stages[s];
    if (info.placeholder || kept[s]) continue;
    while ((written[s] = written_size(workload, s, inlined, written)) > kMaxWrittenSize) {
      int largest = -1;
      for (const auto& read : info.reads) {
        const auto p = static_cast<size_t>(read.producer);
        if (inlined[p] && (largest < 0 || written[p] > written[static_cast<size_t>(largest)]))
          largest = read.producer;
      }
      if (largest < 0) break;
      inlined[static_cast<size_t>(largest)] = false;
    }
    size[s] = 1 + info.flops_per_point;
    for (const auto& read : info.reads)
      if (inlined[static_cast<size_t>(read.producer)])
        size[s] += read.loads * size[static_cast<size_t>(read.producer)];
    // The words of sched::Dot are there to be computed once.
    bool words = false;
    for (int c : info.consumers) words = words || analysis.stages[static_cast<size_t>(c)].dot;
    if (words || masked(s)) continue;
    if (info.reduction || info.output || info.arg_reduction || info.consumers.empty()) continue;
    bool reused = false;
    for (int c : info.consumers) reused = reused || analysis.stages[static_cast<size_t>(c)].data_reuse;
    const bool once = info.consumers.size() == 1 &&
                      (analysis.reads_elementwise(info.consumers.front(), static_cast<int>(s)) ||
                       (analysis.stages[static_cast<size_t>(info.consumers.front())].reduction && !reused));
    if (size[s] > 400) continue;
    if (reused && (info.expensive || info.has_select || info.indirect)) continue;
    if (info.expensive && !once) continue;
    inlined[s] = true;
  }
  return inlined;
}

// Fewer channels than this do not pay for the transforms anywhere.
constexpr int64_t kMinChannels = 8;

std::unique_ptr<const Algorithm> rewritten_by_winograd(const ir::Workload& workload, int64_t m,
                                                       const Machine& machine, int threads) {
  sched::ScheduleBuilder builder(workload);
  std::vector<int> results;
  // Each step inserts five stages before its own, so the last convolution comes first.
  constexpr int kInserted = 5;
  for (size_t s = workload.operations.size(); s-- > 0;) {
    const auto& op = *workload.operations[s];
    if (!op.has_reduction() || op.spatial.size() != 4) continue;
    if (std::min(op.spatial[1].extent, op.reduce.front().extent) < kMinChannels) continue;
    if (!builder.apply(sched::Winograd{static_cast<int>(s), m}).ok()) continue;
    for (int& r : results) r += kInserted;
    results.push_back(static_cast<int>(s) + kInserted);
  }
  if (results.empty()) return nullptr;
  std::vector<WinogradStages> winograd;
  for (const int result : results) {
    WinogradStages stages{m, 0, result - 5, result - 4, result - 3, result - 2, result - 1, result};
    const auto& product = builder.schedule().stages[static_cast<size_t>(stages.product)].reads->loads();
    // input * weights
    stages.weights = builder.schedule().producer_of(product.back()->buffer.get());
    winograd.push_back(stages);
  }
  return std::make_unique<Algorithm>(builder, std::move(winograd), machine, threads);
}

// Contractions of short elements by words, each along the loop that fills them best; null where there are
// none.
std::unique_ptr<const Algorithm> rewritten_by_dot(const ir::Workload& workload, const Machine& machine,
                                                  int threads) {
  sched::ScheduleBuilder builder(workload);
  // Stages before a rewritten one may go, so the last contraction comes first.
  for (size_t s = workload.operations.size(); s-- > 0;) {
    const auto& op = *workload.operations[s];
    if (!op.has_reduction()) continue;
    const ir::DType sum = op.output()->dtype;
    if (sum != ir::DType::kI32 && sum != ir::DType::kF32) continue;
    const double per_word = sum == ir::DType::kI32 ? 4 : 2;
    const auto stage = builder.schedule().stage_named(op.name);
    if (!stage) continue;
    std::vector<size_t> loops(op.reduce.size());
    std::iota(loops.begin(), loops.end(), size_t{0});
    const auto filled = [&](size_t r) {
      const double steps = static_cast<double>(op.reduce[r].extent);
      return steps / (std::ceil(steps / per_word) * per_word);
    };
    std::stable_sort(loops.begin(), loops.end(), [&](size_t x, size_t y) { return filled(x) > filled(y); });
    for (const size_t r : loops)
      if (builder.apply(sched::Dot{static_cast<int>(*stage), static_cast<int>(op.spatial.size() + r)}).ok())
        break;
  }
  if (builder.trace().steps.empty()) return nullptr;
  return std::make_unique<Algorithm>(builder, std::vector<WinogradStages>{}, machine, threads);
}

ir::Workload definitions(const sched::Schedule& schedule) {
  ir::Workload result;
  for (const auto& stage : schedule.stages) result.operations.push_back(stage.op);
  result.outputs = schedule.outputs;
  return result;
}

}  // namespace

Algorithm::Algorithm(const sched::ScheduleBuilder& made_by, std::vector<WinogradStages> winograd,
                     const Machine& machine, int threads)
    : workload(definitions(made_by.schedule())),
      steps(made_by.trace().steps),
      analysis(workload),
      start(made_by.schedule()) {
  context.workload = &workload;
  context.analysis = &analysis;
  context.machine = machine;
  context.threads = threads;
  context.winograd = std::move(winograd);
  context.attention = find_attentions(analysis);
  plain = context;
  context.inlined = always_inlined(analysis, workload, context.winograd, context.attention);
  plain.inlined.assign(analysis.stages.size(), false);
  sched::ScheduleBuilder builder(start);
  for (const auto& step : inlining())
    if (!builder.apply(step).ok()) return;
  inlined_start = std::move(builder).take();
}

std::vector<sched::Step> Algorithm::inlining() const {
  std::vector<sched::Step> result;
  for (size_t i = context.inlined.size(); i-- > 0;)
    if (context.inlined[i]) result.push_back(sched::ComputeInline{static_cast<int>(i)});
  return result;
}

std::vector<std::unique_ptr<const Algorithm>> make_algorithms(const ir::Workload& workload,
                                                              const Machine& machine, int threads,
                                                              bool winograd) {
  std::vector<std::unique_ptr<const Algorithm>> result;
  result.push_back(std::make_unique<Algorithm>(sched::ScheduleBuilder(workload),
                                               std::vector<WinogradStages>{}, machine, threads));
  if (auto rewritten = rewritten_by_dot(workload, machine, threads)) result.push_back(std::move(rewritten));
  if (!winograd) return result;
  for (const int64_t m : {4, 2})
    if (auto rewritten = rewritten_by_winograd(workload, m, machine, threads))
      result.push_back(std::move(rewritten));
  return result;
}

}  // namespace tensorsmith::space
