#include <algorithm>
#include <cctype>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "graph/attention.h"
#include "graph/emit.h"
#include "graph/grouping.h"
#include "graph/passes/passes.h"
#include "graph/place_region.h"
#include "graph/routines.h"
#include "graph/tasks.h"
#include "graph/views.h"
#include "ir/analysis.h"
#include "ir/collapse_axes.h"
#include "ir/simplify.h"
#include "ir/structural.h"

namespace tensorsmith::graph {
namespace {

// Returns the value of a constant scalar as an expression; such a constant becomes part of the
// program.
ir::Expr immediate(const Value& value) {
  const ir::Scalar scalar = value.constant->at(0);
  return ir::is_float(value.dtype) ? ir::float_imm(value.dtype, scalar.f)
                                   : ir::int_imm(value.dtype, scalar.i);
}

// Returns whether the value is a constant of i8 or u8 all of whose elements are in the reduced range
// (ir::reduced_range_max). Returns false for vectors and scalars: they are zero points, whose range is
// irrelevant.
bool has_reduced_range(const Value& value) {
  if (!value.constant || value.shape.size() < 2) return false;
  const std::span bytes(value.constant->data);
  const auto all_within = [&]<class T>(T) {
    return std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) {
      const auto x = static_cast<T>(b);
      return x >= ir::reduced_range_min(value.dtype) && x <= ir::reduced_range_max(value.dtype);
    });
  };
  return value.dtype == ir::DType::kI8   ? all_within(int8_t{})
         : value.dtype == ir::DType::kU8 ? all_within(uint8_t{})
                                         : false;
}

// Keeps the operations that the outputs need, in order.
ir::Workload prune(const std::vector<ir::OperationRef>& operations, std::vector<ir::Buffer> outputs) {
  std::unordered_map<const ir::BufferNode*, size_t> producer;
  for (size_t i = 0; i < operations.size(); ++i) {
    for (const auto& out : operations[i]->outputs) producer[out.get()] = i;
  }
  std::vector<bool> needed(operations.size(), false);
  std::vector<size_t> stack;
  for (const auto& out : outputs) stack.push_back(producer.at(out.get()));
  while (!stack.empty()) {
    const size_t i = stack.back();
    stack.pop_back();
    if (needed[i]) continue;
    needed[i] = true;
    for (const auto& body : operations[i]->bodies) {
      for (const ir::Load* load : ir::loads_of(body)) stack.push_back(producer.at(load->buffer.get()));
    }
  }
  ir::Workload workload;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (needed[i]) workload.operations.push_back(operations[i]);
  }
  workload.outputs = std::move(outputs);
  return workload;
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The tasks of a network and of all its bodies.
struct TaskTable {
  std::vector<Task> tasks;
  std::unordered_map<std::string, size_t> index;  // by key
  std::unordered_map<std::string, int> names;     // number of tasks that have the name
};

class Partitioner {
 public:
  // `turns`: number of times that the graph is expected to run.
  Partitioner(Graph& graph, const PartitionOptions& options, TaskTable& table, int64_t turns)
      : graph_(graph), options_(options), table_(table), turns_(turns) {}

  // Returns a partition without its tasks, which are in the table.
  Result<Partition> run() {
    Views views = find_views(graph_, options_.alignment);
    TS_ASSIGN_OR_RETURN(Grouping grouping, group_nodes(graph_, views, options_.routines));
    partition_.storage_of = std::move(views.storage_of);
    partition_.storage_offset = std::move(views.offset);
    // A kernel runs at the position of its last node, where all its inputs are available.
    std::vector<std::vector<NodeId>> groups = grouping.groups;
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.back() < b.back(); });
    for (const auto& group : groups) {
      if (grouping.classes[group.front()] == NodeClass::kRoutine) {
        const NodeId node = group.front();
        if (graph_.nodes[node].region != nullptr) {
          TS_RETURN_IF_ERROR(add_region(node));
        } else {
          add_routine(graph_.nodes[node]);
        }
      } else {
        TS_RETURN_IF_ERROR(add_group(group));
      }
    }
    TS_RETURN_IF_ERROR(add_output_copies());
    return std::move(partition_);
  }

 private:
  // Larger numbers of turns count as this one, so that weights and times stay numbers.
  static constexpr int64_t kMostTurns = int64_t{1} << 20;

  Status add_region(NodeId id) {
    const Node node = graph_.nodes[id];  // values are appended to the graph
    return place_region(graph_, partition_, node, options_.alignment,
                        [&](const Graph& body, int64_t turns) -> Result<PartitionedBody> {
                          PartitionedBody result{body, {}};
                          const int64_t product = std::min(turns_ * std::min(turns, kMostTurns), kMostTurns);
                          Partitioner inner(result.graph, options_, table_, product);
                          TS_ASSIGN_OR_RETURN(result.partition, inner.run());
                          return result;
                        });
  }

  void add_routine(const Node& node) {
    RoutineUse use = *routine_of(graph_, node);
    Call call;
    for (const size_t i : use.inputs) call.inputs.push_back(node.inputs[i]);
    for (const size_t o : use.outputs) call.outputs.push_back(node.outputs[o]);
    call.routine = std::move(use.call);
    call.name = lower_case(node.op) + "_" + shape_text(graph_.values[node.inputs[0]].shape);
    call.turns = turns_;
    partition_.calls.push_back(std::move(call));
  }

  Status add_group(const std::vector<NodeId>& group) {
    // Finds the values that leave the group: they are read by a node outside or by the user.
    std::unordered_map<ValueId, int> uses_inside;
    for (NodeId n : group) {
      for (ValueId id : graph_.nodes[n].inputs) ++uses_inside[id];
    }
    std::unordered_set<ValueId> leaving;
    for (NodeId n : group) {
      for (ValueId id : graph_.nodes[n].outputs) {
        if (id != kNoValue && uses_[id] > uses_inside[id]) leaving.insert(id);
      }
    }

    WorkloadBuilder builder;
    std::unordered_map<ValueId, ir::Buffer> buffers;
    std::unordered_map<const ir::BufferNode*, ValueId> value_of;  // of placeholders
    std::unordered_map<const ir::BufferNode*, ir::Expr> immediates;
    std::vector<ir::Buffer> output_buffers;
    std::vector<ValueId> output_values;
    Task task;
    for (NodeId n : group) {
      const Node& node = graph_.nodes[n];
      task.nodes.push_back(node.name);
      std::vector<ir::Buffer> inputs;
      for (ValueId id : node.inputs) {
        if (id == kNoValue) {
          inputs.emplace_back();
          continue;
        }
        auto it = buffers.find(id);
        if (it == buffers.end()) {
          const Value& value = graph_.values[id];
          ir::Buffer buffer =
              builder.placeholder(value.constant ? "weight" : "input", value.dtype, value.shape,
                                  value.constant != nullptr, has_reduced_range(value));
          value_of[buffer.get()] = id;
          if (value.constant && value.constant->num_elements() == 1)
            immediates[buffer.get()] = immediate(value);
          it = buffers.emplace(id, std::move(buffer)).first;
        }
        inputs.push_back(it->second);
      }
      TS_ASSIGN_OR_RETURN(std::vector<ir::Buffer> outputs, emit(graph_, node, inputs, builder));
      // The quotients of a softmax may be divided after their product with the values: its sums are never
      // 0, since their largest term is 1.
      const bool attention =
          node.op == "MatMul" && std::any_of(group.begin(), group.end(), [&](NodeId other) {
            return graph_.nodes[other].op == "Softmax" && graph_.nodes[other].outputs[0] == node.inputs[0];
          });
      if (attention) outputs.front() = divide_after_contraction(outputs.front(), builder);
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        const ValueId id = node.outputs[o];
        if (id == kNoValue) continue;
        if (o >= outputs.size() || !outputs[o]) {
          if (leaving.count(id)) {
            return Error{ErrorCode::kUnsupported, node.name,
                         "output " + std::to_string(o) + " of " + node.op +
                             " is used, but Tensorsmith does not support this output"};
          }
          continue;
        }
        buffers[id] = outputs[o];
        if (leaving.count(id)) {
          output_buffers.push_back(outputs[o]);
          output_values.push_back(id);
        }
      }
    }
    if (output_buffers.empty()) return {};  // dead code
    std::vector<ir::OperationRef> operations = builder.operations();
    make_outputs_distinct(operations, output_buffers, value_of);
    inline_immediates(operations, output_buffers, immediates);
    task.workload = prune(operations, std::move(output_buffers));
    return add_call(std::move(task), group, value_of, std::move(output_values));
  }

  // A workload's outputs must be distinct computed buffers: an output that is a placeholder or
  // repeats another one is copied.
  static void make_outputs_distinct(std::vector<ir::OperationRef>& operations,
                                    std::vector<ir::Buffer>& outputs,
                                    const std::unordered_map<const ir::BufferNode*, ValueId>& placeholders) {
    std::unordered_set<const ir::BufferNode*> seen;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!placeholders.count(outputs[i].get()) && seen.insert(outputs[i].get()).second) continue;
      operations.push_back(copy_of(outputs[i], "copy_" + std::to_string(i)));
      outputs[i] = operations.back()->output();
    }
  }

  static ir::OperationRef copy_of(const ir::Buffer& source, const std::string& name) {
    std::vector<ir::Axis> axes;
    std::vector<ir::Expr> indices;
    for (size_t d = 0; d < source->shape.size(); ++d) {
      axes.push_back({ir::Var("i" + std::to_string(d)), source->shape[d]});
      indices.push_back(axes.back().var);
    }
    return ir::compute(name, axes, {}, ir::Combiner::kNone, {ir::load(source, indices)});
  }

  // Replaces reads of one-element constants by immediates and rebuilds the operations that depend
  // on them.
  static void inline_immediates(std::vector<ir::OperationRef>& operations, std::vector<ir::Buffer>& outputs,
                                const std::unordered_map<const ir::BufferNode*, ir::Expr>& immediates) {
    if (immediates.empty()) return;
    std::unordered_map<const ir::BufferNode*, ir::Buffer> renamed;
    for (auto& op : operations) {
      if (op->is_placeholder()) continue;
      bool changed = false;
      std::vector<ir::Expr> bodies;
      for (const auto& body : op->bodies) {
        ir::Expr next = ir::rewrite(body, [&](const ir::Expr& e) -> ir::Expr {
          const auto* load = ir::as<ir::Load>(e);
          if (!load) return e;
          if (auto it = immediates.find(load->buffer.get()); it != immediates.end()) return it->second;
          if (auto it = renamed.find(load->buffer.get()); it != renamed.end()) {
            return ir::load(it->second, load->indices);
          }
          return e;
        });
        if (!next.same_as(body)) {
          changed = true;
          next = ir::simplify(next);
        }
        bodies.push_back(std::move(next));
      }
      if (!changed) continue;
      auto rebuilt = ir::compute(op->name, op->spatial, op->reduce, op->combiner, std::move(bodies));
      for (size_t o = 0; o < op->outputs.size(); ++o) renamed[op->outputs[o].get()] = rebuilt->outputs[o];
      op = std::move(rebuilt);
    }
    for (auto& out : outputs) {
      if (auto it = renamed.find(out.get()); it != renamed.end()) out = it->second;
    }
  }

  Status add_call(Task task, const std::vector<NodeId>& group,
                  const std::unordered_map<const ir::BufferNode*, ValueId>& value_of,
                  std::vector<ValueId> outputs) {
    Call call;
    for (const auto& buffer : task.workload.inputs()) call.inputs.push_back(value_of.at(buffer.get()));
    call.outputs = std::move(outputs);
    if (auto status = ir::verify(task.workload); !status.ok()) {
      return Error{ErrorCode::kUnsupported, task.nodes.empty() ? "" : task.nodes.front(),
                   status.error().message()};
    }
    const std::vector<int64_t> shape = task.workload.outputs.front()->shape;
    task.workload = ir::collapse_axes(task.workload);
    task.key = ir::structural_key(task.workload);
    auto [it, added] = table_.index.emplace(task.key, table_.tasks.size());
    if (added) {
      task.flops = ir::flop_count(task.workload);
      for (NodeId n : group) {
        task.name += (task.name.empty() ? "" : "_") + lower_case(graph_.nodes[n].op);
      }
      if (group.empty()) task.name = "copy";
      constexpr size_t kLongestName = 60;
      if (task.name.size() > kLongestName) task.name = task.name.substr(0, kLongestName) + "..";
      task.name += "_" + shape_text(shape);
      // The longest reduction distinguishes convolutions with the same output shape; a number
      // distinguishes the remaining ones.
      int64_t longest = 1;
      for (const auto& op : task.workload.operations) {
        int64_t points = 1;
        for (const auto& axis : op->reduce) points *= axis.extent;
        longest = std::max(longest, points);
      }
      if (longest > 1) task.name += "_r" + std::to_string(longest);
      if (const int seen = ++table_.names[task.name]; seen > 1) task.name += "_" + std::to_string(seen);
      table_.tasks.push_back(std::move(task));
    }
    call.task = it->second;
    call.turns = turns_;
    int& calls = table_.tasks[it->second].calls;
    calls = static_cast<int>(std::min<int64_t>(calls + turns_, std::numeric_limits<int>::max()));
    partition_.calls.push_back(std::move(call));
    return {};
  }

  // Inserts a call at the position, or behind the regions that are around it.
  void insert_call(size_t position, Call call) {
    for (const PlacedRegion& region : partition_.regions)
      if (region.begin < position && position < region.end) position = region.end;
    for (PlacedRegion& region : partition_.regions) {
      if (region.begin < position) continue;
      ++region.begin;
      ++region.end;
    }
    partition_.calls.insert(partition_.calls.begin() + static_cast<ptrdiff_t>(position), std::move(call));
  }

  // Each graph output must be written into the user's buffer. Of the outputs that share a storage, one is
  // written directly by the kernel that computes it: the output that is the storage's own value, or else
  // the first output. The others are copied, and so are outputs whose storage is an input or a constant.
  // A copy runs just after the last call that writes to the storage, or first if there is no such call.
  Status add_output_copies() {
    std::unordered_map<ValueId, ValueId> owner;  // by storage: the output that its memory belongs to
    for (ValueId input : graph_.inputs) owner.emplace(partition_.storage_of[input], input);
    for (ValueId output : graph_.outputs) {
      if (partition_.storage_of[output] == output) owner.emplace(output, output);
    }
    for (ValueId output : graph_.outputs) owner.emplace(partition_.storage_of[output], output);
    for (ValueId output : graph_.outputs) {
      const Value& value = graph_.values[output];
      const ValueId storage = partition_.storage_of[output];
      const bool constant = value.constant || graph_.values[storage].constant;
      if (!constant && owner.at(storage) == output) continue;
      const ValueId source_value = value.constant ? output : storage;
      WorkloadBuilder builder;
      ir::Buffer source =
          builder.placeholder(constant ? "weight" : "input", value.dtype, value.shape, constant);
      std::vector<ir::OperationRef> operations = builder.operations();
      operations.push_back(copy_of(source, "copy"));
      Task task;
      task.nodes.push_back(value.name);
      task.workload = prune(operations, {operations.back()->output()});
      TS_RETURN_IF_ERROR(add_call(std::move(task), {}, {{source.get(), source_value}}, {output}));
      Call copy = std::move(partition_.calls.back());
      partition_.calls.pop_back();
      size_t position = 0;
      for (size_t c = 0; c < partition_.calls.size(); ++c) {
        const auto& written = partition_.calls[c].outputs;
        if (std::any_of(written.begin(), written.end(),
                        [&](ValueId id) { return partition_.storage_of[id] == storage; })) {
          position = c + 1;
        }
      }
      insert_call(position, std::move(copy));
      partition_.storage_of[output] = output;
      partition_.storage_offset[output] = 0;
    }
    return {};
  }

  Graph& graph_;
  const PartitionOptions options_;
  TaskTable& table_;
  const int64_t turns_;
  Partition partition_;
  const IdVector<ValueId, int> uses_ = count_uses(graph_);
};

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out;
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? "x" : "") + std::to_string(shape[i]);
  return out.empty() ? "scalar" : out;
}

Result<Partition> partition(Graph& graph, const PartitionOptions& options) {
  TaskTable table;
  TS_ASSIGN_OR_RETURN(Partition partition, Partitioner(graph, options, table, 1).run());
  partition.tasks = std::move(table.tasks);
  return partition;
}

}  // namespace tensorsmith::graph
