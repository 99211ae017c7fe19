#include "space/candidate_walk.h"

#include <algorithm>

#include "base/hash.h"
#include "space/design_space_impl.h"

namespace tensorsmith::space {

namespace {

// Numbers of legal candidates that a grammar keeps, of random candidates drawn for them, and of
// random completions that are tried if none of the kept candidates can be continued.
constexpr size_t kExamples = 16;
constexpr int kExampleDraws = 48;
constexpr int kRandomCompletions = 24;

}  // namespace

Result<SketchGrammar> SketchGrammar::create(const DesignSpace& space, int sketch) {
  SketchGrammar grammar(space, sketch);
  const auto& impl = *space.impl_;
  const Sketch& s = impl.sketch(sketch);
  const auto keep = [&](const Candidate& c) {
    auto& kept = grammar.examples_;
    if (kept.size() < kExamples && std::find(kept.begin(), kept.end(), c) == kept.end()) kept.push_back(c);
  };
  for (const Candidate& seed : impl.seeds)
    if (seed.sketch == sketch && grammar.examples_.size() < kExamples / 2) keep(seed);
  const Candidate first = impl.first(sketch);
  if (impl.check(first).ok()) keep(first);
  Rng rng(Hasher().add("sketch grammar").add(sketch).digest64());
  for (int i = 0; i < kExampleDraws && !s.slots.empty(); ++i)
    if (const auto drawn = impl.draw(rng, sketch)) keep(*drawn);
  if (grammar.examples_.empty())
    return Error{ErrorCode::kNotFound, s.description, "no legal candidate of this sketch was found"};
  std::stable_sort(
      grammar.examples_.begin(), grammar.examples_.end(),
      [&](const Candidate& a, const Candidate& b) { return impl.estimate(a) < impl.estimate(b); });
  for (size_t k = 0; k < s.owner.size(); ++k) {
    const auto [p, number] = s.owner[k];
    const Slot& slot = s.plans[p]->slots()[number];
    const size_t begin = s.offsets[p] + slot.offset;
    for (size_t part = 0; part < slot.width(); ++part)
      grammar.decisions_.push_back({k, part, begin + slot.width() - 1 - part});
  }
  return grammar;
}

const DecisionSlot& SketchGrammar::slot(const Decision& decision) const {
  return space_.impl_->sketch(sketch_).slots[decision.slot];
}

CandidateWalk::CandidateWalk(const SketchGrammar& grammar)
    : grammar_(&grammar), example_(grammar.examples_.front()) {}

int64_t CandidateWalk::least() const {
  return grammar_->slot(next()).kind == DecisionKind::kTileLengths ? 1 : 0;
}

int64_t CandidateWalk::most() const {
  const DecisionSlot& slot = grammar_->slot(next());
  if (slot.kind == DecisionKind::kCategory) return slot.categories - 1;
  int64_t rest = slot.extent;
  for (size_t inner = 0; inner < next().part; ++inner)
    rest /= example_.decisions[next().place + next().part - inner];
  return next().part == 0 && slot.max_innermost > 0 ? std::min(rest, slot.max_innermost) : rest;
}

bool CandidateWalk::complete(int64_t value, Candidate& out) const {
  if (value < least() || value > most()) return false;
  const auto& impl = *grammar_->space_.impl_;
  const Sketch& s = impl.sketch(grammar_->sketch_);
  const auto [p, number] = s.owner[next().slot];
  const Plan& plan = *s.plans[p];
  const size_t begin = s.offsets[p], end = s.offsets[p + 1];
  out = example_;
  // Takes the remaining decisions of this plan from `from` and makes the current tile fit.
  const auto continues = [&](std::span<const int64_t> from) {
    for (size_t i = at_; i < grammar_->decisions_.size(); ++i) {
      const auto& decision = grammar_->decisions_[i];
      if (decision.place < begin || decision.place >= end) break;
      out.decisions[decision.place] = from[decision.place - begin];
    }
    out.decisions[next().place] = value;
    const Slot& slot = plan.slots()[number];
    const std::span<int64_t> own(out.decisions.data() + begin + slot.offset, slot.width());
    if (slot.tiles) {
      const std::vector<int64_t> wanted(own.begin(), own.end());
      slot.tiles->fit(own, own);
      // The lengths inside were decided and fit; only a value that does not divide is changed.
      for (size_t part = 0; part <= next().part; ++part)
        if (own[own.size() - 1 - part] != wanted[own.size() - 1 - part]) return false;
    }
    return plan.check(Decisions(out.decisions).subspan(begin, end - begin)).ok();
  };
  const auto plan_of = [&](const Candidate& c) {
    return std::span<const int64_t>(c.decisions).subspan(begin, end - begin);
  };
  if (continues(plan_of(example_))) return true;
  for (const Candidate& example : grammar_->examples_)
    if (continues(plan_of(example))) return true;
  Hasher decided;
  for (size_t i = 0; i < at_; ++i) decided.add(example_.decisions[grammar_->decisions_[i].place]);
  Rng rng(decided.add(value).digest64());
  std::vector<int64_t> drawn(end - begin, 1);
  for (int attempt = 0; attempt < kRandomCompletions; ++attempt) {
    plan.sample(rng, drawn);
    if (continues(drawn)) return true;
  }
  return false;
}

bool CandidateWalk::allows(int64_t value) const {
  Candidate found;
  return complete(value, found);
}

bool CandidateWalk::take(int64_t value) {
  Candidate found;
  if (!complete(value, found)) return false;
  example_ = std::move(found);
  ++at_;
  return true;
}

void CandidateWalk::follow(const Candidate& legal) {
  example_ = legal;
  ++at_;
}

}  // namespace tensorsmith::space
