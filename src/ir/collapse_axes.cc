#include "ir/collapse_axes.h"

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/analysis.h"

namespace tensorsmith::ir {
namespace {

// Works on seams: the boundaries between two neighbouring spatial axes (which are the dimensions of
// the outputs) or two neighbouring reduction axes of an operation. To merge axes is to close the
// seam between them. Seams that are tied by a read are closed together or not at all. A seam
// remains open if some use needs the axes separately.
class AxisCollapser {
 public:
  explicit AxisCollapser(const Workload& workload) : workload_(workload) {
    for (const OperationRef& op : workload.operations) {
      const std::vector<size_t> dims = add_axes(op->spatial);
      add_axes(op->reduce);
      for (const Buffer& output : op->outputs) dim_seams_[output.get()] = dims;
    }
    for (const OperationRef& op : workload.operations) {
      for (const Expr& body : op->bodies) constrain(body);
    }
  }

  Workload run() {
    Workload out;
    bool changed = false;
    for (const OperationRef& op : workload_.operations) {
      out.operations.push_back(collapse(op));
      changed |= out.operations.back() != op;
    }
    if (!changed) return workload_;
    for (const Buffer& output : workload_.outputs) out.outputs.push_back(renamed(output));
    return out;
  }

 private:
  static constexpr size_t kNoSeam = -1;
  struct AxisInfo {
    size_t left = kNoSeam, right = kNoSeam;
    int64_t extent = 1;
    Var merged;  // for the first of merged axes: the variable that replaces them
  };

  // Returns the seams between the axes.
  std::vector<size_t> add_axes(const std::vector<Axis>& axes) {
    std::vector<size_t> seams;
    for (size_t i = 0; i < axes.size(); ++i) {
      AxisInfo info;
      info.extent = axes[i].extent;
      if (i > 0) info.left = seams.back();
      if (i + 1 < axes.size()) {
        info.right = parent_.size();
        seams.push_back(info.right);
        parent_.push_back(info.right);
        open_.push_back(false);
      }
      axes_[axes[i].var.get()] = info;
    }
    return seams;
  }

  size_t root(size_t seam) {
    while (parent_[seam] != seam) seam = parent_[seam] = parent_[parent_[seam]];
    return seam;
  }
  void keep_open(size_t seam) {
    if (seam != kNoSeam) open_[root(seam)] = true;
  }
  void tie(size_t a, size_t b) {
    a = root(a);
    b = root(b);
    parent_[b] = a;
    open_[a] = open_[a] || open_[b];
  }
  bool closed(size_t seam) { return seam != kNoSeam && !open_[root(seam)]; }

  // Returns the axis that is index d of the load, if it covers the whole dimension.
  const AxisInfo* axis_at(const Load& load, size_t d) const {
    const VarRef* ref = as<VarRef>(load.indices[d]);
    if (ref == nullptr) return nullptr;
    const AxisInfo& axis = axes_.at(ref->var.get());
    return axis.extent == load.buffer->shape[d] ? &axis : nullptr;
  }

  void constrain(const Expr& body) {
    // Uses of each variable except those as a whole index; the remaining uses need the variable
    // itself.
    std::unordered_map<const VarNode*, int64_t> other_uses;
    for_each_expr(body, [&](const Expr& e) {
      if (const VarRef* ref = as<VarRef>(e)) ++other_uses[ref->var.get()];
      const Load* load = as<Load>(e);
      if (load == nullptr) return;
      const AxisInfo* previous = nullptr;
      for (size_t d = 0; d < load->indices.size(); ++d) {
        const AxisInfo* axis = axis_at(*load, d);
        const bool neighbours =
            previous != nullptr && axis != nullptr && axis->left != kNoSeam && axis->left == previous->right;
        if (d > 0) {
          const size_t seam = dim_seams_.at(load->buffer.get())[d - 1];
          if (neighbours) {
            tie(seam, axis->left);
          } else {
            keep_open(seam);
            if (previous != nullptr) keep_open(previous->right);
          }
        }
        if (axis != nullptr) {
          --other_uses[as<VarRef>(load->indices[d])->var.get()];
          if (!neighbours) keep_open(axis->left);
        }
        previous = axis;
      }
      if (previous != nullptr) keep_open(previous->right);
    });
    for (const auto& [var, uses] : other_uses) {
      if (uses == 0) continue;
      keep_open(axes_.at(var).left);
      keep_open(axes_.at(var).right);
    }
  }

  std::vector<Axis> collapse(const std::vector<Axis>& axes) {
    std::vector<Axis> out;
    for (size_t first = 0, end = 0; first < axes.size(); first = end) {
      std::string name = axes[first].var.name();
      int64_t extent = axes[first].extent;
      for (end = first + 1; end < axes.size() && closed(axes_.at(axes[end].var.get()).left); ++end) {
        name += "_" + axes[end].var.name();
        extent *= axes[end].extent;
      }
      if (end == first + 1) {
        out.push_back(axes[first]);
        continue;
      }
      Var& merged = axes_.at(axes[first].var.get()).merged;
      merged = Var(std::move(name));
      out.push_back({merged, extent});
    }
    return out;
  }

  Expr collapse(const Expr& body) {
    return rewrite(body, [&](const Expr& e) -> Expr {
      const Load* load = as<Load>(e);
      if (load == nullptr || renamed(load->buffer) == load->buffer) return e;
      const std::vector<size_t>& seams = dim_seams_.at(load->buffer.get());
      std::vector<Expr> indices;
      for (size_t d = 0; d < load->indices.size(); ++d) {
        if (d > 0 && closed(seams[d - 1])) continue;  // merged into the dimension before
        const bool merges = d < seams.size() && closed(seams[d]);
        indices.push_back(merges ? Expr(axes_.at(as<VarRef>(load->indices[d])->var.get()).merged)
                                 : load->indices[d]);
      }
      return ir::load(renamed(load->buffer), std::move(indices));
    });
  }

  OperationRef collapse(const OperationRef& op) {
    std::vector<Axis> spatial = collapse(op->spatial);
    std::vector<Axis> reduce = collapse(op->reduce);
    bool changed = spatial.size() != op->spatial.size() || reduce.size() != op->reduce.size();
    std::vector<Expr> bodies;
    for (const Expr& body : op->bodies) {
      bodies.push_back(collapse(body));
      changed |= !bodies.back().same_as(body);
    }
    if (!changed) return op;
    OperationRef out;
    if (op->is_placeholder()) {
      std::vector<int64_t> shape;
      for (const Axis& axis : spatial) shape.push_back(axis.extent);
      out = placeholder(op->name, op->output()->dtype, std::move(shape), op->is_constant, op->reduced_range);
    } else {
      out = compute(op->name, std::move(spatial), std::move(reduce), op->combiner, std::move(bodies));
    }
    for (size_t i = 0; i < op->outputs.size(); ++i) renamed_[op->outputs[i].get()] = out->outputs[i];
    return out;
  }

  const Buffer& renamed(const Buffer& buffer) const {
    const auto it = renamed_.find(buffer.get());
    return it == renamed_.end() ? buffer : it->second;
  }

  const Workload& workload_;
  std::unordered_map<const VarNode*, AxisInfo> axes_;
  std::unordered_map<const BufferNode*, std::vector<size_t>> dim_seams_;
  // Tied seams, as a union-find; open_ is valid at the root.
  std::vector<size_t> parent_;
  std::vector<bool> open_;
  std::unordered_map<const BufferNode*, Buffer> renamed_;
};

}  // namespace

Workload collapse_axes(const Workload& workload) { return AxisCollapser(workload).run(); }

}  // namespace tensorsmith::ir
