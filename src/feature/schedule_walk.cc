// Per-store features straight from the loops of a schedule, without building a program. The loops
// are those that lowering would generate without guards; index arithmetic is simplified as it is
// built.
#include <algorithm>

#include "feature/per_store.h"
#include "feature/shape_cache.h"
#include "feature/store_collector.h"
#include "feature/store_values.h"
#include "sched/regions.h"
#include "sched/relations.h"

namespace tensorsmith::feature {

namespace {

using sched::Annotation;
using sched::IteratorId;
using sched::StageId;

}  // namespace

class ScheduleFeatures::Walker {
 public:
  explicit Walker(const PerStoreOptions& options)
      : collector_(options), forms_(collector_.forms()), store_values_(collector_) {}

  Result<FeatureMatrix> per_store(const sched::Schedule& schedule) {
    TS_RETURN_IF_ERROR(walk_schedule(schedule, false));
    return collector_.finish();
  }
  Result<LeafFeatures> leaves(const sched::Schedule& schedule) {
    TS_RETURN_IF_ERROR(walk_schedule(schedule, true));
    return collector_.finish_leaves();
  }

 private:
  Status walk_schedule(const sched::Schedule& schedule, bool keep_leaves) {
    TS_RETURN_IF_ERROR(regions_.run(schedule));
    schedule_ = &schedule;
    collector_.clear(keep_leaves);
    store_values_.clear(schedule);
    temporaries_.clear();
    walk_roots();
    return {};
  }

  void walk_roots() {
    const size_t n = schedule_->stages.size();
    leaf_values_.resize(n);
    open_leaves_.resize(n);
    for (const StageId s : schedule_->stages.ids()) {
      const sched::Stage& stage = schedule_->stages[s];
      if (stage.is_placeholder() || stage.attach != sched::AttachKind::kRoot) continue;
      if (!schedule_->is_output(s)) collector_.open_node();  // stays open to the end
      nest(s);
      allocation(s);
    }
  }

  // Reports the allocation: the region that is computed at a time.
  void allocation(StageId s) {
    const sched::Stage& stage = schedule_->stages[s];
    int64_t elements = 1;
    for (size_t d = 0; d < stage.op->spatial.size(); ++d) elements *= regions_.stage(s).root_extent[d];
    for (const ir::Buffer& output : stage.op->outputs) collector_.allocation(id_of(output.get()), elements);
  }

  // --- loops

  void nest(StageId s) {
    const sched::Stage& stage = schedule_->stages[s];
    const size_t leaves = stage.leaves.size();
    // The init precedes the first reduce loop, unless the schedule says where it is.
    size_t init_position = leaves;
    if (stage.op->has_reduction()) {
      for (size_t p = leaves; p-- > 0;) {
        const bool here = stage.init_at.valid()
                              ? stage.leaves[p] == stage.init_at
                              : stage.iterators[stage.leaves[p]].kind != sched::IterKind::kSpatial;
        if (here) init_position = p;
      }
    }
    leaf_values_[s].assign(stage.iterators.size(), Form());
    open_leaves_[s].assign(stage.iterators.size(), 0);
    // The pragma is at the first loop, even if that loop runs once. TVM drops the pragma if the
    // loop is bound to threads.
    const bool pragma = leaves > 0 && stage.auto_unroll_max_step != 0 &&
                        !sched::bound_to_gpu(stage.iterators[stage.leaves[0]].annotation);
    const int64_t outside = collector_.unroll_step();
    if (pragma) collector_.set_unroll_step(stage.auto_unroll_max_step);
    if (reduces_across_threads(stage)) {
      cross_thread(s, 0, false, [&] { combine_threads(s); });
    } else {
      walk(s, 0, init_position);
    }
    collector_.set_unroll_step(outside);
  }

  // --- reductions across threads, as in TVM's MakeCrossThreadReduction: each thread reduces its
  // part into its own temporary. These are combined into another temporary, which is then stored.

  static bool is_reduce(const sched::Stage& stage, IteratorId leaf) {
    return stage.iterators[leaf].kind != sched::IterKind::kSpatial;
  }
  static bool reduces_across_threads(const sched::Stage& stage) {
    return std::any_of(stage.leaves.begin(), stage.leaves.end(), [&](IteratorId leaf) {
      return is_reduce(stage, leaf) && sched::bound_to_gpu(stage.iterators[leaf].annotation);
    });
  }

  static bool reduces_in_thread(const sched::Stage& stage, IteratorId leaf) {
    return is_reduce(stage, leaf) && !sched::bound_to_gpu(stage.iterators[leaf].annotation);
  }

  // Visits the reduce loops of a single thread, or the others, which all threads share; then calls `inside`.
  template <typename F>
  void cross_thread(StageId s, size_t position, bool in_thread, const F& inside) {
    const sched::Stage& stage = schedule_->stages[s];
    if (position == stage.leaves.size()) return inside();
    const IteratorId leaf = stage.leaves[position];
    if (reduces_in_thread(stage, leaf) != in_thread) return cross_thread(s, position + 1, in_thread, inside);
    const bool opened = open(s, leaf, true, &leaf_values_[s][leaf]);
    const int allocated = attached(s, leaf);
    cross_thread(s, position + 1, in_thread, inside);
    for (int i = 0; i < allocated; ++i) collector_.close_node();
    if (opened) close(s, leaf);
  }

  void combine_threads(StageId s) {
    const sched::Stage& stage = schedule_->stages[s];
    const bool parts = std::any_of(stage.leaves.begin(), stage.leaves.end(),
                                   [&](IteratorId leaf) { return reduces_in_thread(stage, leaf); });
    const auto temporary = [&](const ir::Buffer& output) {
      temporaries_.push_back(ir::make_buffer("temporary", output->dtype, {1}, ir::MemoryScope::kLocal));
      return temporaries_.back().get();
    };
    std::vector<const ir::BufferNode*> part, whole;
    for (const ir::Buffer& output : stage.op->outputs) {
      if (parts) part.push_back(temporary(output));
      whole.push_back(temporary(output));
    }
    for (size_t i = 0; i < part.size() + whole.size(); ++i) collector_.open_node();
    for (const ir::BufferNode* buffer : part) {
      collector_.begin_store(id_of(buffer));
      access_first(buffer, true);
      collector_.end_store({});
    }
    if (parts) cross_thread(s, 0, true, [&] { store(s, &part); });
    for (const ir::BufferNode* buffer : whole) collector_.combined_across_threads(id_of(buffer));
    const auto saved = forms_.mark();
    root_values(s, stage.op->spatial.size());
    for (size_t b = 0; b < whole.size(); ++b) {
      const ir::BufferNode* output = stage.op->outputs[b].get();
      collector_.begin_store(id_of(output));
      write_access(output);
      access_first(whole[b], false);
      collector_.end_store({});
    }
    forms_.rollback(saved);
    for (const auto& buffers : {part, whole}) {
      for (const ir::BufferNode* buffer : buffers) {
        collector_.allocation(id_of(buffer), 1);
        collector_.close_node();
      }
    }
  }

  void access_first(const ir::BufferNode* buffer, bool write) {
    indices_.assign(1, FormArena::constant(0));
    store_values_.add_access(buffer, indices_, write);
  }

  // --- loops of other stages

  // Enters the loop of a leaf unless it runs once, and sets `value` to the leaf's value. Returns
  // whether the loop was entered.
  bool open(StageId s, IteratorId leaf, bool bind, Form* value) {
    const sched::Stage& stage = schedule_->stages[s];
    const int64_t extent = regions_.stage(s).extents[leaf];
    const Annotation annotation = stage.iterators[leaf].annotation;
    if (extent == 1 && !sched::bound_to_gpu(annotation)) {
      *value = FormArena::constant(0);
      return false;
    }
    *value = collector_.enter_loop(sched::loop_kind(annotation), sched::thread_axis(annotation), extent, 0);
    if (extent == 1) *value = FormArena::constant(0);
    if (bind) open_leaves_[s][leaf] = 1;
    return true;
  }
  void close(StageId s, IteratorId leaf) {
    open_leaves_[s][leaf] = 0;
    collector_.leave_loop();
  }

  // Visits the stages attached to the loop. Returns how many allocation nodes were opened.
  int attached(StageId s, IteratorId leaf) {
    int allocated = 0;
    for (const StageId t : schedule_->stages.ids_before(s)) {
      if (!schedule_->stages[t].is_attached_at(s, leaf)) continue;
      collector_.open_node();
      ++allocated;
      nest(t);
      allocation(t);
    }
    return allocated;
  }

  void walk(StageId s, size_t position, size_t init_position) {
    const sched::Stage& stage = schedule_->stages[s];
    const bool reduces = stage.op->has_reduction();
    if (reduces && position == init_position) {
      const auto saved = leaf_values_[s];
      init(s, position);
      leaf_values_[s] = saved;
    }
    if (position == stage.leaves.size()) {
      store(s);
      return;
    }
    const IteratorId leaf = stage.leaves[position];
    const bool opened = open(s, leaf, true, &leaf_values_[s][leaf]);
    const int allocated = attached(s, leaf);
    walk(s, position + 1, init_position);
    for (int i = 0; i < allocated; ++i) collector_.close_node();
    if (opened) close(s, leaf);
  }

  // Visits separate spatial loops, from `position` on, around the stores of the neutral element.
  void init(StageId s, size_t position) {
    const sched::Stage& stage = schedule_->stages[s];
    if (position == stage.leaves.size()) {
      init_store(s);
      return;
    }
    const IteratorId leaf = stage.leaves[position];
    bool opened = false;
    if (stage.iterators[leaf].kind == sched::IterKind::kSpatial)
      opened = open(s, leaf, false, &leaf_values_[s][leaf]);
    init(s, position + 1);
    if (opened) collector_.leave_loop();
  }

  // --- values

  // Computes the global indices of the root axes [0, count) into roots_.
  void root_values(StageId s, size_t count) {
    const sched::Stage& stage = schedule_->stages[s];
    const auto& extents = regions_.stage(s).extents;
    values_ = leaf_values_[s];
    for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
      if (const auto* split = std::get_if<sched::SplitRelation>(&*it)) {
        Form sum;
        for (const IteratorId child : split->children) sum = forms_.add(values_[child], sum, extents[child]);
        values_[split->parent] = sum;
      } else {
        const auto& fuse = std::get<sched::FuseRelation>(*it);
        Form rest = values_[fuse.child];
        for (size_t k = fuse.parents.size(); k-- > 0;) {
          const int64_t extent = extents[fuse.parents[k]];
          values_[fuse.parents[k]] = k == 0 ? rest : forms_.floormod(rest, extent);
          if (k > 0) rest = forms_.floordiv(rest, extent);
        }
      }
    }
    roots_.clear();
    for (size_t r = 0; r < count; ++r)
      roots_.push_back(forms_.add(form_of(regions_.stage(s).root_min[r]), values_[IteratorId(r)]));
  }

  // Returns the first index of a region as a form over the loops entered.
  Form form_of(const sched::Sym& sym) {
    const sched::SymArena& arena = regions_.arena();
    Form sum;
    bool first = true;
    for (const auto& term : arena.terms(sym)) {
      const auto& atom = arena.atom(term);
      Form value;
      switch (atom.kind) {
        case ir::AffineKind::kVariable: {
          const sched::SymLoop& loop = arena.loops()[atom.loop];
          const bool opened = open_leaves_[loop.stage][loop.iterator] != 0;
          value = opened ? leaf_values_[loop.stage][loop.iterator] : forms_.of(unknown_, {});
          break;
        }
        case ir::AffineKind::kFloorDiv:
          value = forms_.floordiv(form_of(atom.a), atom.c);
          break;
        case ir::AffineKind::kFloorMod:
          value = forms_.floormod(form_of(atom.a), atom.c);
          break;
        case ir::AffineKind::kMin:
          value = forms_.minimum(form_of(atom.a), form_of(atom.b));
          break;
        case ir::AffineKind::kMax:
          value = forms_.maximum(form_of(atom.a), form_of(atom.b));
          break;
        case ir::AffineKind::kEither:
        case ir::AffineKind::kOpaque:
          throw_internal_error(__FILE__, __LINE__, "bound inference does not create such atoms");
      }
      if (term.coefficient != 1) value = forms_.scale(value, term.coefficient);
      sum = first ? value : forms_.add(sum, value);
      first = false;
    }
    return sym.constant == 0 ? sum : forms_.add(sum, FormArena::constant(sym.constant));
  }

  // Like root_values, but simplified with the guards around the statement, since loops may run
  // beyond the region or the tensor. drop_assumptions() must be called before the statement ends.
  void guarded_root_values(StageId s, size_t count) {
    root_values(s, count);
    const ir::Operation& op = *schedule_->stages[s].op;
    const sched::StageRegion& bounds = regions_.stage(s);
    bool guarded = false;
    for (size_t r = 0; r < count; ++r) {
      const int64_t extent =
          r < op.spatial.size() ? op.spatial[r].extent : op.reduce[r - op.spatial.size()].extent;
      if (forms_.range(values_[IteratorId(r)]).max >= bounds.root_extent[r]) {
        forms_.assume_below(values_[IteratorId(r)], bounds.root_extent[r]);
        guarded = true;
      }
      if (bounds.root_may_leave[r] != 0 && forms_.range(roots_[r]).max >= extent) {
        forms_.assume_below(roots_[r], extent);
        guarded = true;
      }
    }
    if (guarded) root_values(s, count);
  }

  StoredBufferId id_of(const ir::BufferNode* buffer) { return store_values_.id_of(buffer); }

  void write_access(const ir::BufferNode* buffer) {
    indices_.clear();
    for (size_t d = 0; d < buffer->shape.size(); ++d) indices_.push_back(forms_.rewritten(roots_[d]));
    store_values_.add_access(buffer, indices_, true);
  }

  // --- stores of earlier schedules

  // Reports the store with its shape in an earlier schedule, if it is the same there. Returns
  // whether it is.
  bool repeat_store(StageId s, int which, size_t roots) {
    make_key(s, which, roots);
    const StoreShape* shape = shapes_.find(key_);
    if (shape == nullptr) return false;
    for (const auto& access : shape->accesses) id_of(access.node);
    collector_.repeat_store(*shape);
    return true;
  }

  // Sets key_ to everything that the shape depends on, so that different stores have different
  // keys. `which`: the index of the body, or -1 - the index of the output for its init.
  void make_key(StageId s, int which, size_t roots) {
    const sched::Stage& stage = schedule_->stages[s];
    const sched::StageRegion& region = regions_.stage(s);
    key_.clear();
    const auto add = [&](int64_t value) { key_.push_back(value); };
    add(reinterpret_cast<uintptr_t>(stage.op.get()));
    add(which);
    collector_.append_extents(key_);
    add(-1);  // separator, since no extent is negative
    for (const IteratorId leaf : stage.leaves) add(leaf.place() * 256 + depth_of(leaf_values_[s][leaf]));
    add(-1);
    key_.insert(key_.end(), region.extents.begin(), region.extents.end());
    for (const sched::Relation& relation : stage.relations) {
      const auto* split = std::get_if<sched::SplitRelation>(&relation);
      const auto& parts =
          split != nullptr ? split->children : std::get<sched::FuseRelation>(relation).parents;
      add(split != nullptr ? int64_t{split->parent.place()}
                           : -1 - int64_t{std::get<sched::FuseRelation>(relation).child.place()});
      add(std::ssize(parts));
      for (const IteratorId part : parts) add(part.place());
    }
    for (size_t r = 0; r < roots; ++r) {
      add_sym(region.root_min[r]);
      add(region.root_extent[r] * 2 + region.root_may_leave[r]);
    }
    for (const auto& tensor : stage.reads->tensors()) add_layout(tensor.buffer);
    for (const auto& output : stage.op->outputs) add_layout(output.get());
  }

  // Returns 1 + the depth of the leaf's loop, or 0 if its value is constant.
  int64_t depth_of(const Form& leaf) const {
    return leaf.is_constant() ? 0 : 1 + forms_.atom(forms_.terms(leaf)[0]).depth;
  }

  void add_sym(const sched::Sym& sym) {
    const sched::SymArena& arena = regions_.arena();
    key_.push_back(sym.constant);
    key_.push_back(sym.count);
    for (const auto& term : arena.terms(sym)) {
      const auto& atom = arena.atom(term);
      key_.push_back(term.coefficient);
      key_.push_back(static_cast<int64_t>(atom.kind));
      if (atom.kind == ir::AffineKind::kVariable) {
        const sched::SymLoop& loop = arena.loops()[atom.loop];
        const bool opened = open_leaves_[loop.stage][loop.iterator] != 0;
        key_.push_back(opened ? depth_of(leaf_values_[loop.stage][loop.iterator]) : -1);
      } else {
        key_.push_back(atom.c);
        add_sym(atom.a);
        add_sym(atom.b);
      }
    }
  }

  void add_layout(const ir::BufferNode* buffer) {
    const sched::Layout* layout = store_values_.layout(buffer);
    key_.push_back(layout == nullptr ? -1 : std::ssize(*layout));
    if (layout == nullptr) return;
    for (const sched::LayoutDim& d : *layout) {
      key_.push_back(d.dim);
      key_.push_back(d.divisor);
      key_.push_back(d.extent);
    }
  }

  void init_store(StageId s) {
    const ir::Operation& op = *schedule_->stages[s].op;
    const auto saved = forms_.mark();
    for (size_t b = 0; b < op.outputs.size(); ++b) {
      if (repeat_store(s, -1 - static_cast<int>(b), op.spatial.size())) continue;
      guarded_root_values(s, op.spatial.size());
      const ir::BufferNode* output = op.outputs[b].get();
      collector_.begin_store(id_of(output));
      write_access(output);
      forms_.drop_assumptions();
      collector_.end_store({});
      shapes_.keep(key_, schedule_->stages[s].op, collector_.shape());
    }
    forms_.rollback(saved);
  }

  // `temporaries`: scalars that receive the value of the reduction instead of the outputs.
  void store(StageId s, const std::vector<const ir::BufferNode*>* temporaries = nullptr) {
    const ir::Operation& op = *schedule_->stages[s].op;
    const auto saved = forms_.mark();
    for (size_t b = 0; b < op.bodies.size(); ++b) {
      const size_t roots = op.spatial.size() + op.reduce.size();
      if (temporaries == nullptr && repeat_store(s, b, roots)) continue;
      guarded_root_values(s, roots);
      store_values_.begin(schedule_->stages[s], roots_);
      OpCounts ops;
      if (temporaries != nullptr) {
        collector_.begin_store(id_of((*temporaries)[b]));
        access_first((*temporaries)[b], true);
        count_combiner(op, ir::is_float(op.outputs[b]->dtype), ops);
        access_first((*temporaries)[b], false);
      } else {
        const ir::BufferNode* output = op.outputs[b].get();
        collector_.begin_store(id_of(output));
        write_access(output);
        if (op.has_reduction()) update(op, output, ops);
      }
      store_values_.visit_value(op.bodies[b], ops);
      forms_.drop_assumptions();
      collector_.end_store(ops);
      if (temporaries == nullptr) shapes_.keep(key_, schedule_->stages[s].op, collector_.shape());
    }
    forms_.rollback(saved);
  }

  static void count_combiner(const ir::Operation& op, bool is_float, OpCounts& ops) {
    switch (op.combiner) {
      case ir::Combiner::kNone:
        return;
      case ir::Combiner::kSum:
        ops.add("addsub", is_float);
        break;
      case ir::Combiner::kProd:
        ops.add("mul", is_float);
        break;
      case ir::Combiner::kMax:
      case ir::Combiner::kMin:
        ops.add("cmp", is_float);
        break;
      case ir::Combiner::kArgMax:
      case ir::Combiner::kArgMin:
        ops.add("cmp", is_float);
        ++ops["select_op"];
        break;
    }
  }

  // Adds what output = combine(output, value) adds: the read of the output and the operation of the
  // combiner.
  void update(const ir::Operation& op, const ir::BufferNode* output, OpCounts& ops) {
    count_combiner(op, ir::is_float(output->dtype), ops);
    indices_.clear();
    for (size_t d = 0; d < output->shape.size(); ++d) {
      indices_.push_back(forms_.rewritten(roots_[d]));
      store_values_.count_form(indices_.back(), ops);
    }
    store_values_.add_access(output, indices_, false);
  }

  const sched::Schedule* schedule_ = nullptr;
  sched::RegionInference regions_;
  StoreCollector collector_;
  FormArena& forms_;
  StoreValues store_values_;
  IdVector<StageId, IdVector<IteratorId, Form>> leaf_values_;  // set for leaves only
  IdVector<StageId, IdVector<IteratorId, char>> open_leaves_;  // 1 inside the leaf's loop
  std::vector<ir::Buffer> temporaries_;                        // of reductions across threads
  const ir::Expr unknown_ = ir::Var("?");                      // stands for a loop that is not entered
  IdVector<IteratorId, Form> values_;
  std::vector<Form> roots_, indices_;
  ShapeCache shapes_;
  std::vector<int64_t> key_;
};

ScheduleFeatures::ScheduleFeatures(const PerStoreOptions& options)
    : walker_(std::make_unique<Walker>(options)) {}
ScheduleFeatures::~ScheduleFeatures() = default;

Result<FeatureMatrix> ScheduleFeatures::per_store(const sched::Schedule& schedule) {
  return walker_->per_store(schedule);
}

Result<LeafFeatures> ScheduleFeatures::leaves(const sched::Schedule& schedule) {
  return walker_->leaves(schedule);
}

Result<FeatureMatrix> extract_per_store(const sched::Schedule& schedule, const PerStoreOptions& options) {
  return ScheduleFeatures(options).per_store(schedule);
}

Result<LeafFeatures> extract_leaves(const sched::Schedule& schedule, const PerStoreOptions& options) {
  return ScheduleFeatures(options).leaves(schedule);
}

FeatureMatrix LeafFeatures::per_store() const {
  FeatureMatrix out;
  out.rows = 0;
  for (int number : row_numbers) out.rows += number >= 0 ? 1 : 0;
  out.values.resize(out.rows * kPerStoreWidth);
  for (size_t l = 0; l < row_numbers.size(); ++l) {
    if (row_numbers[l] < 0) continue;
    const auto vector = vectors.row(l);
    std::copy(vector.begin(), vector.end(), out.values.begin() + row_numbers[l] * kPerStoreWidth);
  }
  return out;
}

}  // namespace tensorsmith::feature
