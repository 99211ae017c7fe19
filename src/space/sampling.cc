// Random candidates, variation of candidates, and the heuristic default.
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "space/design_space_impl.h"

namespace tensorsmith::space {

namespace {

constexpr int kDrawTries = 24;
constexpr int kMutateTries = 48;
constexpr size_t kSeeds = 24;
// Sampling weights of sketches: the least weight relative to the best sketch, and the share of all
// samples that plain loops get.
constexpr double kMinSketchWeight = 0.1;
constexpr double kPlainShare = 0.02;
constexpr size_t kStarts = 8;
constexpr int kStartsOfSketch = 2;
constexpr int kSteps = 120;  // of hill climbing from each start
// The number of candidates that climb on, and their further steps.
constexpr size_t kFinalists = 3;
constexpr int kFinalSteps = 300;

// Returns how often a mutation changes a slot of this role, relative to the others. Ansor uses .90
// for tiles, .04 for unrolling, .05 for locations and .01 for parallel loops. Here more decisions
// are categories, so they get more.
double mutation_weight(DecisionRole role) {
  switch (role) {
    case DecisionRole::kTile:
      return 1.0;
    case DecisionRole::kUnroll:
    case DecisionRole::kLocation:
      return 0.4;
    case DecisionRole::kVectorize:
    case DecisionRole::kLayout:
      return 0.3;
    case DecisionRole::kTail:
    case DecisionRole::kCacheWrite:
      return 0.15;
    case DecisionRole::kParallel:
      return 0.25;
  }
  return 0;
}

}  // namespace

size_t DesignSpace::Impl::pick_sketch(Rng& rng) const {
  // The last sketch is plain loops, which are rarely of interest but part of the space.
  const size_t count = sketches.size();
  if (count == 1 || rng.bernoulli(kPlainShare)) return count - 1;
  return rng.weighted(std::span(sketch_weights).first(count - 1));
}

std::optional<Candidate> DesignSpace::Impl::draw(Rng& rng, size_t index) const {
  Candidate c = first(index);
  const auto& s = sketches[index];
  for (int attempt = 0; attempt < kDrawTries; ++attempt) {
    for (size_t p = 0; p < s.plans.size(); ++p)
      s.plans[p]->sample(rng, std::span(c.decisions).subspan(s.offsets[p], s.offsets[p + 1] - s.offsets[p]));
    if (check(c).ok()) return c;
  }
  return std::nullopt;
}

std::optional<Candidate> DesignSpace::Impl::mutate(const Candidate& c, Rng& rng) const {
  const auto& s = sketch(c);
  if (s.slots.empty()) return std::nullopt;
  std::vector<double> weights;
  for (const auto& slot : s.slots) weights.push_back(mutation_weight(slot.role));
  for (int attempt = 0; attempt < kMutateTries; ++attempt) {
    Candidate result = c;
    const auto [p, number] = s.owner[rng.weighted(weights)];
    const auto& slot = s.plans[p]->slots()[number];
    const std::span<int64_t> own(result.decisions.data() + s.offsets[p] + slot.offset, slot.width());
    if (slot.tiles) {
      slot.tiles->mutate(rng, slot.unit, own);
      // Changes a second tile: growing one axis often requires another one to shrink.
      if (rng.bernoulli(0.3)) {
        const auto [p2, number2] = s.owner[rng.weighted(weights)];
        const auto& other = s.plans[p2]->slots()[number2];
        if (other.tiles)
          other.tiles->mutate(
              rng, other.unit,
              std::span<int64_t>(result.decisions.data() + s.offsets[p2] + other.offset, other.width()));
      }
    } else {
      own[0] = rng.uniform_int(0, slot.decision.categories - 1);
    }
    if (result != c && check(result).ok()) return result;
  }
  return std::nullopt;
}

void DesignSpace::Impl::find_seeds() {
  // A fixed seed, so that the default schedule of a workload is the same in every run.
  Rng rng(0x7465736f72ULL);
  struct Scored {
    double seconds;
    Candidate candidate;
  };
  std::vector<Scored> pool;
  // Small spaces yield the same candidates again and again. Keeps the estimate of each candidate,
  // and whether it is in the pool.
  std::unordered_map<uint64_t, std::pair<double, bool>> known;
  const auto known_of = [&](const Candidate& c) -> std::pair<double, bool>& {
    const auto [it, added] = known.try_emplace(c.hash());
    if (added) it->second.first = estimate(c);
    return it->second;
  };
  const auto consider = [&](const Candidate& c) {
    auto& [seconds, pooled] = known_of(c);
    if (!std::exchange(pooled, true)) pool.push_back({seconds, c});
  };
  const auto faster = [](const Scored& a, const Scored& b) { return a.seconds < b.seconds; };
  for (size_t k = 0; k < sketches.size(); ++k) {
    const size_t draws = sketches[k].slots.empty() ? 1 : std::max<size_t>(32, 320 / sketches.size());
    for (size_t i = 0; i < draws; ++i)
      if (auto c = draw(rng, k)) consider(*c);
  }
  // Hill climbing starts from the best candidates overall and from the best ones of each sketch,
  // since a random candidate of one sketch can be further from its best than that of another.
  std::stable_sort(pool.begin(), pool.end(), faster);
  std::vector<Scored> starts;
  std::vector<int> taken(sketches.size(), 0);
  for (size_t i = 0; i < pool.size(); ++i) {
    int& of_sketch = taken[pool[i].candidate.sketch];
    if (i >= kStarts && of_sketch >= kStartsOfSketch) continue;
    ++of_sketch;
    starts.push_back(pool[i]);
  }
  // The faster the best draw of a sketch seems, the more often the sketch is drawn, but no estimate
  // rules it out.
  sketch_weights.assign(sketches.size(), kMinSketchWeight);
  for (const auto& scored : pool) {
    auto& weight = sketch_weights[scored.candidate.sketch];
    const double ratio = pool.front().seconds / scored.seconds;
    if (std::isfinite(ratio)) weight = std::max(weight, ratio * ratio);
  }
  const auto climb = [&](Scored& current, int steps) {
    for (int step = 0; step < steps; ++step) {
      auto next = mutate(current.candidate, rng);
      if (!next) break;
      const double seconds = known_of(*next).first;
      if (seconds < current.seconds) {
        current = {seconds, *next};
        consider(*next);
      }
    }
  };
  for (auto& current : starts) climb(current, kSteps);
  // The best of these have not reached their tops yet.
  std::stable_sort(starts.begin(), starts.end(), faster);
  for (size_t i = 0; i < std::min(kFinalists, starts.size()); ++i) climb(starts[i], kFinalSteps);
  std::stable_sort(pool.begin(), pool.end(), faster);
  for (const auto& scored : pool) {
    if (seeds.size() == kSeeds) break;
    seeds.push_back(scored.candidate);
  }
  for (const auto& seed : seeds) {
    auto schedule = sched::replay(workload, trace(seed));
    if (!schedule.ok() || !sched::infer_bounds(*schedule).ok()) continue;
    default_candidate = seed;
    return;
  }
  default_candidate = first(sketches.size() - 1);
}

Candidate DesignSpace::sample(Rng& rng) const {
  // A part of the samples is drawn from the neighbourhood of the candidates with the best
  // estimates, so that few samples suffice for a good program. The rest covers the space.
  if (!impl_->seeds.empty() && rng.bernoulli(0.25)) {
    Candidate c = impl_->seeds[rng.below(impl_->seeds.size())];
    const uint64_t changes = rng.below(3);
    for (uint64_t i = 0; i < changes; ++i)
      if (auto next = impl_->mutate(c, rng)) c = *next;
    return c;
  }
  for (int attempt = 0; attempt < 4; ++attempt)
    if (auto c = impl_->draw(rng, impl_->pick_sketch(rng))) return *c;
  return impl_->default_candidate;
}

Candidate DesignSpace::mutate(const Candidate& candidate, Rng& rng) const {
  TS_CHECK(impl_->check(candidate).ok(), "mutate: the candidate is not in this space");
  if (auto result = impl_->mutate(candidate, rng)) return *result;
  for (int attempt = 0; attempt < 64; ++attempt) {
    Candidate c = sample(rng);
    if (c != candidate) return c;
  }
  for (size_t k = 0; k < impl_->sketches.size(); ++k) {
    Candidate c = impl_->first(k);
    do {
      if (c != candidate && impl_->check(c).ok()) return c;
    } while (impl_->advance(c));
  }
  return candidate;
}

std::vector<Candidate> DesignSpace::neighbours(const Candidate& candidate) const {
  TS_CHECK(impl_->check(candidate).ok(), "neighbours: the candidate is not in this space");
  const auto& s = impl_->sketch(candidate);
  std::vector<Candidate> result;
  for (const auto& [p, number] : s.owner) {
    const auto& slot = s.plans[p]->slots()[number];
    const size_t at = s.offsets[p] + slot.offset;
    const auto offer = [&](std::span<const int64_t> values) {
      Candidate c = candidate;
      std::ranges::copy(values, std::span(c.decisions).subspan(at).begin());
      if (c != candidate && impl_->check(c).ok()) result.push_back(std::move(c));
    };
    if (slot.tiles) {
      const std::span<const int64_t> own(candidate.decisions.data() + at, slot.width());
      for (const auto& lengths : slot.tiles->neighbours(slot.unit, own)) offer(lengths);
    } else {
      for (int64_t k = 0; k < slot.decision.categories; ++k) offer(std::span(&k, 1));
    }
  }
  return result;
}

Candidate DesignSpace::crossover(const Candidate& a, const Candidate& b, Rng& rng) const {
  if (a.sketch != b.sketch) return a;
  const auto& s = impl_->sketch(a);
  for (int attempt = 0; attempt < 8; ++attempt) {
    Candidate c = a;
    for (const auto& [p, number] : s.owner) {
      if (rng.bernoulli(0.5)) continue;
      const auto& slot = s.plans[p]->slots()[number];
      const size_t at = s.offsets[p] + slot.offset;
      std::ranges::copy(std::span(b.decisions).subspan(at, slot.width()),
                        std::span(c.decisions).subspan(at).begin());
    }
    if (impl_->check(c).ok()) return c;
  }
  return a;
}

Result<Candidate> DesignSpace::rescale(const DesignSpace& source, const Candidate& candidate) const {
  TS_RETURN_IF_ERROR(source.check(candidate));
  const auto& from = source.impl_->sketch(candidate);
  size_t index = impl_->sketches.size();
  for (size_t k = 0; k < impl_->sketches.size() && index == impl_->sketches.size(); ++k)
    if (impl_->sketches[k].description == from.description) index = k;
  if (index == impl_->sketches.size())
    return Error{ErrorCode::kNotFound, "rescale", "this workload has no sketch '" + from.description + "'"};
  const auto& to = impl_->sketches[index];
  Candidate result = impl_->first(index);
  for (size_t k = 0; k < to.slots.size(); ++k) {
    const auto [p, number] = to.owner[k];
    const auto& slot = to.plans[p]->slots()[number];
    const std::span<int64_t> own(result.decisions.data() + to.offsets[p] + slot.offset, slot.width());
    for (size_t j = 0; j < from.slots.size(); ++j) {
      if (from.slots[j].name != to.slots[k].name || from.slots[j].kind != to.slots[k].kind) continue;
      const auto [q, other] = from.owner[j];
      const auto& source_slot = from.plans[q]->slots()[other];
      const std::span<const int64_t> values(candidate.decisions.data() + from.offsets[q] + source_slot.offset,
                                            source_slot.width());
      if (slot.tiles) {
        slot.tiles->fit(values, own);
      } else {
        own[0] = std::min<int64_t>(values[0], slot.decision.categories - 1);
      }
    }
  }
  // For other shapes, tiles may not be worth examining; the longest lengths are halved until
  // check() accepts them.
  while (!impl_->check(result).ok()) {
    int64_t* longest = nullptr;
    for (const auto& [p, number] : to.owner) {
      const auto& slot = to.plans[p]->slots()[number];
      if (!slot.tiles) continue;
      for (size_t w = 0; w < slot.width(); ++w) {
        int64_t& length = result.decisions[to.offsets[p] + slot.offset + w];
        if (longest == nullptr || length > *longest) longest = &length;
      }
    }
    if (longest == nullptr || *longest == 1)
      return Error{ErrorCode::kNotFound, "rescale", "no candidate near it is legal for these shapes"};
    *longest = (*longest + 1) / 2;
  }
  return result;
}

}  // namespace tensorsmith::space
