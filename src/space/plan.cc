#include "space/plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "space/estimate/gpu_units.h"

namespace tensorsmith::space {

size_t Plan::add_tile(std::string name, int64_t extent, size_t parts, int64_t unit, int64_t max_innermost,
                      bool divide) {
  Slot slot;
  slot.decision = DecisionSlot{
      std::move(name), DecisionKind::kTileLengths, DecisionRole::kTile, extent, parts, max_innermost, 0};
  slot.tiles.emplace(extent, parts, max_innermost, divide);
  slot.unit = unit;
  slot.offset = width();
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

size_t Plan::add_category(std::string name, DecisionRole role, std::vector<double> weights) {
  TS_CHECK(!weights.empty(), "a category slot needs at least one category");
  Slot slot;
  slot.decision = DecisionSlot{std::move(name), DecisionKind::kCategory, role, 0, 0, 0, std::ssize(weights)};
  slot.weights = std::move(weights);
  slot.offset = width();
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

size_t Plan::add_parallel(const std::string& stage, size_t loops) {
  if (context_.threads() <= 1 || loops == 0) return kNone;
  std::vector<double> weights(loops + 1, 1.0);
  weights[0] = 0.1;
  return add_category(stage + ".parallel", DecisionRole::kParallel, std::move(weights));
}

size_t Plan::add_gpu_vector(std::string name, int64_t element_bytes,
                            const std::function<bool(int64_t)>& fits) {
  constexpr int64_t kMostLanes = 8;
  std::vector<double> weights;
  for (int64_t v = 1; v * element_bytes <= kMaxVectorBytes && v <= kMostLanes && fits(v); v *= 2)
    weights.push_back(1);
  if (weights.size() <= 1) return kNone;
  return add_category(std::move(name), DecisionRole::kVectorize, std::move(weights));
}

int64_t Plan::set_length(std::span<int64_t> decisions, size_t slot, size_t part, int64_t wanted) const {
  const Slot& s = slots_[slot];
  const auto own = decisions.subspan(s.offset, s.width());
  own[part] = std::max<int64_t>(wanted, 1);
  s.tiles->fit(own, own);
  return own[part];
}

void Plan::sample_slot(Rng& rng, size_t slot, std::span<int64_t> decisions) const {
  const auto& s = slots_[slot];
  if (s.tiles) {
    s.tiles->sample(rng, s.unit, decisions.subspan(s.offset, s.width()));
  } else {
    decisions[s.offset] = rng.weighted(s.weights);
  }
}

void Plan::sample_allowed(Rng& rng, size_t slot, std::span<int64_t> decisions,
                          const std::function<bool()>& allowed) const {
  const Slot& s = slots_[slot];
  std::vector<double> weights = s.weights;
  double any = 0;
  for (size_t c = 0; c < weights.size(); ++c) {
    decisions[s.offset] = c;
    if (!allowed()) weights[c] = 0;
    any += weights[c];
  }
  decisions[s.offset] = any > 0 ? rng.weighted(weights) : 0;
}

void Plan::sample(Rng& rng, std::span<int64_t> decisions) const {
  for (size_t s = 0; s < slots_.size(); ++s) sample_slot(rng, s, decisions);
}

AxisRanges Plan::footprint(const Read& read, const AxisRanges& ranges) const {
  AxisRanges result;
  double points = 1;
  for (const double range : ranges) points *= range;
  for (const AxisId d : read.indices.ids()) {
    const auto& index = read.indices[d];
    const double whole = context_.stage(read.producer).extent(d);
    double range = 1;
    if (index.coefficients.empty()) {
      range = points;  // each point may take another index, as where rows of a table are gathered
    } else {
      for (const AxisId a : ranges.ids()) {
        const double steps = index.blocked ? std::ceil(ranges[a] / index.blocks[a]) : ranges[a];
        range += std::abs(index.coefficients[a]) * (steps - 1);
      }
    }
    result.push_back(std::min(range, whole));
  }
  return result;
}

double Plan::read_bytes(const StageInfo& reader, const Read& read) const {
  const auto& producer = context_.stage(read.producer);
  const double whole = producer.spatial_points() * producer.element_bytes;
  if (read.affine || read.blocked) return whole;
  return std::min(whole, reader.spatial_points() * reader.reduce_points() * producer.element_bytes);
}

}  // namespace tensorsmith::space
