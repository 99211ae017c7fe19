#include "record/metaschedule/replayer.h"

#include <algorithm>
#include <array>

#include "record/metaschedule/factored_axes.h"
#include "sched/relations.h"

namespace tensorsmith::record {

namespace {

using sched::Annotation;

Error bad_argument(std::string reason) { return Error{ErrorCode::kCorrupt, "", std::move(reason)}; }

constexpr std::array<std::pair<std::string_view, Annotation>, 10> kThreadAxes = {{
    {"blockIdx.x", Annotation::kBlockX},
    {"blockIdx.y", Annotation::kBlockY},
    {"blockIdx.z", Annotation::kBlockZ},
    {"threadIdx.x", Annotation::kThreadX},
    {"threadIdx.y", Annotation::kThreadY},
    {"threadIdx.z", Annotation::kThreadZ},
    {"vthread", Annotation::kVThread},
    {"vthread.x", Annotation::kVThread},
    {"vthread.y", Annotation::kVThread},
    {"vthread.z", Annotation::kVThread},
}};

// Returns the place of an error: "instruction 12 (Split)".
std::string instruction_place(size_t number, const std::vector<MetaScheduleInstruction>& instructions) {
  return "instruction " + std::to_string(number) + " (" + instructions[number].kind + ")";
}

// Returns text without the quotes in which MetaSchedule writes a literal: "\"main\"" -> main.
std::string unquoted(const std::string& text) {
  const bool quotes = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quotes ? text.substr(1, text.size() - 2) : text;
}

Result<ir::MemoryScope> scope_named(const std::string& name) {
  for (const auto scope : {ir::MemoryScope::kGlobal, ir::MemoryScope::kShared, ir::MemoryScope::kLocal}) {
    if (ir::to_string(scope) == name) return scope;
  }
  return Error{ErrorCode::kUnsupported, "", "memory scope '" + name + "' is not supported"};
}

}  // namespace

const MetaScheduleReplayer::Row MetaScheduleReplayer::kRows[] = {
    {"GetBlock", &MetaScheduleReplayer::get_block},
    {"GetSBlock", &MetaScheduleReplayer::get_block},  // its name since TVM 0.25
    {"GetLoops", &MetaScheduleReplayer::get_loops},
    {"GetChildBlocks", &MetaScheduleReplayer::get_child_blocks},
    {"GetProducers", &MetaScheduleReplayer::get_producers},
    {"GetConsumers", &MetaScheduleReplayer::get_consumers},
    {"SamplePerfectTile", &MetaScheduleReplayer::sample_tile},
    {"SamplePartitionedTile", &MetaScheduleReplayer::sample_tile},
    {"SampleCategorical", &MetaScheduleReplayer::sample_categorical},
    {"SampleComputeLocation", &MetaScheduleReplayer::sample_location},
    {"Split", &MetaScheduleReplayer::split},
    {"Fuse", &MetaScheduleReplayer::fuse},
    {"Reorder", &MetaScheduleReplayer::reorder},
    {"Bind", &MetaScheduleReplayer::bind_loop},
    {"Vectorize", &MetaScheduleReplayer::vectorize},
    {"Unroll", &MetaScheduleReplayer::unroll},
    {"Parallel", &MetaScheduleReplayer::parallel},
    {"Annotate", &MetaScheduleReplayer::annotate},
    {"Unannotate", &MetaScheduleReplayer::nothing},
    {"CacheRead", &MetaScheduleReplayer::cache_read},
    {"CacheWrite", &MetaScheduleReplayer::cache_write},
    {"ComputeAt", &MetaScheduleReplayer::compute_at},
    {"ReverseComputeAt", &MetaScheduleReplayer::reverse_compute_at},
    {"ComputeInline", &MetaScheduleReplayer::compute_inline},
    {"ReverseComputeInline", &MetaScheduleReplayer::reverse_compute_inline},
    {"SetScope", &MetaScheduleReplayer::set_scope},
    {"DecomposeReduction", &MetaScheduleReplayer::decompose_reduction},
    {"RFactor", &MetaScheduleReplayer::rfactor},
    {"StorageAlign", &MetaScheduleReplayer::storage_align},
    {"EnterPostproc", &MetaScheduleReplayer::nothing},
};

MetaScheduleReplayer::MetaScheduleReplayer(sched::Schedule fresh, const std::vector<TirBlock>& blocks)
    : builder_(std::move(fresh)), root_block_(tree_.root()) {
  blocks_[root_block_.place()] = {"root", nullptr};
  for (const TirBlock& block : blocks)
    add_block(block.name, block.output, tree_.node(tree_.root()).children.size());
}

Status MetaScheduleReplayer::execute(size_t number, const Instruction& instruction) {
  now_ = number;
  for (const Row& row : kRows) {
    if (row.kind == instruction.kind) return (this->*row.run)(instruction);
  }
  return Error{ErrorCode::kUnsupported, "", "this instruction is not supported"};
}

Result<MetaScheduleProgram> MetaScheduleReplayer::finish(const std::vector<Instruction>& instructions) && {
  const LoopChanger::Outputs written = outputs();
  LoopChanger changer(builder_, written);
  for (const Change& change : changes_) {
    Status status = changer.apply(change.change);
    if (status.ok()) continue;
    Error error = std::move(status).error();
    error.place = instruction_place(change.instruction, instructions);
    return error;
  }
  for (const auto& [block, scope] : scopes_) {
    if (blocks_.at(block.place()).output == nullptr) continue;  // inlined meanwhile
    const ir::MemoryScope actual = sched::memory_scope(builder_.schedule(), stage_of(block));
    if (actual != scope)
      return Error{ErrorCode::kMismatch, "block '" + blocks_.at(block.place()).name + "'",
                   "the trace puts its tensor into " + std::string(ir::to_string(scope)) +
                       " memory, but our schedule into " + std::string(ir::to_string(actual))};
  }
  MetaScheduleProgram program;
  program.trace = builder_.trace();
  program.schedule = std::move(builder_).take();
  return program;
}

// --- arguments

Result<MetaScheduleReplayer::Variable> MetaScheduleReplayer::variable(const Value& name, Variable::Kind kind,
                                                                      std::string_view what) const {
  const std::string* text = name.text();
  const auto it = text == nullptr ? variables_.end() : variables_.find(*text);
  if (it == variables_.end() || it->second.kind != kind)
    return bad_argument((text == nullptr ? "an argument" : "'" + *text + "'") + " is no " +
                        std::string(what));
  if (it->second.node.valid() && tree_.node(it->second.node).kind == BlockTreeNode::Kind::kGone)
    return bad_argument(std::string(what) + " '" + *text + "' does not exist any more");
  return it->second;
}

Result<BlockTreeId> MetaScheduleReplayer::block(const Instruction& i, size_t input) const {
  if (input >= i.inputs.size()) return bad_argument("a block is missing");
  TS_ASSIGN_OR_RETURN(const Variable found, variable(i.inputs[input], Variable::Kind::kBlock, "block"));
  const auto known = blocks_.find(found.node.place());
  if (known == blocks_.end() || known->second.output == nullptr)
    return bad_argument("block '" + *i.inputs[input].text() + "' has no loops and no tensor to change");
  return found.node;
}

Result<BlockTreeId> MetaScheduleReplayer::loop_of(const Value& name) const {
  TS_ASSIGN_OR_RETURN(const Variable found, variable(name, Variable::Kind::kLoop, "loop"));
  return found.node;
}

Result<BlockTreeId> MetaScheduleReplayer::loop(const Instruction& i, size_t input) const {
  return input < i.inputs.size() ? loop_of(i.inputs[input]) : bad_argument("a loop is missing");
}

Result<int64_t> MetaScheduleReplayer::number(const Value& value) const {
  if (const int64_t* literal = value.integer()) return *literal;
  TS_ASSIGN_OR_RETURN(const Variable found, variable(value, Variable::Kind::kNumber, "number"));
  return found.number;
}

Result<int64_t> MetaScheduleReplayer::attribute(const Instruction& i, size_t place) const {
  if (place < i.attributes.size() && i.attributes[place].integer() != nullptr)
    return *i.attributes[place].integer();
  return bad_argument("attribute " + std::to_string(place) + " is no integer");
}

Result<std::string> MetaScheduleReplayer::text_attribute(const Instruction& i, size_t place) const {
  if (place < i.attributes.size() && i.attributes[place].text() != nullptr)
    return unquoted(*i.attributes[place].text());
  return bad_argument("attribute " + std::to_string(place) + " is no text");
}

Status MetaScheduleReplayer::bind(const Instruction& i, const std::vector<Variable>& values) {
  if (i.outputs.size() != values.size())
    return bad_argument("it has " + std::to_string(i.outputs.size()) + " outputs where the program gives " +
                        std::to_string(values.size()));
  for (size_t k = 0; k < values.size(); ++k) variables_[i.outputs[k]] = values[k];
  return {};
}

Status MetaScheduleReplayer::bind_nodes(const Instruction& i, Variable::Kind kind,
                                        const std::vector<BlockTreeId>& nodes) {
  std::vector<Variable> values;
  values.reserve(nodes.size());
  for (const BlockTreeId node : nodes) values.push_back({kind, node, 0});
  return bind(i, values);
}

// --- blocks

BlockTreeId MetaScheduleReplayer::add_block(std::string name, ir::Buffer output, size_t position) {
  const BlockTreeId id = tree_.add_block();
  blocks_[id.place()] = {std::move(name), std::move(output)};
  place_at_root(id, position, {});
  return id;
}

void MetaScheduleReplayer::place_at_root(BlockTreeId block, size_t position, std::vector<size_t> axes) {
  auto loops = tree_.place(block, tree_.root(), position, stage(block).num_roots());
  for (const BlockTreeId made : loops) loop_owners_[made.place()] = block;
  change(block, NewLoops{block, std::move(loops), std::move(axes)});
}

LoopChanger::Outputs MetaScheduleReplayer::outputs() const {
  LoopChanger::Outputs out;
  for (const auto& [id, block] : blocks_) out.emplace(id, block.output);
  return out;
}

sched::StageId MetaScheduleReplayer::stage_of(BlockTreeId block) const {
  return builder_.schedule().producer_of(blocks_.at(block.place()).output.get());
}

// In the order in which the block reads what they write, as in TVM.
std::vector<BlockTreeId> MetaScheduleReplayer::producers_of(BlockTreeId block) const {
  std::vector<BlockTreeId> out;
  const std::vector<BlockTreeId> all = tree_.blocks();
  for (const auto& tensor : stage(block).reads->tensors()) {
    for (const BlockTreeId other : all) {
      const auto it = blocks_.find(other.place());
      if (it != blocks_.end() && it->second.output.get() == tensor.buffer) out.push_back(other);
    }
  }
  return out;
}

std::vector<BlockTreeId> MetaScheduleReplayer::consumers_of(BlockTreeId block) const {
  std::vector<BlockTreeId> out;
  const ir::BufferNode* written = blocks_.at(block.place()).output.get();
  for (const BlockTreeId other : tree_.blocks()) {
    if (blocks_.contains(other.place()) && stage(other).reads->has(written)) out.push_back(other);
  }
  return out;
}

// Takes the block out of the tree and forgets what was done to its loops, because it gets new ones.
Status MetaScheduleReplayer::take_out(BlockTreeId block) {
  for (const BlockTreeId other : tree_.blocks()) {
    if (other == block) continue;
    for (const BlockTreeId around : tree_.loops_of(other)) {
      if (loop_owners_.at(around.place()) == block)
        return Error{ErrorCode::kUnsupported, "", "it moves a block with another block in its loops"};
    }
  }
  for (const Change& made : changes_) {
    if (made.block == block && std::holds_alternative<AlignStorage>(made.change))
      return Error{ErrorCode::kUnsupported, "", "it moves a block whose tensor was aligned before"};
  }
  std::erase_if(changes_, [&](const Change& c) { return c.block == block; });
  tree_.take_out(block);
  return {};
}

Status MetaScheduleReplayer::inline_block(BlockTreeId block) {
  TS_RETURN_IF_ERROR(take_out(block));
  TS_RETURN_IF_ERROR(builder_.apply(sched::ComputeInline{position_of(block)}));
  blocks_.at(block.place()).output = nullptr;
  return {};
}

Result<std::vector<BlockTreeId>> MetaScheduleReplayer::move(BlockTreeId block, BlockTreeId loop,
                                                            size_t position) {
  if (tree_.is_inside(block, loop))
    return Error{ErrorCode::kUnsupported, "", "the block is inside that loop already"};
  TS_RETURN_IF_ERROR(take_out(block));
  auto loops = tree_.place(block, loop, position, stage(block).num_roots());
  for (const BlockTreeId made : loops) loop_owners_[made.place()] = block;
  return loops;
}

// --- instructions that find or choose something

Status MetaScheduleReplayer::nothing(const Instruction& i) { return bind(i, {}); }

Status MetaScheduleReplayer::get_block(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const std::string name, text_attribute(i, 0));
  if (name == "root") return bind_nodes(i, Variable::Kind::kBlock, {root_block_});
  for (const BlockTreeId block : tree_.blocks()) {
    const auto it = blocks_.find(block.place());
    if (it != blocks_.end() && it->second.name == name) return bind_nodes(i, Variable::Kind::kBlock, {block});
  }
  return bad_argument("there is no block '" + name + "'");
}

Status MetaScheduleReplayer::get_loops(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  return bind_nodes(i, Variable::Kind::kLoop, tree_.loops_of(of));
}

Status MetaScheduleReplayer::get_child_blocks(const Instruction& i) {
  if (i.inputs.empty()) return bad_argument("a block is missing");
  TS_ASSIGN_OR_RETURN(const Variable of, variable(i.inputs[0], Variable::Kind::kBlock, "block"));
  return bind_nodes(i, Variable::Kind::kBlock,
                    of.node == root_block_ ? tree_.blocks() : std::vector<BlockTreeId>());
}

Status MetaScheduleReplayer::get_producers(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  return bind_nodes(i, Variable::Kind::kBlock, producers_of(of));
}

Status MetaScheduleReplayer::get_consumers(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  return bind_nodes(i, Variable::Kind::kBlock, consumers_of(of));
}

Status MetaScheduleReplayer::sample_tile(const Instruction& i) {
  const auto* factors = i.decision ? i.decision->list() : nullptr;
  if (factors == nullptr) return bad_argument("its decision, a list of factors, is missing");
  std::vector<Variable> values;
  for (const Value& factor : *factors) {
    const int64_t* extent = factor.integer();
    if (extent == nullptr || *extent <= 0) return bad_argument("a factor of its decision is not positive");
    values.push_back({Variable::Kind::kNumber, {}, *extent});
  }
  return bind(i, values);
}

Status MetaScheduleReplayer::sample_categorical(const Instruction& i) {
  const int64_t* chosen = i.decision ? i.decision->integer() : nullptr;
  const auto* candidates = i.attributes.empty() ? nullptr : i.attributes[0].list();
  if (chosen == nullptr || candidates == nullptr || *chosen < 0 ||
      std::cmp_greater_equal(*chosen, candidates->size()))
    return bad_argument("its decision is none of its candidates");
  const int64_t* value = (*candidates)[static_cast<size_t>(*chosen)].integer();
  if (value == nullptr) return bad_argument("a candidate is no integer");
  return bind(i, {{Variable::Kind::kNumber, {}, *value}});
}

// The decision is a loop of the first consumer, -1 for the present place, or -2 for inlining.
Status MetaScheduleReplayer::sample_location(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  const int64_t* chosen = i.decision ? i.decision->integer() : nullptr;
  if (chosen == nullptr) return bad_argument("its decision, the number of a loop, is missing");
  if (*chosen == -1) return bind(i, {{Variable::Kind::kNowhere, {}, 0}});
  if (*chosen == -2) return bind(i, {{Variable::Kind::kInline, {}, 0}});
  const std::vector<BlockTreeId> consumers = consumers_of(of);
  const auto loops = consumers.empty() ? std::vector<BlockTreeId>() : tree_.loops_of(consumers.front());
  if (*chosen < 0 || std::cmp_greater_equal(*chosen, loops.size()))
    return bad_argument("its decision is no loop of the block's first reader");
  return bind_nodes(i, Variable::Kind::kLoop, {loops[static_cast<size_t>(*chosen)]});
}

// --- instructions that change loops

Status MetaScheduleReplayer::split(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId whole, loop(i, 0));
  SplitLoop made{whole, {}, {}};
  for (size_t k = 1; k < i.inputs.size(); ++k) {
    const std::string* text = i.inputs[k].text();
    if (text != nullptr && *text == "None") {
      made.factors.emplace_back();
      continue;
    }
    TS_ASSIGN_OR_RETURN(const int64_t factor, number(i.inputs[k]));
    if (factor <= 0) return bad_argument("a factor of the split is not positive");
    made.factors.emplace_back(factor);
  }
  if (made.factors.empty()) return bad_argument("the split has no factors");
  const BlockTreeId owner = loop_owners_.at(whole.place());
  made.parts = tree_.split(whole, made.factors.size());
  for (const BlockTreeId part : made.parts) loop_owners_[part.place()] = owner;
  TS_RETURN_IF_ERROR(bind_nodes(i, Variable::Kind::kLoop, made.parts));
  change(owner, std::move(made));
  return {};
}

Status MetaScheduleReplayer::fuse(const Instruction& i) {
  FuseLoops made;
  for (const Value& name : i.inputs) {
    TS_ASSIGN_OR_RETURN(const BlockTreeId part, loop_of(name));
    made.loops.push_back(part);
  }
  TS_ASSIGN_OR_RETURN(made.fused, tree_.fuse(made.loops));
  const BlockTreeId owner = loop_owners_.at(made.loops.front().place());
  loop_owners_[made.fused.place()] = owner;
  TS_RETURN_IF_ERROR(bind_nodes(i, Variable::Kind::kLoop, {made.fused}));
  change(owner, std::move(made));
  return {};
}

Status MetaScheduleReplayer::reorder(const Instruction& i) {
  ReorderLoops made;
  for (const Value& name : i.inputs) {
    TS_ASSIGN_OR_RETURN(const BlockTreeId part, loop_of(name));
    made.loops.push_back(part);
  }
  TS_RETURN_IF_ERROR(tree_.reorder(made.loops));
  if (made.loops.empty()) return {};
  const BlockTreeId owner = loop_owners_.at(made.loops.front().place());
  change(owner, std::move(made));
  return {};
}

Status MetaScheduleReplayer::annotate_loop(const Instruction& i, Annotation annotation) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId at, loop(i, 0));
  change(loop_owners_.at(at.place()), AnnotateLoop{at, annotation});
  return {};
}

Status MetaScheduleReplayer::bind_loop(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const std::string name, text_attribute(i, 0));
  for (const auto& [axis, annotation] : kThreadAxes) {
    if (axis == name) return annotate_loop(i, annotation);
  }
  return Error{ErrorCode::kUnsupported, "", "thread axis '" + name + "' is not supported"};
}

Status MetaScheduleReplayer::vectorize(const Instruction& i) {
  return annotate_loop(i, Annotation::kVectorize);
}
Status MetaScheduleReplayer::unroll(const Instruction& i) { return annotate_loop(i, Annotation::kUnroll); }
Status MetaScheduleReplayer::parallel(const Instruction& i) {
  return annotate_loop(i, Annotation::kParallel);
}

// Only the pragma of unrolling has a step. The other annotations are notes of MetaSchedule's rules for
// each other, and have no effect on the program.
Status MetaScheduleReplayer::annotate(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const std::string key, text_attribute(i, 0));
  if (key != "pragma_auto_unroll_max_step") return {};
  TS_ASSIGN_OR_RETURN(const BlockTreeId at, loop(i, 0));
  if (i.inputs.size() < 2) return bad_argument("the number of steps is missing");
  TS_ASSIGN_OR_RETURN(const int64_t steps, number(i.inputs[1]));
  change(loop_owners_.at(at.place()), UnrollInside{at, steps});
  return {};
}

Status MetaScheduleReplayer::decompose_reduction(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  TS_ASSIGN_OR_RETURN(const BlockTreeId at, loop(i, 1));
  if (loop_owners_.at(at.place()) != of)
    return Error{ErrorCode::kUnsupported, "", "the loop is none of the block's own"};
  change(of, PlaceInit{of, at});
  // The block of the init is a part of our stage: it is none of blocks_, and no instruction may
  // change it.
  return bind_nodes(i, Variable::Kind::kBlock, {tree_.add_block()});
}

Status MetaScheduleReplayer::storage_align(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  TS_ASSIGN_OR_RETURN(const int64_t dimension, attribute(i, 1));
  TS_ASSIGN_OR_RETURN(const int64_t factor, attribute(i, 2));
  TS_ASSIGN_OR_RETURN(const int64_t offset, attribute(i, 3));
  const auto rank = static_cast<int64_t>(stage(of).op->spatial.size());
  if (dimension < -rank || dimension >= rank) return bad_argument("the tensor has no such dimension");
  change(of,
         AlignStorage{of, static_cast<size_t>(dimension < 0 ? dimension + rank : dimension), factor, offset});
  return {};
}

// Our step starts from the loops of the block as they are, so these are changed now. Returns the step,
// but for the place of the new axis.
Result<sched::Rfactor> MetaScheduleReplayer::split_for_rfactor(BlockTreeId block, BlockTreeId loop) {
  for (const BlockTreeId around : tree_.loops_of(block)) {
    if (loop_owners_.at(around.place()) != block)
      return Error{ErrorCode::kUnsupported, "", "the block is inside a loop of another block"};
  }
  std::vector<LoopChange> before;
  for (const Change& made : changes_) {
    if (made.block == block) before.push_back(made.change);
  }
  TS_RETURN_IF_ERROR(take_out(block));
  const LoopChanger::Outputs written = outputs();
  LoopChanger changer(builder_, written);
  for (const LoopChange& made : before) TS_RETURN_IF_ERROR(changer.apply(made));
  const auto position = stage(block).leaf_position(changer.home_of(loop).iterator);
  if (!position)
    return Error{ErrorCode::kUnsupported, "", "the loop runs once, and our schedule leaves it out"};
  return sched::Rfactor{position_of(block), static_cast<int>(*position), 0};
}

Status MetaScheduleReplayer::rfactor(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId at, loop(i, 0));
  TS_ASSIGN_OR_RETURN(const int64_t place, attribute(i, 0));
  const BlockTreeId of = loop_owners_.at(at.place());
  const size_t position = tree_.position_at_root(of);
  TS_ASSIGN_OR_RETURN(sched::Rfactor step, split_for_rfactor(of, at));
  const sched::Stage before = stage(of);
  const size_t rank = before.op->spatial.size();
  if (place < -static_cast<int64_t>(rank) - 1 || std::cmp_greater(place, rank))
    return bad_argument("the new dimension is none of the tensor's");
  const size_t factor = static_cast<size_t>(place < 0 ? place + static_cast<int64_t>(rank) + 1 : place);
  step.factor_axis = static_cast<int>(factor);
  TS_RETURN_IF_ERROR(builder_.apply(step));
  const sched::Stage& partial = builder_.schedule().stages[sched::StageId(stage_of(of).place() - 1)];
  std::vector<size_t> axes = blocks_.at(of.place()).axes;
  for (size_t axis = 0; axes.size() < before.num_roots(); ++axis) axes.push_back(axis);
  TS_ASSIGN_OR_RETURN(
      auto blocks,
      blocks_after_rfactor(before, axes, before.leaves[static_cast<size_t>(step.iterator)], partial, factor));
  const BlockTreeId made = tree_.add_block();
  blocks_[made.place()] = {blocks_.at(of.place()).name + "_rf", partial.op->output(),
                           std::move(blocks.partial.axes)};
  blocks_.at(of.place()).axes = std::move(blocks.rest.axes);
  place_at_root(made, position, std::move(blocks.partial.loops));
  place_at_root(of, position + 1, std::move(blocks.rest.loops));
  return bind_nodes(i, Variable::Kind::kBlock, {made});
}

// --- instructions that change definitions

Status MetaScheduleReplayer::cache_read(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  TS_ASSIGN_OR_RETURN(const int64_t index, attribute(i, 0));
  TS_ASSIGN_OR_RETURN(const std::string scope_name, text_attribute(i, 1));
  TS_ASSIGN_OR_RETURN(const ir::MemoryScope scope, scope_named(scope_name));
  const auto& tensors = stage(of).reads->tensors();
  if (index < 0 || std::cmp_greater_equal(index, tensors.size()))
    return bad_argument("the block does not read " + std::to_string(index) + " other tensors");
  const sched::StageId source = builder_.schedule().producer_of(tensors[static_cast<size_t>(index)].buffer);
  sched::CacheRead step{static_cast<int>(source.place()), scope, {}};
  const auto* readers = i.inputs.size() > 1 ? i.inputs[1].list() : nullptr;
  if (readers == nullptr || readers->empty()) {
    for (const sched::StageId reader : builder_.schedule().consumers_of(source))
      step.readers.push_back(static_cast<int>(reader.place()));
  } else {
    for (const Value& name : *readers) {
      TS_ASSIGN_OR_RETURN(const Variable reader, variable(name, Variable::Kind::kBlock, "block"));
      if (!blocks_.contains(reader.node.place()) || blocks_.at(reader.node.place()).output == nullptr)
        return bad_argument("a reader has no tensor");
      step.readers.push_back(position_of(reader.node));
    }
  }
  const ir::Operation& op = *builder_.schedule().stages[source].op;
  const std::string name = op.name + "_" + scope_name;
  // TVM puts the copy before all that reads it; an input's is the first statement.
  size_t position = 0;
  for (const auto& [id, known] : blocks_) {
    if (known.output == op.output()) position = tree_.position_at_root(BlockTreeId(id)) + 1;
  }
  TS_RETURN_IF_ERROR(builder_.apply(step));
  const ir::Buffer copy = builder_.schedule().stages[sched::StageId(source.place() + 1)].op->output();
  return bind_nodes(i, Variable::Kind::kBlock, {add_block(name, copy, position)});
}

Status MetaScheduleReplayer::cache_write(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  TS_ASSIGN_OR_RETURN(const std::string scope_name, text_attribute(i, 1));
  TS_ASSIGN_OR_RETURN(const ir::MemoryScope scope, scope_named(scope_name));
  if (i.inputs.size() > 1 && i.inputs[1].list() != nullptr && !i.inputs[1].list()->empty())
    return Error{ErrorCode::kUnsupported, "", "a cache for some of the readers only is not supported"};
  const sched::StageId s = stage_of(of);
  const std::string name = blocks_.at(of.place()).name + "_" + scope_name;
  const ir::Buffer written = blocks_.at(of.place()).output;
  TS_RETURN_IF_ERROR(builder_.apply(sched::CacheWrite{static_cast<int>(s.place()), scope}));
  blocks_.at(of.place()).output = builder_.schedule().stages[s].op->output();
  return bind_nodes(i, Variable::Kind::kBlock, {add_block(name, written, tree_.position_at_root(of) + 1)});
}

Status MetaScheduleReplayer::compute_at(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  if (i.inputs.size() > 1) {  // what SampleComputeLocation may have chosen
    if (variable(i.inputs[1], Variable::Kind::kNowhere, "").ok()) return {};
    if (variable(i.inputs[1], Variable::Kind::kInline, "").ok()) return inline_block(of);
  }
  TS_ASSIGN_OR_RETURN(const BlockTreeId at, loop(i, 1));
  // Before the first reader.
  const std::vector<BlockTreeId> readers = consumers_of(of);
  const auto& children = tree_.node(at).children;
  const auto reads = [&](BlockTreeId child) {
    return std::any_of(readers.begin(), readers.end(),
                       [&](BlockTreeId reader) { return tree_.is_inside(reader, child); });
  };
  const size_t position = std::find_if(children.begin(), children.end(), reads) - children.begin();
  TS_ASSIGN_OR_RETURN(auto loops, move(of, at, position));
  change(of, AttachProducer{of, at, std::move(loops), blocks_.at(of.place()).axes});
  return {};
}

Status MetaScheduleReplayer::reverse_compute_at(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  if (i.inputs.size() > 1 && variable(i.inputs[1], Variable::Kind::kNowhere, "").ok()) return {};
  TS_ASSIGN_OR_RETURN(const BlockTreeId at, loop(i, 1));
  if (!blocks_.at(of.place()).axes.empty())
    return Error{ErrorCode::kUnsupported, "",
                 "the block was made by RFactor, and its axes are in another order"};
  TS_ASSIGN_OR_RETURN(auto loops, move(of, at, tree_.node(at).children.size()));
  change(of, AttachConsumer{of, at, std::move(loops)});
  return {};
}

Status MetaScheduleReplayer::compute_inline(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  return inline_block(of);
}

// The consumer's definition replaces its producer's, whose block and loops remain. In our schedule,
// the producer is inlined into the consumer, whose axes must be those of the producer.
Status MetaScheduleReplayer::reverse_compute_inline(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  const std::vector<BlockTreeId> producers = producers_of(of);
  if (producers.size() != 1) return bad_argument("the block does not read exactly one other block");
  const ir::Operation& consumer = *stage(of).op;
  const ir::Operation& producer = *stage(producers.front()).op;
  bool same = consumer.spatial.size() == producer.spatial.size() && !consumer.has_reduction();
  for (const ir::Load* load : stage(of).reads->loads()) {
    if (load->buffer != producer.output()) continue;
    for (size_t d = 0; same && d < consumer.spatial.size(); ++d) {
      const auto* axis = ir::as<ir::VarRef>(load->indices[d]);
      const bool one = producer.spatial[d].extent == 1 && ir::is_int_value(load->indices[d], 0);
      same = consumer.spatial[d].extent == producer.spatial[d].extent &&
             (one || (axis != nullptr && axis->var == consumer.spatial[d].var));
    }
  }
  if (!same)
    return Error{ErrorCode::kUnsupported, "", "the block does not read its producer element by element"};
  TS_RETURN_IF_ERROR(take_out(of));
  TS_RETURN_IF_ERROR(builder_.apply(sched::ComputeInline{position_of(producers.front())}));
  blocks_.at(producers.front().place()).output = blocks_.at(of.place()).output;
  blocks_.at(of.place()).output = nullptr;
  return {};
}

// Our schedules derive the memory of a tensor from its loops, which finish() compares.
Status MetaScheduleReplayer::set_scope(const Instruction& i) {
  TS_ASSIGN_OR_RETURN(const BlockTreeId of, block(i, 0));
  TS_ASSIGN_OR_RETURN(const std::string name, text_attribute(i, 1));
  TS_ASSIGN_OR_RETURN(const ir::MemoryScope scope, scope_named(name));
  scopes_.emplace_back(of, scope);
  return {};
}

Result<MetaScheduleProgram> replay(const sched::Schedule& fresh, const std::vector<TirBlock>& blocks,
                                   const MetaScheduleRecord& record) {
  MetaScheduleReplayer replayer(fresh, blocks);
  for (size_t i = 0; i < record.instructions.size(); ++i) {
    Status status = replayer.execute(i, record.instructions[i]);
    if (status.ok()) continue;
    Error error = std::move(status).error();
    error.place = instruction_place(i, record.instructions);
    return error;
  }
  return std::move(replayer).finish(record.instructions);
}

}  // namespace tensorsmith::record
