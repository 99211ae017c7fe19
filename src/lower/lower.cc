#include "lower/lower.h"

#include <algorithm>

#include "ir/simplify.h"
#include "lower/nest.h"
#include "sched/storage.h"

namespace tensorsmith::lower {

namespace {

using sched::AttachKind;

class ProgramBuilder {
 public:
  ProgramBuilder(const sched::Schedule& schedule, const sched::Bounds& bounds)
      : schedule_(schedule), bounds_(bounds) {}

  LoweredProgram build(std::string name) {
    LoweredProgram out;
    out.program.name = std::move(name);
    out.program.outputs = schedule_.outputs;
    for (const sched::StageId s : schedule_.stages.ids()) plan(s, out);
    NestBuilder nests(schedule_, bounds_, storage_);
    for (const sched::StageId s : schedule_.stages.ids()) {
      const sched::Stage& stage = schedule_.stages[s];
      if (stage.is_placeholder() || stage.attach != AttachKind::kRoot) continue;
      roots_.push_back(s);
      bodies_.push_back(nests.root_stage(s));
    }
    find_lifetimes();
    out.program.body = sequence(0, roots_.size());
    return out;
  }

 private:
  void plan(sched::StageId s, LoweredProgram& out) {
    const sched::Stage& stage = schedule_.stages[s];
    if (stage.attach == AttachKind::kInlined) return;
    for (const ir::Buffer& logical : stage.op->outputs) {
      StoragePlan p;
      p.stage = s;
      p.buffer = logical;
      if (stage.layout) p.layout = &*stage.layout;
      const bool is_output =
          std::find(schedule_.outputs.begin(), schedule_.outputs.end(), logical) != schedule_.outputs.end();
      if (stage.is_placeholder()) {
        if (stage.layout)
          p.buffer = ir::make_buffer(logical->name, logical->dtype, sched::layout_shape(*stage.layout));
        if (stage.layout || stage.transform)
          out.prepared.push_back({out.program.inputs.size(), stage.transform, stage.layout});
        out.program.inputs.push_back(p.buffer);
      } else if (!is_output) {
        p.allocated = true;
        p.shrunk = stage.attach == AttachKind::kAt;
        const sched::StageBounds& bounds = bounds_.stages[s];
        sched::Storage storage =
            sched::storage_of(stage, *logical, {bounds.extents, bounds.root_extent, bounds.root_may_leave});
        // A tensor that several loop nests of the program use cannot be private to a thread.
        const ir::MemoryScope scope =
            stage.attach == AttachKind::kRoot ? ir::MemoryScope::kGlobal : sched::memory_scope(schedule_, s);
        p.buffer = ir::make_buffer(logical->name, logical->dtype, std::move(storage.shape), scope,
                                   std::move(storage.strides));
      }
      storage_[logical.get()] = std::move(p);
    }
  }

  // Sets last_use_[k] to one past the last root nest that reads the results of nest k (at least k +
  // 1).
  void find_lifetimes() {
    last_use_.resize(roots_.size());
    std::unordered_map<const ir::BufferNode*, size_t> writer;
    for (size_t k = 0; k < roots_.size(); ++k) {
      last_use_[k] = k + 1;
      for (const ir::Buffer& out : schedule_.stages[roots_[k]].op->outputs) writer[out.get()] = k;
    }
    for (const sched::StageId s : schedule_.stages.ids()) {
      const sched::Stage& reader = schedule_.stages[s];
      if (reader.attach == AttachKind::kInlined || reader.is_placeholder()) continue;
      sched::StageId root = s;
      while (schedule_.stages[root].attach == AttachKind::kAt) root = schedule_.stages[root].attach_stage;
      size_t nest = 0;
      while (roots_[nest] != root) ++nest;
      for (const sched::Reads::Tensor& read : reader.reads->tensors()) {
        if (const auto it = writer.find(read.buffer); it != writer.end()) {
          last_use_[it->second] = std::max(last_use_[it->second], nest + 1);
        }
      }
    }
  }

  // Returns nests [begin, end) in order, with each intermediate allocated around its uses (and
  // around those of other intermediates allocated inside).
  ir::Stmt sequence(size_t begin, size_t end) const {
    std::vector<ir::Stmt> list;
    for (size_t k = begin; k < end;) {
      std::vector<ir::Buffer> allocated;
      for (const ir::Buffer& out : schedule_.stages[roots_[k]].op->outputs) {
        if (const StoragePlan& p = storage_.at(out.get()); p.allocated) allocated.push_back(p.buffer);
      }
      if (allocated.empty()) {
        if (bodies_[k] != nullptr) list.push_back(bodies_[k]);
        ++k;
        continue;
      }
      size_t last = last_use_[k];
      for (size_t j = k + 1; j < last; ++j) last = std::max(last, last_use_[j]);
      std::vector<ir::Stmt> inner;
      if (bodies_[k] != nullptr) inner.push_back(bodies_[k]);
      if (ir::Stmt rest = sequence(k + 1, last)) inner.push_back(std::move(rest));
      if (!inner.empty()) {
        ir::Stmt body = ir::make_seq(std::move(inner));
        for (size_t b = allocated.size(); b-- > 0;) body = ir::make_allocate(allocated[b], std::move(body));
        list.push_back(std::move(body));
      }
      k = last;
    }
    return list.empty() ? nullptr : ir::make_seq(std::move(list));
  }

  const sched::Schedule& schedule_;
  const sched::Bounds& bounds_;
  StorageMap storage_;
  std::vector<sched::StageId> roots_;
  std::vector<ir::Stmt> bodies_;  // bodies of the root stages
  std::vector<size_t> last_use_;
};

}  // namespace

Result<LoweredProgram> lower(const sched::Schedule& schedule, std::string name) {
  TS_ASSIGN_OR_RETURN(const sched::Bounds bounds, sched::infer_bounds(schedule));
  return ProgramBuilder(schedule, bounds).build(std::move(name));
}

}  // namespace tensorsmith::lower
