#include "space/design_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/hash.h"
#include "space/design_space_impl.h"
#include "space/estimate/parts.h"

namespace tensorsmith::space {

uint64_t Candidate::hash() const {
  Hasher hasher;
  hasher.add(sketch);
  for (int64_t d : decisions) hasher.add(d);
  return hasher.digest64();
}

DesignSpace::Impl::Impl(ir::Workload w, const target::Device& device, const Options& options)
    : workload(std::move(w)) {
  const EstimateMachine machine =
      EstimateMachine(device, options.constants != nullptr ? *options.constants : default_constants());
  algorithms = make_algorithms(workload, machine, options.winograd);
  for (const auto& algorithm : algorithms) {
    SketchList list = make_sketches(*algorithm);
    left_out += list.left_out;
    for (auto& sketch : list.sketches) sketches.push_back(std::move(sketch));
  }
  sketches.push_back(make_plain_sketch(*algorithms.front()));
}

Status DesignSpace::Impl::check(const Candidate& c) const {
  const auto invalid = [](std::string reason) {
    return Error{ErrorCode::kInvalidArgument, "candidate", std::move(reason)};
  };
  if (c.sketch < 0 || std::cmp_greater_equal(c.sketch, sketches.size()))
    return invalid("sketch " + std::to_string(c.sketch) + " does not exist");
  const auto& s = sketch(c);
  if (c.decisions.size() != s.width())
    return invalid("it has " + std::to_string(c.decisions.size()) + " decisions, the sketch needs " +
                   std::to_string(s.width()));
  for (size_t p = 0; p < s.plans.size(); ++p) {
    const auto d = s.of_plan(c.decisions, p);
    for (const auto& slot : s.plans[p]->slots()) {
      const auto own = d.subspan(slot.offset, slot.width());
      const bool in_range =
          slot.tiles ? slot.tiles->contains(own) : own[0] >= 0 && own[0] < slot.decision.categories;
      if (!in_range) return invalid("decision '" + slot.decision.name + "' is out of range");
    }
    TS_RETURN_IF_ERROR(s.plans[p]->check(d));
  }
  return {};
}

double DesignSpace::Impl::estimate(const Candidate& c) const {
  const auto& s = sketch(c);
  double seconds = 0;
  for (size_t p = 0; p < s.plans.size(); ++p)
    seconds += s.plans[p]->estimate(s.of_plan(c.decisions, p), nullptr);
  return seconds;
}

sched::Trace DesignSpace::Impl::trace(const Candidate& c) const {
  const auto& s = sketch(c);
  std::vector<sched::Step> steps = s.algorithm->steps;
  if (s.inlines)
    for (auto& step : s.algorithm->inlining()) steps.push_back(std::move(step));
  TraceMaker maker(s.algorithm->workload, std::move(steps));
  for (size_t p = 0; p < s.plans.size(); ++p) s.plans[p]->emit(maker, s.of_plan(c.decisions, p));
  return std::move(maker).take();
}

Status DesignSpace::Impl::schedule(const Candidate& c, sched::Schedule& out) const {
  const auto& s = sketch(c);
  if (s.inlines && !s.algorithm->inlined_start) {  // the replay gives the reason
    TS_ASSIGN_OR_RETURN(out, sched::replay(workload, trace(c)));
    return {};
  }
  out = s.inlines ? *s.algorithm->inlined_start : s.algorithm->start;
  TraceMaker maker(s.algorithm->workload, out, rewrites);
  for (size_t p = 0; p < s.plans.size(); ++p) s.plans[p]->emit(maker, s.of_plan(c.decisions, p));
  return maker.status();
}

Candidate DesignSpace::Impl::first(size_t index) const {
  const auto& s = sketches[index];
  Candidate c;
  c.sketch = index;
  for (const auto& slot : s.slots) {
    if (slot.kind == DecisionKind::kCategory) {
      c.decisions.push_back(0);
    } else {
      c.decisions.insert(c.decisions.end(), slot.parts, 1);
    }
  }
  return c;
}

bool DesignSpace::Impl::advance(Candidate& c) const {
  const auto& s = sketch(c);
  for (size_t k = s.owner.size(); k-- > 0;) {
    const auto [p, number] = s.owner[k];
    const auto& slot = s.plans[p]->slots()[number];
    const std::span<int64_t> own(c.decisions.data() + s.offsets[p] + slot.offset, slot.width());
    if (slot.tiles) {
      if (slot.tiles->advance(own)) return true;
    } else {
      if (++own[0] < slot.decision.categories) return true;
      own[0] = 0;
    }
  }
  return false;
}

Result<DesignSpace> DesignSpace::build(const ir::Workload& workload, const target::Device& device,
                                       const Options& options) {
  TS_RETURN_IF_ERROR(ir::verify(workload));
  auto impl = std::make_shared<Impl>(workload, device, options);
  impl->find_seeds();
  return DesignSpace(std::move(impl));
}

size_t DesignSpace::num_sketches() const { return impl_->sketches.size(); }

double DesignSpace::sketches_left_out() const { return impl_->left_out; }

const std::vector<DecisionSlot>& DesignSpace::slots(int sketch) const { return impl_->sketch(sketch).slots; }

std::string DesignSpace::describe(int sketch) const { return impl_->sketch(sketch).description; }

double DesignSpace::size(int sketch) const {
  const auto& s = impl_->sketch(sketch);
  double product = 1;
  for (const auto& plan : s.plans)
    for (const auto& slot : plan->slots())
      product *= slot.tiles ? slot.tiles->count() : slot.decision.categories;
  return product;
}

std::vector<Candidate> DesignSpace::enumerate(int sketch, size_t limit) const {
  std::vector<Candidate> result;
  Candidate c = impl_->first(sketch);
  while (result.size() < limit) {
    result.push_back(c);
    if (!impl_->advance(c)) break;
  }
  return result;
}

Status DesignSpace::check(const Candidate& candidate) const { return impl_->check(candidate); }

double DesignSpace::estimate(const Candidate& candidate) const {
  if (!impl_->check(candidate).ok()) return std::numeric_limits<double>::infinity();
  return impl_->estimate(candidate);
}

void DesignSpace::estimate_parts(const Candidate& candidate, EstimateParts& parts) const {
  const auto& s = impl_->sketch(candidate);
  parts = {};
  EstimateParts times;
  double slowest = -1;
  for (size_t p = 0; p < s.plans.size(); ++p) {
    EstimateParts own;
    const double estimated = s.plans[p]->estimate(s.of_plan(candidate.decisions, p), &own);
    times.seconds += estimated;
#define TENSORSMITH_TIME(name, meaning) times.name += own.name;
#define TENSORSMITH_FACT(name, unit, meaning)
    TENSORSMITH_ESTIMATE_PARTS(TENSORSMITH_TIME, TENSORSMITH_FACT)
#undef TENSORSMITH_TIME
#undef TENSORSMITH_FACT
    if (estimated <= slowest) continue;
    slowest = estimated;
    parts = own;
  }
  parts.seconds = times.seconds;
#define TENSORSMITH_TIME(name, meaning) parts.name = times.name;
#define TENSORSMITH_FACT(name, unit, meaning)
  TENSORSMITH_ESTIMATE_PARTS(TENSORSMITH_TIME, TENSORSMITH_FACT)
#undef TENSORSMITH_TIME
#undef TENSORSMITH_FACT
}

Candidate DesignSpace::default_candidate() const { return impl_->default_candidate; }

Candidate DesignSpace::plain_candidate() const { return {static_cast<int>(num_sketches()) - 1, {}}; }

Result<sched::Trace> DesignSpace::to_trace(const Candidate& candidate) const {
  TS_RETURN_IF_ERROR(impl_->check(candidate));
  return impl_->trace(candidate);
}

Status DesignSpace::to_schedule(const Candidate& candidate, sched::Schedule& out) const {
  TS_RETURN_IF_ERROR(impl_->check(candidate));
  return impl_->schedule(candidate, out);
}

const ir::Workload& DesignSpace::workload() const { return impl_->workload; }

std::string_view to_string(DecisionRole role) {
  switch (role) {
    case DecisionRole::kTile:
      return "tile";
    case DecisionRole::kUnroll:
      return "unroll";
    case DecisionRole::kLocation:
      return "location";
    case DecisionRole::kParallel:
      return "parallel";
    case DecisionRole::kVectorize:
      return "vectorize";
    case DecisionRole::kLayout:
      return "layout";
    case DecisionRole::kTail:
      return "tail";
    case DecisionRole::kCacheWrite:
      return "cache_write";
  }
  return "";
}

}  // namespace tensorsmith::space
