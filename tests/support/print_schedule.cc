#include "support/print_schedule.h"

namespace tensorsmith::test {

using namespace sched;  // NOLINT(google-build-using-namespace)

namespace {

class Printer {
 public:
  Printer(const Schedule& schedule, const Bounds* bounds) : schedule_(schedule), bounds_(bounds) {}

  std::string run() {
    for (const Stage& stage : schedule_.stages) {
      if (stage.is_placeholder()) {
        out_ += std::string(stage.op->is_constant ? "constant " : "placeholder ") + stage.op->name;
        for (int64_t extent : stage.op->output()->shape) out_ += " " + std::to_string(extent);
        out_ += storage(stage) + "\n";
      } else if (stage.attach == AttachKind::kInlined) {
        out_ += "inlined " + stage.op->name + "\n";
      }
    }
    for (const StageId s : schedule_.stages.ids()) {
      const Stage& stage = schedule_.stages[s];
      if (!stage.is_placeholder() && stage.attach == AttachKind::kRoot) nest(s, 0);
    }
    return std::move(out_);
  }

 private:
  static std::string storage(const Stage& stage) {
    std::string text;
    if (stage.layout) {
      text += " layout [";
      for (size_t i = 0; i < stage.layout->size(); ++i) {
        const LayoutDim& digit = (*stage.layout)[i];
        text += (i > 0 ? "," : "") + std::to_string(digit.dim) + "/" + std::to_string(digit.divisor) + "%" +
                std::to_string(digit.extent);
      }
      text += "]";
    }
    if (stage.storage_align)
      text += " align " + stage.iterators[stage.storage_align_iterator].name + " to k*" +
              std::to_string(stage.storage_align->first) + "+" + std::to_string(stage.storage_align->second);
    return text;
  }

  void line(size_t depth, const std::string& text) { out_ += std::string(depth * 2, ' ') + text + "\n"; }

  void nest(StageId s, size_t depth) {
    const Stage& stage = schedule_.stages[s];
    if (stage.auto_unroll_max_step != 0)
      line(depth, stage.op->name + " auto_unroll: " + std::to_string(stage.auto_unroll_max_step));
    bool init_done = !stage.op->has_reduction();
    for (const IteratorId leaf : stage.leaves) {
      const Iterator& it = stage.iterators[leaf];
      if (!init_done && (stage.init_at.valid() ? leaf == stage.init_at : it.kind != IterKind::kSpatial)) {
        line(depth, stage.op->name + " init");
        init_done = true;
      }
      std::string text = it.annotation == Annotation::kNone ? "for" : std::string(to_string(it.annotation));
      text += " " + it.name;
      if (bounds_ != nullptr) text += " (" + std::to_string(bounds_->stages[s].extents[leaf]) + ")";
      line(depth, text);
      ++depth;
      for (const StageId p : schedule_.stages.ids()) {
        if (schedule_.stages[p].is_attached_at(s, leaf)) nest(p, depth);
      }
    }
    if (!init_done) line(depth, stage.op->name + " init");
    std::string text = stage.op->name + " = ";
    if (stage.op->has_reduction()) text += std::string(ir::to_string(stage.op->combiner)) + " ";
    text += "...";
    if (stage.scope != ir::MemoryScope::kGlobal) text += " in " + std::string(ir::to_string(stage.scope));
    line(depth, text + storage(stage));
  }

  const Schedule& schedule_;
  const Bounds* bounds_;
  std::string out_;
};

}  // namespace

std::string print_schedule(const Schedule& schedule) {
  const Result<Bounds> bounds = infer_bounds(schedule);
  return Printer(schedule, bounds.ok() ? &*bounds : nullptr).run();
}

ir::Workload workload_of(const Schedule& schedule) {
  ir::Workload result;
  for (const Stage& stage : schedule.stages) {
    if (stage.transform) {
      const auto& made = stage.transform->operations;
      result.operations.insert(result.operations.end(), made.begin(), made.end());
    } else if (stage.attach != AttachKind::kInlined) {
      result.operations.push_back(stage.op);
    }
  }
  result.outputs = schedule.outputs;
  return result;
}

}  // namespace tensorsmith::test
