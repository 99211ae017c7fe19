#include "search/ansor_context.h"

#include <algorithm>
#include <optional>

#include "sched/regions.h"

namespace tensorsmith::search {

namespace {

using namespace sched;  // NOLINT: gives access to the types of the steps

// Returns the extent of a loop that does not depend on decisions: a root axis of a stage that is
// computed in full, or a fusion of such axes. 0 for other loops.
int64_t fixed_extent(const Stage& stage, IteratorId iterator) {
  if (stage.attach != AttachKind::kRoot) return 0;
  if (iterator.place() < stage.num_roots()) {
    const size_t root = iterator.place(), rank = stage.op->spatial.size();
    return root < rank ? stage.op->spatial[root].extent : stage.op->reduce[root - rank].extent;
  }
  for (const Relation& relation : stage.relations) {
    const auto* fuse = std::get_if<FuseRelation>(&relation);
    if (fuse == nullptr || fuse->child != iterator) continue;
    int64_t product = 1;
    for (const IteratorId parent : fuse->parents) product *= fixed_extent(stage, parent);
    return product;
  }
  return 0;
}

// Returns the kinds of the loops from outer to inner: S for spatial, R for reduction.
std::string kinds_of(const Stage& stage) {
  std::string out;
  for (const IteratorId leaf : stage.leaves)
    out += stage.iterators[leaf].kind == IterKind::kSpatial ? 'S' : 'R';
  return out;
}

int stage_of(const Step& step) {
  return std::visit([](const auto& s) { return s.stage; }, step);
}

// Writes the fields of a step as numbers; a list is preceded by its length.
class SymbolWriter {
 public:
  explicit SymbolWriter(std::vector<AnsorSymbol>& out) : out_(out) {}

  void write(const Step& step) {
    out_.push_back({static_cast<int64_t>(step.index()) + 1, "next step"});
    const int stage = stage_of(step);
    std::visit(
        [&](const auto& s) {
          for_each_field(s, [&](std::string_view name, const auto& v) { add(name, v, stage); });
        },
        step);
    if (std::holds_alternative<Unroll>(step)) out_.back().open = true;
  }
  void end() { out_.push_back({0, "next step"}); }

 private:
  template <class T>
  void add(std::string_view name, const T& value, int stage) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      out_.push_back({static_cast<int64_t>(value), name, name == "stage" ? -1 : stage});
    } else if constexpr (std::is_same_v<T, std::vector<int>>) {
      out_.push_back({std::ssize(value), "size", stage});
      for (const int v : value) out_.push_back({v, name, stage});
    } else {
      TS_CHECK(false, "placements cannot contain such a step");
    }
  }
  std::vector<AnsorSymbol>& out_;
};

// Expresses extents of a stage's loops as products of a constant and lengths of splits. The lengths
// must be distinct primes, so that they can be recognized as factors.
class ThreadFactors {
 public:
  ThreadFactors(const Stage& stage, const std::vector<int64_t>& primes) : stage_(stage), primes_(primes) {}

  struct Product {
    int64_t constant = 1;
    std::vector<size_t> slots;
    friend bool operator==(const Product&, const Product&) = default;
  };
  // Returns nothing if the extent is not such a product.
  std::optional<Product> of(IteratorId iterator) const {
    for (const Relation& relation : stage_.relations) {
      if (const auto* fuse = std::get_if<FuseRelation>(&relation); fuse != nullptr && fuse->child == iterator)
        return of_fused(*fuse);
      const auto* split = std::get_if<SplitRelation>(&relation);
      if (split == nullptr) continue;
      const auto child = std::find(split->children.begin(), split->children.end(), iterator);
      if (child == split->children.end()) continue;
      const size_t place = child - split->children.begin();
      const size_t rest = split->outer_lengths ? split->children.size() - 1 : 0;
      if (place == rest) return std::nullopt;
      return of_length(split->lengths[split->outer_lengths ? place : place - 1]);
    }
    const int64_t extent = fixed_extent(stage_, iterator);
    if (extent == 0) return std::nullopt;
    return Product{extent, {}};
  }

 private:
  std::optional<Product> of_fused(const FuseRelation& fuse) const {
    Product product;
    for (const IteratorId parent : fuse.parents) {
      const auto one = of(parent);
      if (!one) return std::nullopt;
      product.constant *= one->constant;
      product.slots.insert(product.slots.end(), one->slots.begin(), one->slots.end());
    }
    std::sort(product.slots.begin(), product.slots.end());
    return product;
  }
  Product of_length(int64_t length) const {
    Product product;
    for (size_t s = 0; s < primes_.size(); ++s)
      if (length % primes_[s] == 0) {
        product.slots.push_back(s);
        length /= primes_[s];
      }
    product.constant = length;
    return product;
  }
  const Stage& stage_;
  const std::vector<int64_t>& primes_;
};

bool is_thread(Annotation a) {
  return a == Annotation::kThreadX || a == Annotation::kThreadY || a == Annotation::kThreadZ;
}

std::vector<int64_t> first_primes(size_t count) {
  std::vector<int64_t> primes;
  for (int64_t n = 2; primes.size() < count; ++n)
    if (std::none_of(primes.begin(), primes.end(), [&](int64_t p) { return n % p == 0; }))
      primes.push_back(n);
  return primes;
}

}  // namespace

Result<std::shared_ptr<const AnsorContext>> AnsorContext::create(Schedule fresh, Trace sketch,
                                                                 const std::vector<Trace>& placements,
                                                                 const target::Device& device) {
  auto out = std::make_shared<AnsorContext>();
  out->fresh_ = std::move(fresh);
  out->sketch_ = std::move(sketch);
  out->unrolling_ = {0, 16, 64, 512};
  if (device.kind() == target::DeviceKind::kGpu) {
    out->unrolling_.push_back(1024);
    out->most_threads_ = device.gpu().max_threads_per_block;
  }
  TS_RETURN_IF_ERROR(out->read_sketch());
  TS_RETURN_IF_ERROR(out->read_placements(placements));
  if (out->most_threads_ > 0) out->find_threads();
  return std::shared_ptr<const AnsorContext>(std::move(out));
}

const std::string& AnsorContext::stage_name(int stage) const {
  static const std::string kNone;
  return stage < 0 || std::cmp_greater_equal(stage, stages_.size()) ? kNone : stages_[stage];
}

Status AnsorContext::read_sketch() {
  ScheduleBuilder builder(fresh_);
  bool rfactored = false;  // such stages have axes whose extents are split lengths
  for (size_t i = 0; i < sketch_.steps.size(); ++i) {
    const Step& step = sketch_.steps[i];
    const size_t number = stage_of(step);
    const Stage* before = std::cmp_less(number, builder.schedule().stages.size())
                              ? &builder.schedule().stages.begin()[number]
                              : nullptr;
    AnsorSlot slot;
    slot.step = i;
    if (before != nullptr) slot.stage = before->op->name;
    const auto* split = std::get_if<Split>(&step);
    if (split != nullptr && before != nullptr && std::cmp_less(split->iterator, before->leaves.size())) {
      const IteratorId leaf = before->leaves[split->iterator];
      slot.axis = before->iterators[leaf].name;
      slot.extent = rfactored ? 0 : fixed_extent(*before, leaf);
      slot.parts = split->lengths.size();
    }
    std::string kind(step_name(step));
    std::string words = kind + " " + slot.stage;
    TS_RETURN_IF_ERROR(builder.apply(step));
    rfactored = rfactored || std::holds_alternative<Rfactor>(step);
    if (slot.parts > 0 && slot.extent != 1)
      for (slot.part = slot.parts - 1; slot.part >= 0; --slot.part) slots_.push_back(slot);
    if (std::holds_alternative<Unroll>(step)) slots_.push_back(slot);
    const auto& stages = builder.schedule().stages;
    if (split != nullptr) words += " " + slot.axis + " " + std::to_string(slot.parts) + "parts";
    if (const auto* s = std::get_if<FollowSplit>(&step)) words += " " + std::to_string(s->n_split) + "parts";
    if (const auto* s = std::get_if<FollowFusedSplit>(&step)) words += " " + std::to_string(s->level) + "th";
    if (const auto* s = std::get_if<ComputeAt>(&step))
      words +=
          " in " + stages.begin()[s->target_stage].op->name + " " + std::to_string(s->target_iterator) + "th";
    if (const auto* s = std::get_if<CacheRead>(&step)) words += " " + std::string(ir::to_string(s->scope));
    if (std::holds_alternative<Reorder>(step)) words += " " + kinds_of(stages.begin()[number]);
    text_ += (text_.empty() ? "" : "; ") + words;
  }
  for (const StageId s : builder.schedule().stages.ids())
    stages_.push_back(builder.schedule().stages[s].op->name);
  return {};
}

Status AnsorContext::read_placements(const std::vector<Trace>& placements) {
  for (const Trace& placement : placements) {
    if (std::find(placements_.begin(), placements_.end(), placement) != placements_.end()) continue;
    Trace whole = sketch_;
    whole.steps.insert(whole.steps.end(), placement.steps.begin(), placement.steps.end());
    if (!replay(fresh_, whole).ok()) continue;
    placements_.push_back(placement);
    SymbolWriter writer(symbols_.emplace_back());
    for (const Step& step : placement.steps) writer.write(step);
    writer.end();
  }
  if (placements_.empty())
    return Error{ErrorCode::kNotFound, "sketch", "none of its placements can be replayed with this workload"};
  return {};
}

void AnsorContext::find_threads() {
  const auto primes = first_primes(slots_.size());
  std::vector<ThreadFactors::Product> found;
  for (const Trace& placement : placements_) {
    Trace whole = sketch_;
    for (size_t s = 0; s < slots_.size(); ++s)
      if (slots_[s].parts > 0) record::set_number(whole.steps[slots_[s].step], slots_[s].part, primes[s]);
    whole.steps.insert(whole.steps.end(), placement.steps.begin(), placement.steps.end());
    const auto schedule = replay(fresh_, whole);
    if (!schedule.ok()) return;
    for (const StageId id : schedule->stages.ids()) {
      const Stage& stage = schedule->stages[id];
      const ThreadFactors factors(stage, primes);
      ThreadFactors::Product all;
      bool any = false;
      for (const IteratorId leaf : stage.leaves) {
        if (!is_thread(stage.iterators[leaf].annotation)) continue;
        const auto one = factors.of(leaf);
        if (!one) continue;
        any = true;
        all.constant *= one->constant;
        all.slots.insert(all.slots.end(), one->slots.begin(), one->slots.end());
      }
      std::sort(all.slots.begin(), all.slots.end());
      if (any && std::find(found.begin(), found.end(), all) == found.end()) found.push_back(all);
    }
  }
  for (const auto& product : found) {
    for (const size_t s : product.slots) slots_[s].threads.push_back(threads_.size());
    threads_.push_back(product.constant);
  }
}

int64_t AnsorContext::extent_of(const Trace& steps, size_t step) const {
  const auto* split = std::get_if<Split>(&steps.steps[step]);
  if (split == nullptr) return 0;
  ScheduleBuilder builder(fresh_);
  for (size_t i = 0; i < step; ++i)
    if (!builder.apply(steps.steps[i]).ok()) return 0;
  RegionInference inference;
  const Schedule& schedule = builder.schedule();
  if (!inference.run(schedule).ok()) return 0;
  const StageId stage(split->stage);
  const IteratorId leaf = schedule.stages[stage].leaves[split->iterator];
  const auto& extents = inference.stage(stage).extents;
  return leaf.place() < extents.size() ? extents[leaf] : 0;
}

}  // namespace tensorsmith::search
