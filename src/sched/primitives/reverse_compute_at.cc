// reverse_compute_at(stage, producer_stage, producer_iterator)
//   Arguments: a consumer that reads its producer element by element (same index in each dimension), and a
//     spatial leaf of the producer that has only spatial leaves outside of it.
//   Rewrite: the producer's splits, fuses and outer loops (up to the leaf) are copied to the consumer. The
//     annotations of the outer loops move there. The consumer's inner loops of each split are merged into one.
//     Then the producer is computed at the copied leaf.
//   Checks: the consumer is the producer's only reader, has the same shape and untouched loops, and all its
//     reads of the producer are at [axis 0, axis 1, ...]; the producer is at root and no output; the outer loops
//     are spatial and nothing is attached to them; the result obeys the rules of compute_at.
//
//     for i.0 (4)                                          for i.0 (4)
//       for i.1 (4)                                          for i.0' (1)
//         B[..] = ...        reverse_compute_at C, B, 0        for i.1' (4)
//     for i (16)                     =>                          B[..] = ...
//       C[i] = B[i] + 1                                      for i.1 (4)
//                                                              C[..] = B[..] + 1
#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "sched/primitives/checks.h"
#include "sched/primitives/primitives.h"

namespace tensorsmith::sched::primitives {

namespace {

Status check_elementwise(const Stage& consumer, const Stage& producer) {
  const auto fail = [&](const std::string& why) -> Status {
    return illegal("stage '" + consumer.op->name + "' does not read stage '" + producer.op->name +
                   "' element by element: " + why);
  };
  const size_t rank = producer.op->spatial.size();
  if (consumer.op->spatial.size() != rank) return fail("its rank differs");
  for (size_t d = 0; d < rank; ++d) {
    if (consumer.op->spatial[d].extent != producer.op->spatial[d].extent) return fail("its shape differs");
  }
  for (const ir::Load* load : consumer.reads->loads()) {
    const auto& outs = producer.op->outputs;
    if (std::find(outs.begin(), outs.end(), load->buffer) == outs.end()) continue;
    for (size_t d = 0; d < rank; ++d) {
      const auto* var = ir::as<ir::VarRef>(load->indices[d]);
      if (var == nullptr || !(var->var == consumer.op->spatial[d].var)) {
        if (producer.op->spatial[d].extent == 1 && ir::is_int_value(load->indices[d], 0)) continue;
        return fail("index " + std::to_string(d) + " is not its axis '" + consumer.op->spatial[d].var.name() +
                    "'");
      }
    }
  }
  return {};
}

struct Copier {
  const Stage& from;
  Stage& to;
  IdVector<IteratorId, char> needed;  // iterators of `from` that are an outer leaf or have an outer leaf made
                                      // of them
  IdVector<IteratorId, IteratorId> image;  // iterators of `from` -> iterators of `to`, or none

  IteratorId add(std::string name) const {
    return to.iterators.push_back({std::move(name), IterKind::kSpatial, Annotation::kNone});
  }

  void mark_needed(std::span<const IteratorId> outer) {
    needed.assign(from.iterators.size(), 0);
    for (const IteratorId leaf : outer) needed[leaf] = 1;
    for (auto it = from.relations.rbegin(); it != from.relations.rend(); ++it) {
      if (const auto* split = std::get_if<SplitRelation>(&*it)) {
        for (const IteratorId child : split->children) needed[split->parent] |= needed[child];
      } else {
        const auto& fuse = std::get<FuseRelation>(*it);
        for (const IteratorId parent : fuse.parents) needed[parent] |= needed[fuse.child];
      }
    }
  }

  void copy_split(const SplitRelation& split) {
    const IteratorId parent = image[split.parent];
    if (!parent.valid() || needed[split.parent] == 0) return;
    SplitRelation copy;
    copy.parent = parent;
    copy.tail = split.tail;
    copy.outer_lengths = split.outer_lengths;
    // The innermost loops that no outer loop depends on become one.
    size_t keep = split.children.size();
    while (keep > 0 && needed[split.children[keep - 1]] == 0) --keep;
    const bool merge = keep + 1 < split.children.size() && !split.outer_lengths;
    const size_t n = merge ? keep + 1 : split.children.size();
    const std::string name = to.iterators[parent].name;
    for (size_t i = 0; i < n; ++i) {
      copy.children.push_back(add(name + "." + std::to_string(i)));
      image[split.children[i]] = copy.children.back();
    }
    if (merge) {
      const auto kept = std::span(split.lengths).first(keep - 1);
      const auto merged = std::span(split.lengths).subspan(keep - 1);
      copy.lengths.assign(kept.begin(), kept.end());
      copy.lengths.push_back(
          std::accumulate(merged.begin(), merged.end(), int64_t{1}, std::multiplies<int64_t>()));
    } else {
      copy.lengths = split.lengths;
    }
    to.relations.emplace_back(std::move(copy));
  }

  void copy_fuse(const FuseRelation& fuse) {
    if (needed[fuse.child] == 0) return;
    FuseRelation copy;
    std::string name;
    for (const IteratorId parent : fuse.parents) {
      copy.parents.push_back(image[parent]);
      name += to.iterators[copy.parents.back()].name + ".";
    }
    copy.child = add(name.empty() ? "unit" : name + "fused");
    image[fuse.child] = copy.child;
    to.relations.emplace_back(std::move(copy));
  }

  // Appends the leaves made of an iterator of `to`, outer to inner, except those in `done`.
  void append_leaves(IteratorId iterator, IdVector<IteratorId, char>& done) const {
    for (const Relation& relation : to.relations) {
      if (const auto* split = std::get_if<SplitRelation>(&relation); split && split->parent == iterator) {
        for (const IteratorId child : split->children) append_leaves(child, done);
        return;
      }
      if (const auto* fuse = std::get_if<FuseRelation>(&relation);
          fuse && std::find(fuse->parents.begin(), fuse->parents.end(), iterator) != fuse->parents.end()) {
        append_leaves(fuse->child, done);
        return;
      }
    }
    if (done[iterator] != 0) return;
    done[iterator] = 1;
    to.leaves.push_back(iterator);
  }
};

}  // namespace

Status apply(Schedule& schedule, const ReverseComputeAt& step) {
  TS_ASSIGN_OR_RETURN(const StageId c, find_computed_stage(schedule, step.stage));
  TS_ASSIGN_OR_RETURN(const StageId p, find_computed_stage(schedule, step.producer_stage));
  const Stage& consumer = schedule.stages[c];
  const Stage& producer = schedule.stages[p];
  TS_ASSIGN_OR_RETURN(const IteratorId innermost, find_leaf(producer, step.producer_iterator));
  const std::string producer_name = "stage '" + producer.op->name + "'";
  if (schedule.consumers_of(p) != std::vector{c})
    return illegal("stage '" + consumer.op->name + "' is not the only reader of " + producer_name);
  if (schedule.is_output(p))
    return illegal(producer_name + " is an output of the workload and stays at root");
  if (producer.layout) return illegal(producer_name + " has a packed layout and must be computed at root");
  if (producer.attach != AttachKind::kRoot) return illegal(producer_name + " is attached to a loop already");
  if (consumer.op->has_reduction())
    return illegal("stage '" + consumer.op->name + "' is a reduction; only elementwise stages can follow");
  TS_RETURN_IF_ERROR(check_loops_untouched(schedule, c));
  TS_RETURN_IF_ERROR(check_elementwise(consumer, producer));
  const std::span outer(producer.leaves.begin(), producer.leaves.begin() + step.producer_iterator + 1);
  for (const IteratorId leaf : outer) {
    const Iterator& it = producer.iterators[leaf];
    if (is_reduce(it)) return illegal("loop '" + it.name + "' of " + producer_name + " is a reduce loop");
    for (const Stage& other : schedule.stages) {
      if (other.is_attached_at(p, leaf))
        return illegal("stage '" + other.op->name + "' is attached to loop '" + it.name + "' of " +
                       producer_name + ", which would move");
    }
  }

  const size_t rank = producer.op->spatial.size();
  Stage moved = consumer;
  Stage inner = producer;
  Copier copier{producer, moved, {}, IdVector<IteratorId, IteratorId>(producer.iterators.size())};
  for (size_t a = 0; a < rank; ++a) copier.image[producer.root(a)] = moved.root(a);
  copier.mark_needed(outer);
  for (const Relation& relation : producer.relations) {
    if (const auto* split = std::get_if<SplitRelation>(&relation)) {
      copier.copy_split(*split);
    } else {
      copier.copy_fuse(std::get<FuseRelation>(relation));
    }
  }
  moved.leaves.clear();
  IdVector<IteratorId, char> done(moved.iterators.size(), 0);
  for (const IteratorId leaf : outer) {
    const IteratorId image = copier.image[leaf];
    moved.leaves.push_back(image);
    done[image] = 1;
    moved.iterators[image].annotation = producer.iterators[leaf].annotation;
    inner.iterators[leaf].annotation = Annotation::kNone;
  }
  for (size_t a = 0; a < rank; ++a) copier.append_leaves(moved.root(a), done);
  inner.attach = AttachKind::kAt;
  inner.attach_stage = c;
  inner.attach_iterator = copier.image[innermost];

  std::swap(schedule.stages[c], moved);
  std::swap(schedule.stages[p], inner);
  Status status = check_loops(schedule.stages[c]);
  if (status.ok()) status = check_loops(schedule.stages[p]);
  if (status.ok()) status = check_attachments(schedule);
  if (!status.ok()) {
    std::swap(schedule.stages[c], moved);
    std::swap(schedule.stages[p], inner);
  }
  return status;
}

}  // namespace tensorsmith::sched::primitives
