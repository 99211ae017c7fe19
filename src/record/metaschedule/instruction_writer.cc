#include "record/metaschedule/instruction_writer.h"

#include <algorithm>
#include <numeric>

#include "record/metaschedule/write_instructions.h"
#include "sched/relations.h"

namespace tensorsmith::record {

namespace {

using sched::Annotation;
using sched::IteratorId;
using sched::Stage;
using sched::StageId;
using Value = MetaScheduleValue;

Error tvm_lacks(std::string what) {
  return Error{ErrorCode::kUnsupported, "", "TVM's MetaSchedule has no " + std::move(what)};
}

Value word(std::string text) { return Value{std::move(text)}; }
Value digits(int64_t value) { return Value{value}; }

std::vector<size_t> in_order(size_t count) {
  std::vector<size_t> out(count);
  std::iota(out.begin(), out.end(), size_t{0});
  return out;
}

// Returns the name of the thread axis; empty for other loops. `virtual_threads` counts those of a stage.
std::string thread_axis_name(Annotation annotation, int virtual_threads) {
  switch (annotation) {
    case Annotation::kBlockX:
      return "blockIdx.x";
    case Annotation::kBlockY:
      return "blockIdx.y";
    case Annotation::kBlockZ:
      return "blockIdx.z";
    case Annotation::kThreadX:
      return "threadIdx.x";
    case Annotation::kThreadY:
      return "threadIdx.y";
    case Annotation::kThreadZ:
      return "threadIdx.z";
    case Annotation::kVThread:
      return std::string("vthread.") + "xyz"[virtual_threads];
    case Annotation::kNone:
    case Annotation::kUnroll:
    case Annotation::kVectorize:
    case Annotation::kParallel:
      break;
  }
  return {};
}

}  // namespace

InstructionWriter::InstructionWriter(sched::Schedule fresh, target::DeviceKind device)
    : builder_(std::move(fresh)), device_(device) {
  for (const Stage& made : schedule().stages) {
    if (made.is_placeholder()) continue;
    const std::string name = variable('b');
    blocks_[made.op->output().get()] = new_block(made, name, ir::MemoryScope::kGlobal);
    write("GetSBlock", {}, {word(made.op->name), word("main")}, {name});
  }
}

InstructionWriter::Block InstructionWriter::new_block(const Stage& stage, std::string variable,
                                                      ir::MemoryScope scope) const {
  return {std::move(variable), scope, {in_order(stage.num_roots()), in_order(stage.num_roots())}};
}

void InstructionWriter::write(std::string kind, Values inputs, Values attributes,
                              std::vector<std::string> outputs) {
  out_.push_back({std::move(kind), std::move(inputs), std::move(attributes), std::move(outputs), {}});
}

bool InstructionWriter::is_stage(int position) const {
  return position >= 0 && std::cmp_less(position, schedule().stages.size());
}

Status InstructionWriter::add(const sched::Step& step) {
  return std::visit([&](const auto& s) { return rewrite(s); }, step);
}

// --- definitions

// Steps on loops are not written one by one, since finish() reads their result.
template <class Other>
Status InstructionWriter::rewrite(const Other& step) {
  using sched::Dot, sched::Dot16, sched::Winograd;
  constexpr bool kLacks =
      std::is_same_v<Other, Dot> || std::is_same_v<Other, Dot16> || std::is_same_v<Other, Winograd>;
  if constexpr (kLacks) return tvm_lacks("instruction for step " + std::string(Other::kName));
  return builder_.apply(step);
}

Status InstructionWriter::rewrite(const sched::PackLayout& step) {
  if (is_stage(step.stage) && stage(stage_at(step.stage)).op->is_constant) return builder_.apply(step);
  return tvm_lacks("instruction for step pack_layout on intermediate tensors");
}

Status InstructionWriter::rewrite(const sched::ComputeInline& step) {
  TS_RETURN_IF_ERROR(builder_.apply(step));
  write("ComputeInline", {word(block_of(stage_at(step.stage)).variable)}, {});
  return {};
}

Status InstructionWriter::rewrite(const sched::CacheWrite& step) {
  TS_RETURN_IF_ERROR(builder_.apply(step));
  // The new stage, which computes, takes the block; the copy gets one of its own.
  const StageId computing = stage_at(step.stage), copy = stage_at(step.stage + 1);
  const ir::MemoryScope scope = device_ == target::DeviceKind::kGpu ? step.scope : ir::MemoryScope::kGlobal;
  Block block = block_of(copy);
  const std::string name = variable('b');
  write("CacheWrite", {word(block.variable), Value{Values{}}},
        {digits(0), word(std::string(ir::to_string(scope)))}, {name});
  blocks_[stage(copy).op->output().get()] = new_block(stage(copy), name, block.scope);
  block.scope = scope;
  blocks_[stage(computing).op->output().get()] = std::move(block);
  return {};
}

Status InstructionWriter::rewrite(const sched::CacheRead& step) {
  const auto place_in = [](const Stage& reader, const ir::BufferNode* tensor) {
    const auto& read = reader.reads->tensors();
    return std::find_if(read.begin(), read.end(), [&](const auto& t) { return t.buffer == tensor; }) -
           read.begin();
  };
  TS_RETURN_IF_ERROR(builder_.apply(step));
  const StageId copy = stage_at(step.stage + 1);
  // The copy takes the place of the tensor among the tensors that a reader reads.
  Values readers;
  std::ptrdiff_t place = 0;
  for (const StageId reader : schedule().consumers_of(copy)) {
    if (readers.empty()) place = place_in(stage(reader), stage(copy).op->output().get());
    readers.push_back(word(block_of(reader).variable));
  }
  if (readers.empty()) return tvm_lacks("copy of a tensor that no block reads");
  const ir::MemoryScope scope = device_ == target::DeviceKind::kGpu ? step.scope : ir::MemoryScope::kGlobal;
  const std::string name = variable('b');
  Value first = readers.front();
  write("CacheRead", {std::move(first), Value{std::move(readers)}},
        {digits(place), word(std::string(ir::to_string(scope)))}, {name});
  blocks_[stage(copy).op->output().get()] = new_block(stage(copy), name, scope);
  return {};
}

Status InstructionWriter::rewrite(const sched::Rfactor& step) {
  if (!is_stage(step.stage) || stage(stage_at(step.stage)).is_placeholder()) return builder_.apply(step);
  const StageId made = stage_at(step.stage), rest = stage_at(step.stage + 1);
  const Stage before = stage(made);
  const Block whole = block_of(made);
  TS_RETURN_IF_ERROR(builder_.apply(step));
  const IdVector<IteratorId, int64_t> extents = sched::full_extents(before);
  if (!sched::overshooting(before, extents).empty())
    return tvm_lacks("reduction in parts whose length does not divide the whole");
  const IteratorId leaf = before.leaves[static_cast<size_t>(step.iterator)];
  auto blocks = blocks_after_rfactor(before, whole.place.axes, leaf, stage(made),
                                     static_cast<size_t>(step.factor_axis));
  if (!blocks.ok()) return tvm_lacks("reduction in parts where " + blocks.error().reason);
  Nest nest = get_loops(whole, 0, whole.place.loops);
  TS_RETURN_IF_ERROR(change_loops(before, extents, nest));
  const std::string name = variable('b');
  write("RFactor", {word(nest.variables.at(leaf.place()))}, {digits(step.factor_axis)}, {name});
  blocks_[stage(made).op->output().get()] = {name, ir::MemoryScope::kGlobal, std::move(blocks->partial)};
  block_of(rest).place = std::move(blocks->rest);
  return {};
}

// --- loops

size_t InstructionWriter::loops_around(StageId s) const {
  const Stage& of = stage(s);
  if (of.attach != sched::AttachKind::kAt) return 0;
  const auto position = stage(of.attach_stage).leaf_position(of.attach_iterator);
  return loops_around(of.attach_stage) + position.value_or(0) + 1;
}

InstructionWriter::Nest InstructionWriter::get_loops(const Block& block, size_t around,
                                                     const std::vector<size_t>& axes) {
  Nest nest;
  std::vector<std::string> outputs;
  for (size_t i = 0; i < around; ++i) outputs.push_back(variable('l'));
  for (const size_t axis : axes) {
    outputs.push_back(variable('l'));
    nest.order.emplace_back(axis);
    nest.variables[static_cast<uint32_t>(axis)] = outputs.back();
  }
  write("GetLoops", {word(block.variable)}, {}, std::move(outputs));
  return nest;
}

void InstructionWriter::reorder(Nest& nest, const std::vector<IteratorId>& order) {
  if (nest.order == order) return;
  Values loops;
  for (const IteratorId loop : order) loops.push_back(word(nest.variables.at(loop.place())));
  write("Reorder", std::move(loops), {});
  nest.order = order;
}

// The part that gets what remains is left open. The other extents are those that our bound inference
// gives, which are at most what is there.
void InstructionWriter::split(const sched::SplitRelation& relation,
                              const IdVector<IteratorId, int64_t>& extents, Nest& nest) {
  Values inputs = {word(nest.variables.at(relation.parent.place()))};
  std::vector<std::string> outputs;
  const IteratorId rest = relation.outer_lengths ? relation.children.back() : relation.children.front();
  for (const IteratorId child : relation.children) {
    inputs.push_back(child == rest ? word("None") : digits(extents[child]));
    outputs.push_back(variable('l'));
    nest.variables[child.place()] = outputs.back();
  }
  write("Split", std::move(inputs), {digits(1), digits(0)}, std::move(outputs));
  auto at = std::find(nest.order.begin(), nest.order.end(), relation.parent);
  at = nest.order.erase(at);
  nest.order.insert(at, relation.children.begin(), relation.children.end());
}

void InstructionWriter::fuse(const sched::FuseRelation& relation, Nest& nest) {
  std::vector<IteratorId> order;
  for (const IteratorId loop : nest.order) {
    if (loop == relation.parents.front()) {
      order.insert(order.end(), relation.parents.begin(), relation.parents.end());
    } else if (std::find(relation.parents.begin(), relation.parents.end(), loop) == relation.parents.end()) {
      order.push_back(loop);
    }
  }
  reorder(nest, order);
  Values inputs;
  for (const IteratorId parent : relation.parents) inputs.push_back(word(nest.variables.at(parent.place())));
  const std::string name = variable('l');
  nest.variables[relation.child.place()] = name;
  write("Fuse", std::move(inputs), {digits(1)}, {name});
  auto at = std::find(nest.order.begin(), nest.order.end(), relation.parents.front());
  *at = relation.child;
  nest.order.erase(at + 1, at + static_cast<std::ptrdiff_t>(relation.parents.size()));
}

Status InstructionWriter::change_loops(const Stage& stage, const IdVector<IteratorId, int64_t>& extents,
                                       Nest& nest) {
  for (const sched::Relation& relation : stage.relations) {
    if (const auto* split_loop = std::get_if<sched::SplitRelation>(&relation)) {
      split(*split_loop, extents, nest);
      continue;
    }
    const auto& fused = std::get<sched::FuseRelation>(relation);
    if (fused.parents.empty()) return tvm_lacks("loop of a block without axes");
    fuse(fused, nest);
  }
  reorder(nest, stage.leaves);
  return {};
}

Status InstructionWriter::write_loops(StageId s, const sched::Bounds& bounds) {
  const Stage& of = stage(s);
  Block& block = block_of(s);
  const ir::MemoryScope scope = sched::memory_scope(schedule(), s);
  if (device_ == target::DeviceKind::kGpu && scope != block.scope) {
    write("SetScope", {word(block.variable)}, {digits(0), word(std::string(ir::to_string(scope)))});
    block.scope = scope;
  }
  const bool attached = of.attach == sched::AttachKind::kAt;
  if (attached) {
    const Nest& target = nests_.at(of.attach_stage.place());
    // TVM keeps a loop for each axis, and computes the block as late as its readers allow.
    write("ComputeAt", {word(block.variable), word(target.variables.at(of.attach_iterator.place()))},
          {digits(1), digits(-1)});
  }
  const std::vector<size_t>& axes = attached ? block.place.axes : block.place.loops;
  Nest& nest = nests_[s.place()];
  if (!axes.empty()) nest = get_loops(block, loops_around(s), axes);
  if (of.storage_align)
    write("StorageAlign", {word(block.variable)},
          {digits(0), digits(of.storage_align_iterator.place()), digits(of.storage_align->first),
           digits(of.storage_align->second)});
  TS_RETURN_IF_ERROR(change_loops(of, bounds.stages[s].extents, nest));
  return annotate(s, nest);
}

Status InstructionWriter::annotate(StageId s, const Nest& nest) {
  const Stage& of = stage(s);
  int virtual_threads = 0;
  for (const IteratorId leaf : of.leaves) {
    const Annotation annotation = of.iterators[leaf].annotation;
    const Value loop = word(nest.variables.at(leaf.place()));
    if (annotation == Annotation::kVThread && virtual_threads == 3)
      return tvm_lacks("fourth dimension of virtual threads");
    if (annotation == Annotation::kUnroll) write("Unroll", {loop}, {});
    if (annotation == Annotation::kVectorize) write("Vectorize", {loop}, {});
    if (annotation == Annotation::kParallel) write("Parallel", {loop}, {});
    const std::string thread = thread_axis_name(annotation, virtual_threads);
    if (!thread.empty()) write("Bind", {loop}, {word(thread)});
    virtual_threads += annotation == Annotation::kVThread ? 1 : 0;
  }
  return {};
}

// The pragma counts for all that is inside the loop, so blocks inside need one only if theirs differs.
void InstructionWriter::unroll(StageId s, const Nest& nest) {
  const Stage& of = stage(s);
  const int64_t outside =
      of.attach == sched::AttachKind::kAt ? stage(of.attach_stage).auto_unroll_max_step : 0;
  if (of.auto_unroll_max_step == outside || of.leaves.empty()) return;
  write("Annotate", {word(nest.variables.at(of.leaves.front().place())), digits(of.auto_unroll_max_step)},
        {word("pragma_auto_unroll_max_step")});
}

// TVM refuses to decompose a reduction whose axes are no sums of loops, as those of fused loops that were
// split again often are.
bool InstructionWriter::may_decompose(StageId s) const {
  const Stage& of = stage(s);
  std::vector<IteratorId> fused;
  for (const sched::Relation& relation : of.relations) {
    if (const auto* made = std::get_if<sched::FuseRelation>(&relation)) {
      fused.push_back(made->child);
    } else if (std::find(fused.begin(), fused.end(), std::get<sched::SplitRelation>(relation).parent) !=
               fused.end()) {
      return false;
    }
  }
  return of.attach != sched::AttachKind::kAt || may_decompose(of.attach_stage);
}

// TVM would set a sum to zero in its innermost loop, under a condition; our loops do that before the
// outermost loop over a reduce axis.
void InstructionWriter::decompose(StageId s, const Nest& nest) {
  const Stage& of = stage(s);
  IteratorId at = of.init_at;
  for (const IteratorId leaf : of.leaves) {
    if (!at.valid() && of.iterators[leaf].kind == sched::IterKind::kReduce) at = leaf;
  }
  if (!of.op->has_reduction() || !at.valid() || !may_decompose(s)) return;
  write("DecomposeReduction", {word(block_of(s).variable), word(nest.variables.at(at.place()))}, {},
        {variable('b')});
}

Result<std::vector<MetaScheduleInstruction>> InstructionWriter::finish() && {
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule()));
  std::vector<StageId> written;  // readers before what they read
  for (size_t place = schedule().stages.size(); place-- > 0;) {
    const Stage& of = stage(StageId(place));
    if (!of.is_placeholder() && of.attach != sched::AttachKind::kInlined) written.emplace_back(place);
  }
  for (const StageId s : written) TS_RETURN_IF_ERROR(write_loops(s, bounds));
  for (const StageId s : written) unroll(s, nests_.at(s.place()));
  for (const StageId s : written) decompose(s, nests_.at(s.place()));
  return std::move(out_);
}

Result<std::vector<MetaScheduleInstruction>> to_instructions(const sched::Schedule& fresh,
                                                             const sched::Trace& trace,
                                                             target::DeviceKind device) {
  InstructionWriter writer(fresh, device);
  for (const sched::Step& step : trace.steps) TS_RETURN_IF_ERROR(writer.add(step));
  return std::move(writer).finish();
}

}  // namespace tensorsmith::record
