// reverse_compute_at(stage, producer_stage, producer_iterator)
//   Arguments: a consumer that reads its producer element by element (same index in each dimension), and a
//     spatial leaf of the producer with spatial leaves outside of it only.
//   Rewrite: the producer's splits, fuses and outer loops (up to the leaf) are copied to the consumer, with
//     the annotations of the outer loops, which move there; loops inside become one per split of the
//     consumer; then the producer is computed at the copied leaf.
//   Checks: the consumer is the producer's only reader, of the same shape, its loops untouched, all its reads
//     of the producer are at [axis 0, axis 1, ...]; the producer is at root, no output; the outer loops are
//     spatial and nothing is attached to them; the result obeys the rules of compute_at.
//
//     for i.0 (4)                                          for i.0 (4)
//       for i.1 (4)                                          for i.0' (1)
//         B[..] = ...        reverse_compute_at C, B, 0        for i.1' (4)
//     for i (16)                     =>                          B[..] = ...
//       C[i] = B[i] + 1                                      for i.1 (4)
//                                                              C[..] = B[..] + 1
#include <algorithm>

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
  std::vector<char> needed;  // by iterator of from: an outer leaf, or some outer leaf is made of it
  std::vector<int> image;    // iterator of from -> of to, -1: none

  int add(std::string name) const {
    to.iterators.push_back({std::move(name), IterKind::kSpatial, Annotation::kNone});
    return static_cast<int>(to.iterators.size()) - 1;
  }

  void mark_needed(const std::vector<int>& outer) {
    needed.assign(from.iterators.size(), 0);
    for (int leaf : outer) needed[static_cast<size_t>(leaf)] = 1;
    for (auto it = from.relations.rbegin(); it != from.relations.rend(); ++it) {
      if (const auto* split = std::get_if<SplitRelation>(&*it)) {
        for (int child : split->children)
          needed[static_cast<size_t>(split->parent)] |= needed[static_cast<size_t>(child)];
      } else {
        const auto& fuse = std::get<FuseRelation>(*it);
        for (int parent : fuse.parents)
          needed[static_cast<size_t>(parent)] |= needed[static_cast<size_t>(fuse.child)];
      }
    }
  }

  void copy_split(const SplitRelation& split) {
    const int parent = image[static_cast<size_t>(split.parent)];
    if (parent < 0 || needed[static_cast<size_t>(split.parent)] == 0) return;
    SplitRelation copy;
    copy.parent = parent;
    copy.tail = split.tail;
    copy.outer_lengths = split.outer_lengths;
    // The innermost loops that no outer loop needs become one.
    size_t keep = split.children.size();
    while (keep > 0 && needed[static_cast<size_t>(split.children[keep - 1])] == 0) --keep;
    const bool merge = keep + 1 < split.children.size() && !split.outer_lengths;
    const size_t n = merge ? keep + 1 : split.children.size();
    const std::string name = to.iterators[static_cast<size_t>(parent)].name;
    for (size_t i = 0; i < n; ++i) {
      copy.children.push_back(add(name + "." + std::to_string(i)));
      image[static_cast<size_t>(split.children[i])] = copy.children.back();
    }
    if (merge) {
      copy.lengths.assign(split.lengths.begin(),
                          split.lengths.begin() + static_cast<std::ptrdiff_t>(keep) - 1);
      int64_t rest = 1;
      for (size_t i = keep - 1; i < split.lengths.size(); ++i) rest *= split.lengths[i];
      copy.lengths.push_back(rest);
    } else {
      copy.lengths = split.lengths;
    }
    to.relations.emplace_back(std::move(copy));
  }

  void copy_fuse(const FuseRelation& fuse) {
    if (needed[static_cast<size_t>(fuse.child)] == 0) return;
    FuseRelation copy;
    std::string name;
    for (int parent : fuse.parents) {
      copy.parents.push_back(image[static_cast<size_t>(parent)]);
      name += to.iterators[static_cast<size_t>(copy.parents.back())].name + ".";
    }
    copy.child = add(name.empty() ? "unit" : name + "fused");
    image[static_cast<size_t>(fuse.child)] = copy.child;
    to.relations.emplace_back(std::move(copy));
  }

  // Leaves below an iterator of to, outer to inner, that are not in done.
  void append_leaves(int iterator, std::vector<char>& done) const {
    for (const Relation& relation : to.relations) {
      if (const auto* split = std::get_if<SplitRelation>(&relation); split && split->parent == iterator) {
        for (int child : split->children) append_leaves(child, done);
        return;
      }
      if (const auto* fuse = std::get_if<FuseRelation>(&relation);
          fuse && std::find(fuse->parents.begin(), fuse->parents.end(), iterator) != fuse->parents.end()) {
        append_leaves(fuse->child, done);
        return;
      }
    }
    if (done[static_cast<size_t>(iterator)] != 0) return;
    done[static_cast<size_t>(iterator)] = 1;
    to.leaves.push_back(iterator);
  }
};

}  // namespace

Status apply(Schedule& schedule, const ReverseComputeAt& step) {
  TS_RETURN_IF_ERROR(check_stage(schedule, step.stage));
  TS_RETURN_IF_ERROR(check_stage(schedule, step.producer_stage));
  const auto c = static_cast<size_t>(step.stage);
  const auto p = static_cast<size_t>(step.producer_stage);
  const Stage& consumer = schedule.stages[c];
  const Stage& producer = schedule.stages[p];
  TS_RETURN_IF_ERROR(check_leaf(producer, step.producer_iterator));
  const std::string producer_name = "stage '" + producer.op->name + "'";
  if (schedule.consumers_of(p) != std::vector<size_t>{c})
    return illegal("stage '" + consumer.op->name + "' is not the only reader of " + producer_name);
  if (schedule.is_output(p))
    return illegal(producer_name + " is an output of the workload and stays at root");
  if (producer.layout) return illegal(producer_name + " has a packed layout and must be computed at root");
  if (producer.attach != AttachKind::kRoot) return illegal(producer_name + " is attached to a loop already");
  if (consumer.op->has_reduction())
    return illegal("stage '" + consumer.op->name + "' is a reduction; only elementwise stages can follow");
  TS_RETURN_IF_ERROR(check_loops_untouched(schedule, step.stage));
  TS_RETURN_IF_ERROR(check_elementwise(consumer, producer));
  const std::vector<int> outer(producer.leaves.begin(), producer.leaves.begin() + step.producer_iterator + 1);
  for (int leaf : outer) {
    const Iterator& it = producer.iterators[static_cast<size_t>(leaf)];
    if (is_reduce(it)) return illegal("loop '" + it.name + "' of " + producer_name + " is a reduce loop");
    for (const Stage& other : schedule.stages) {
      if (other.attach == AttachKind::kAt && other.attach_stage == step.producer_stage &&
          other.attach_iterator == leaf)
        return illegal("stage '" + other.op->name + "' is attached to loop '" + it.name + "' of " +
                       producer_name + ", which would move");
    }
  }

  const size_t rank = producer.op->spatial.size();
  Stage moved = consumer;
  Stage inner = producer;
  Copier copier{producer, moved, {}, std::vector<int>(producer.iterators.size(), -1)};
  for (size_t a = 0; a < rank; ++a) copier.image[a] = static_cast<int>(a);
  copier.mark_needed(outer);
  for (const Relation& relation : producer.relations) {
    if (const auto* split = std::get_if<SplitRelation>(&relation)) {
      copier.copy_split(*split);
    } else {
      copier.copy_fuse(std::get<FuseRelation>(relation));
    }
  }
  moved.leaves.clear();
  std::vector<char> done(moved.iterators.size(), 0);
  for (int leaf : outer) {
    const int image = copier.image[static_cast<size_t>(leaf)];
    moved.leaves.push_back(image);
    done[static_cast<size_t>(image)] = 1;
    moved.iterators[static_cast<size_t>(image)].annotation =
        producer.iterators[static_cast<size_t>(leaf)].annotation;
    inner.iterators[static_cast<size_t>(leaf)].annotation = Annotation::kNone;
  }
  for (size_t a = 0; a < rank; ++a) copier.append_leaves(static_cast<int>(a), done);
  inner.attach = AttachKind::kAt;
  inner.attach_stage = step.stage;
  inner.attach_iterator = copier.image[static_cast<size_t>(outer.back())];

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
