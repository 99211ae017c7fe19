#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/tasks.h"
#include "ir/collapse_axes.h"
#include "ir/slice_workload.h"
#include "ir/structural.h"
#include "runtime/model_format.h"

namespace tensorsmith::graph {
namespace {

// Each part repeats every call in the compiled model, whose manifest has a size limit.
constexpr int64_t kMostParts = 64, kMostCalls = 20'000;
// Largest share of the unsplit batch's bytes for which splitting pays, since parts have costs that
// are not counted. The value was chosen by hand.
constexpr double kWorthSplitting = 0.9;

// Returns the leading extent that all inputs share; 0 if there is none.
int64_t batch_of(const Graph& graph) {
  int64_t images = 0;
  for (const ValueId id : graph.inputs) {
    const auto& shape = graph.values[id].shape;
    if (shape.empty() || (images != 0 && shape[0] != images)) return 0;
    images = shape[0];
  }
  return images;
}

// Returns whether parts of the user's tensors begin where buffers of kernels may begin.
bool aligned(const Graph& graph, int64_t parts) {
  const auto fits = [&](ValueId id) {
    return graph.values[id].bytes() % (parts * runtime::kBufferAlignment) == 0;
  };
  return std::all_of(graph.inputs.begin(), graph.inputs.end(), fits) &&
         std::all_of(graph.outputs.begin(), graph.outputs.end(), fits);
}

class BatchSplitter {
 public:
  BatchSplitter(Graph& graph, Partition& partition, int64_t parts)
      : graph_(graph), partition_(partition), images_(batch_of(graph)), parts_(parts) {}

  bool run() {
    if (parts_ < 2 || !partition_.regions.empty() || images_ < parts_ || images_ % parts_ != 0 ||
        !aligned(graph_, parts_) || !storages_are_whole() || !slice_tasks() || !check_constants())
      return false;
    apply();
    return true;
  }

 private:
  // Returns whether every value that a call accesses is all of its storage: parts of storages are
  // not handled.
  bool storages_are_whole() const {
    const auto whole = [&](ValueId id) {
      const ValueId storage = partition_.storage_of[id];
      return graph_.values[id].constant ||
             (!graph_.values[storage].constant && partition_.storage_offset[id] == 0 &&
              graph_.values[id].bytes() == graph_.values[storage].bytes() &&
              sliced(graph_.values[id].shape) && sliced(graph_.values[storage].shape));
    };
    return std::all_of(partition_.calls.begin(), partition_.calls.end(), [&](const Call& call) {
      if (!call.task) return false;  // routines are not split
      return std::all_of(call.inputs.begin(), call.inputs.end(), whole) &&
             std::all_of(call.outputs.begin(), call.outputs.end(), whole);
    });
  }

  // Returns the shape of a part.
  std::optional<std::vector<int64_t>> sliced(std::vector<int64_t> shape) const {
    for (int64_t& extent : shape) {
      if (extent == 1) continue;
      if (extent % images_ != 0) return {};
      extent /= parts_;
      return shape;
    }
    return {};
  }

  bool slice_tasks() {
    for (const Task& task : partition_.tasks) {
      auto slice = ir::slice_workload(task.workload, images_, parts_);
      if (!slice) return false;
      slice->workload = ir::collapse_axes(slice->workload);
      slices_.push_back(*std::move(slice));
    }
    return true;
  }

  // Constants that are read image by image must be equal for all images; then the part for one
  // image is extracted.
  bool check_constants() {
    for (const Call& call : partition_.calls) {
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        const Value& value = graph_.values[call.inputs[i]];
        if (!value.constant || !slices_[*call.task].sliced[i] || constant_parts_.contains(call.inputs[i]))
          continue;
        const auto shape = sliced(value.shape);
        if (!shape) return false;
        const auto& data = value.constant->data;
        const size_t image = data.size() / images_;
        if (!std::equal(data.begin() + image, data.end(), data.begin())) return false;
        auto part = std::make_shared<lower::Tensor>(*value.constant);
        part->shape = *shape;
        part->data.resize(data.size() / parts_);
        constant_parts_.emplace(call.inputs[i], Value{value.name, value.dtype, *shape, std::move(part)});
      }
    }
    return true;
  }

  ValueId append(Value value, ValueId storage, int64_t offset) {
    const ValueId id = graph_.values.push_back(std::move(value));
    partition_.storage_of.push_back(storage == kNoValue ? id : storage);
    partition_.storage_offset.push_back(offset);
    return id;
  }

  // Returns the value of a part that stands for `id`.
  ValueId part_value(ValueId id, int64_t part, std::map<ValueId, ValueId>& made) {
    if (const auto at = made.find(id); at != made.end()) return at->second;
    const Value& value = graph_.values[id];
    const ValueId storage = partition_.storage_of[id];
    Value next{value.name, value.dtype, *sliced(value.shape), nullptr};
    const int64_t bytes = next.bytes();
    ValueId result = kNoValue;
    if (users_.contains(storage)) {
      result = append(std::move(next), storage, part * bytes);
    } else if (storage == id) {
      result = append(std::move(next), kNoValue, 0);
    } else {
      result = append(std::move(next), part_value(storage, part, made), 0);
    }
    made.emplace(id, result);
    return result;
  }

  void slice_task(Task& task, const ir::Workload& workload, const std::vector<int64_t>& shape) {
    const std::string before = "_" + shape_text(shape);
    if (const size_t at = task.name.find(before); at != std::string::npos)
      task.name.replace(at, before.size(), "_" + shape_text(*sliced(shape)));
    std::string name = task.name;
    for (int n = 2; !names_.insert(name).second; ++n) name = task.name + "_" + std::to_string(n);
    task.name = std::move(name);
    task.workload = workload;
    task.flops = ir::flop_count(workload);
    task.calls = 0;
  }

  void apply() {
    for (const auto& list : {graph_.inputs, graph_.outputs}) {
      for (const ValueId id : list) users_.insert(partition_.storage_of[id]);
    }
    std::map<ValueId, ValueId> constants;
    for (auto& [id, value] : constant_parts_) constants[id] = append(std::move(value), kNoValue, 0);
    const std::vector<Call> calls = std::move(partition_.calls);
    // Tasks that differed only in their batches are now the same.
    std::vector<Task> tasks;
    std::map<std::string, size_t> known;
    std::map<size_t, size_t> place;  // by old task
    for (const Call& call : calls) {
      if (place.contains(*call.task)) continue;
      const ir::Workload& workload = slices_[*call.task].workload;
      const auto [at, fresh] = known.emplace(ir::structural_key(workload), tasks.size());
      place[*call.task] = at->second;
      if (!fresh) continue;
      Task task = std::move(partition_.tasks[*call.task]);
      task.key = at->first;
      slice_task(task, workload, graph_.values[call.outputs[0]].shape);
      tasks.push_back(std::move(task));
    }
    partition_.tasks = std::move(tasks);
    partition_.calls.clear();
    for (int64_t part = 0; part < parts_; ++part) {
      std::map<ValueId, ValueId> made;
      for (const Call& call : calls) {
        Call next;
        next.task = place.at(*call.task);
        for (size_t i = 0; i < call.inputs.size(); ++i) {
          const ValueId id = call.inputs[i];
          next.inputs.push_back(!graph_.values[id].constant     ? part_value(id, part, made)
                                : slices_[*call.task].sliced[i] ? constants.at(id)
                                                                : id);
        }
        for (const ValueId id : call.outputs) next.outputs.push_back(part_value(id, part, made));
        ++partition_.tasks[*next.task].calls;
        partition_.calls.push_back(std::move(next));
      }
    }
  }

  Graph& graph_;
  Partition& partition_;
  const int64_t images_, parts_;
  std::vector<ir::WorkloadSlice> slices_;  // by task
  std::map<ValueId, Value> constant_parts_;
  std::set<std::string> names_;
  std::set<ValueId> users_;  // storages that are the model's inputs and outputs
};

}  // namespace

int64_t parts_of_batch(const Graph& graph, const Partition& partition, int64_t cache_bytes) {
  std::set<ValueId> constants;
  double weights = 0;
  std::vector<std::pair<int64_t, int64_t>> calls;  // footprint, traffic
  for (const Call& call : partition.calls) {
    int64_t read = 0, written = 0;
    for (const ValueId id : call.inputs) {
      const Value& value = graph.values[id];
      if (!value.constant) {
        read += value.bytes();
      } else if (constants.insert(id).second) {
        weights += value.bytes();
      }
    }
    for (const ValueId id : call.outputs) written += graph.values[id].bytes();
    // Written memory is fetched first.
    calls.emplace_back(read + written, read + 2 * written);
  }
  const int64_t images = batch_of(graph);
  const auto most = std::min({images, kMostParts, kMostCalls / std::max<int64_t>(1, std::ssize(calls))});
  const auto bytes_in = [&](int64_t parts) {
    double bytes = parts * weights;
    for (const auto& [footprint, traffic] : calls)
      if (footprint / parts > cache_bytes) bytes += traffic;
    return bytes;
  };
  int64_t best = 1;
  double least = kWorthSplitting * bytes_in(1);
  for (int64_t parts = 2; parts <= most; ++parts) {
    if (images % parts != 0 || !aligned(graph, parts)) continue;
    const double bytes = bytes_in(parts);
    if (bytes >= least) continue;
    least = bytes;
    best = parts;
  }
  return best;
}

bool split_batch(Graph& graph, Partition& partition, int64_t parts) {
  return BatchSplitter(graph, partition, parts).run();
}

}  // namespace tensorsmith::graph
