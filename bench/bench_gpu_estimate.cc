// Compares the estimate of GPU programs with times measured by others: Ansor's records of programs with
// tiles in shared memory, which make the same decisions as our gpu_tiled plans.
//
//   bench_gpu_estimate DEVICE WORKLOADS RECORDS [DEVICE WORKLOADS RECORDS ...]
//       WORKLOADS: the computations by key (JSON); RECORDS: a file of record lines, or - for standard
//       input.
//   bench_gpu_estimate records DEVICE DATABASE
//       uses our own programs, which `tune` or `dataset collect` measured.
//
// Prints for each task and network: how many programs the space refuses; for the other
// programs, the rank correlation of estimates and times and the share of pairs that the estimate orders
// correctly; and for the program with the least estimate, its time divided by the best time of all
// programs, and log(measured / estimated). The same follows for all devices together, with and without
// NASNet, to which constants were fitted; error_sigma and error_90 of space/estimate/gpu_constants.h
// are from there.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "ir/text.h"
#include "record/ansor/workloads.h"
#include "record/database.h"
#include "space/design_space.h"

namespace tensorsmith {
namespace {

// Returns the lengths of the trace's first splits, one list for each axis of the operation, spatial axes
// first. Returns an empty list if the splits are not those of Ansor's tiles (4 parts for a spatial axis,
// 2 for one of the reduction).
std::vector<std::vector<int64_t>> tile_lengths(const sched::Trace& trace, const ir::Operation& op) {
  std::vector<std::vector<int64_t>> lengths;
  constexpr size_t kSpatialParts = 4, kReduceParts = 2;
  for (const auto& step : trace.steps) {
    const auto* split = std::get_if<sched::Split>(&step);
    if (split == nullptr || lengths.size() == op.spatial.size() + op.reduce.size()) continue;
    const size_t parts = lengths.size() < op.spatial.size() ? kSpatialParts : kReduceParts;
    if (split->lengths.size() != parts) return {};
    lengths.push_back(split->lengths);
  }
  if (lengths.size() != op.spatial.size() + op.reduce.size()) return {};
  return lengths;
}

// Returns the vector widths with which the operands are copied to shared memory, the first operand's
// first. They are the lengths of the splits after the first `skip`, in which the later operand comes first.
std::vector<int64_t> copy_widths(const sched::Trace& trace, size_t skip) {
  std::vector<int64_t> widths;
  for (const auto& step : trace.steps) {
    const auto* split = std::get_if<sched::Split>(&step);
    if (split == nullptr) continue;
    if (skip > 0) {
      --skip;
    } else if (split->lengths.size() == 1 && split->inner_to_outer) {
      widths.push_back(split->lengths.front());
    }
  }
  std::reverse(widths.begin(), widths.end());
  return widths;
}

// Returns the rank of each value in ascending order; equal values get the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (size_t i = 0, j = 0; i < order.size(); i = j) {
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (size_t k = i; k < j; ++k) result[order[k]] = static_cast<double>(i + j - 1) / 2;
  }
  return result;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = static_cast<double>(a.size());
  double sum_a = 0, sum_b = 0, aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum_a += a[i];
    sum_b += b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
  }
  const double variance = (aa - sum_a * sum_a / n) * (bb - sum_b * sum_b / n);
  return variance > 0 ? (ab - sum_a * sum_b / n) / std::sqrt(variance) : 0;
}

// Estimates and measured times of the programs of one task.
class Measured {
 public:
  void add(double estimate, double seconds) {
    best_ = std::min(best_, seconds);
    if (std::isfinite(estimate)) {
      estimates_.push_back(estimate);
      seconds_.push_back(seconds);
    } else {
      ++refused_;
    }
  }

  size_t programs() const { return seconds_.size() + refused_; }
  size_t refused() const { return refused_; }
  double pairs() const {
    double right = 0, all = 0;
    for (size_t i = 0; i < seconds_.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        right += (seconds_[i] < seconds_[j]) == (estimates_[i] < estimates_[j]) ? 1 : 0;
        all += 1;
      }
    return all > 0 ? right / all : 1;
  }
  double rank_correlation() const { return correlation(ranks(estimates_), ranks(seconds_)); }
  // Time of the program with the least estimate, divided by the best time of all programs.
  double top() const { return seconds_.empty() ? 1 : seconds_[thought_fastest()] / best_; }
  // log(measured / estimated) of the program with the least estimate: the error of a prediction that
  // uses the estimate.
  double log_error() const {
    return seconds_.empty() ? 0 : std::log(seconds_[thought_fastest()] / estimates_[thought_fastest()]);
  }
  double best_allowed() const {
    return seconds_.empty() ? 1 : *std::min_element(seconds_.begin(), seconds_.end()) / best_;
  }

 private:
  size_t thought_fastest() const {
    return static_cast<size_t>(std::min_element(estimates_.begin(), estimates_.end()) - estimates_.begin());
  }

  std::vector<double> estimates_, seconds_;  // for programs that the space accepts
  size_t refused_ = 0;
  double best_ = INFINITY;
};

class Task : public Measured {
 public:
  Task(const record::AnsorWorkloads::Task& task, space::DesignSpace space)
      : name_(task.key), space_(std::move(space)) {
    for (const auto& op : task.workload.operations)
      if (op->has_reduction()) op_ = op.get();
    for (size_t k = 0; k < space_.num_sketches(); ++k)
      if (space_.describe(static_cast<int>(k)).starts_with("tile SSSRRSRS")) {
        sketch_ = static_cast<int>(k);
        break;
      }
  }

  const std::string& name() const { return name_; }
  bool usable() const { return op_ != nullptr && sketch_ >= 0; }

  void add(const record::AnsorRecord& record) {
    const auto lengths = tile_lengths(record.trace, *op_);
    if (lengths.empty()) return;
    Measured::add(space_.estimate(candidate(record.trace, lengths)), record.mean_seconds());
  }

 private:
  space::Candidate candidate(const sched::Trace& trace,
                             const std::vector<std::vector<int64_t>>& lengths) const {
    const size_t rank = op_->spatial.size();
    const auto widths = copy_widths(trace, lengths.size());
    space::Candidate c;
    c.sketch = sketch_;
    int64_t points = 1;
    for (size_t r = rank; r < lengths.size(); ++r) points *= lengths[r].back();
    size_t copies = 0;
    for (const auto& slot : space_.slots(sketch_)) {
      if (slot.kind == space::DecisionKind::kTileLengths) {
        for (size_t a = 0; a < lengths.size(); ++a) {
          const auto& axis = a < rank ? op_->spatial[a] : op_->reduce[a - rank];
          if (slot.name == op_->name + ".tile." + axis.var.name())
            c.decisions.insert(c.decisions.end(), lengths[a].begin(), lengths[a].end());
        }
      } else if (slot.name.ends_with(".unroll")) {
        c.decisions.push_back(points <= 1 ? 0 : points <= 4 ? 1 : points <= 16 ? 2 : 3);
      } else if (slot.name.ends_with(".vectorize")) {
        const int64_t width = copies - 1 < widths.size() ? widths[copies - 1] : 1;
        c.decisions.push_back(width == 2 ? 1 : width == 4 ? 2 : 0);
      } else if (slot.name.find(".shared.") != std::string::npos && !slot.name.ends_with(".align")) {
        ++copies;
        c.decisions.push_back(1);
      } else {
        c.decisions.push_back(0);
      }
    }
    return c;
  }

  std::string name_;
  space::DesignSpace space_;
  const ir::Operation* op_ = nullptr;
  int sketch_ = -1;
};

// Returns the network of Roller's artifact that a workload belongs to. NASNet is recognized by its
// depthwise convolutions and its channels, which are 96 or multiples of 42.
constexpr const char* kFitted = "NASNet";
std::string network_of(const std::string& key) {
  if (key.find("depthwise") != std::string::npos) return kFitted;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < key.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(key[i])) == 0) continue;
    if (i > 0 && std::isalnum(static_cast<unsigned char>(key[i - 1])) != 0) continue;
    numbers.push_back(std::atoll(key.c_str() + i));
  }
  if (key.find("matmul") != std::string::npos)
    return numbers.size() > 1 && numbers[1] == 4032 ? kFitted
           : numbers.front() == 65536               ? "BERT"
                                                    : "ResNet-50";
  if (key.find("conv2d_layer") == std::string::npos || numbers.size() < 3) return "ResNet-50";
  const bool first = numbers[1] == 3 && numbers[2] == 331;
  return numbers[1] % 42 == 0 || numbers[1] == 96 || first ? kFitted : "ResNet-50";
}

struct Mean {
  double tasks = 0, programs = 0, refused = 0, ranks = 0, pairs = 0, log_top = 0, log_allowed = 0;
  std::vector<double> errors;
  void add(const Measured& task) {
    tasks += 1;
    programs += static_cast<double>(task.programs());
    refused += static_cast<double>(task.refused());
    ranks += task.rank_correlation();
    pairs += task.pairs();
    log_top += std::log(task.top());
    log_allowed += std::log(task.best_allowed());
    if (task.programs() > task.refused()) errors.push_back(task.log_error());
  }
  void print(const std::string& name) const {
    std::printf(
        "%-10s %.0f tasks, %.0f programs, refused %.3f, rank correlation %.3f, pairs %.3f, chosen/best %.2f, "
        "best allowed/best %.2f\n",
        name.c_str(), tasks, programs, refused / programs, ranks / tasks, pairs / tasks,
        std::exp(log_top / tasks), std::exp(log_allowed / tasks));
    if (errors.empty()) return;
    std::vector<double> sizes;
    double sum = 0, squares = 0;
    for (const double error : errors) {
      sum += error;
      squares += error * error;
      sizes.push_back(std::abs(error));
    }
    std::sort(sizes.begin(), sizes.end());
    const auto n = static_cast<double>(errors.size());
    const auto most = static_cast<size_t>(std::ceil(.9 * n)) - 1;
    std::printf(
        "%-10s log(measured / estimated) of what it thinks fastest: mean %.3f, rms %.3f, 90 %% within %.3f\n",
        name.c_str(), sum / n, std::sqrt(squares / n), sizes[most]);
  }
};

void print_task(const Measured& task, const std::string& name) {
  std::printf(
      "%zu programs, %zu refused, rank correlation %.3f, pairs %.3f, chosen/best %.2f, best allowed/best "
      "%.2f, log error %.3f  %s\n",
      task.programs(), task.refused(), task.rank_correlation(), task.pairs(), task.top(), task.best_allowed(),
      task.log_error(), name.c_str());
}

// Means over all devices.
struct Pool {
  Mean all, not_fitted;
};

int fail(const Error& error) {
  std::fprintf(stderr, "bench_gpu_estimate: %s\n", error.message().c_str());
  return 1;
}

// Evaluates the records whose decisions give the recorded trace in this version's design space.
int run_records(const std::string& device_name, const std::string& path) {
  const auto device = target::find_device(device_name);
  if (!device.ok()) return fail(device.error());
  const auto database = record::Database::open_read_only(path);
  if (!database.ok()) return fail(database.error());
  const auto tasks = (*database)->tasks();
  if (!tasks.ok()) return fail(tasks.error());
  Mean all;
  for (const record::TaskInfo& task : *tasks) {
    const auto workload = ir::parse_workload(task.text);
    if (!workload.ok()) return fail(workload.error());
    const auto space = space::DesignSpace::build(*workload, *device, {});
    if (!space.ok()) return fail(space.error());
    Measured measured;
    const Status read = (*database)->for_each([&](const record::Record& record) -> Status {
      const auto& point = record.candidate.point;
      if (record.task_key != task.key || !record.result.ok() || !point) return {};
      const space::Candidate candidate{point->sketch, point->decisions};
      const auto trace = space->to_trace(candidate);
      if (trace.ok() && sched::print(*trace) == record.trace)
        measured.add(space->estimate(candidate), record.result.best_estimate());
      return {};
    });
    if (!read.ok()) return fail(read.error());
    if (measured.programs() == 0) continue;
    all.add(measured);
    print_task(measured, task.name);
  }
  all.print("all");
  return 0;
}

int run(const std::string& device_name, const std::string& workloads_path, const std::string& records_path,
        Pool& pool) {
  const auto device = target::find_device(device_name);
  if (!device.ok()) return fail(device.error());
  const auto workloads = record::AnsorWorkloads::load(workloads_path);
  if (!workloads.ok()) return fail(workloads.error());
  std::ifstream file;
  if (records_path != "-") file.open(records_path);
  std::istream& in = records_path == "-" ? std::cin : file;
  std::map<std::string, std::unique_ptr<Task>> tasks;
  record::AnsorRecord record;
  for (std::string line; std::getline(in, line);) {
    if (const Status status = record::parse_ansor_record(line, record); !status.ok())
      return fail(status.error());
    if (record.failed() || record.unmeasured()) continue;
    auto& task = tasks[record.workload_key];
    if (task == nullptr) {
      const auto replayed = workloads->replay(record);
      if (!replayed.ok()) return fail(replayed.error());
      auto space = space::DesignSpace::build(replayed->task->workload, *device, {});
      if (!space.ok()) return fail(space.error());
      task = std::make_unique<Task>(*replayed->task, std::move(*space));
    }
    if (task->usable()) task->add(record);
  }
  std::map<std::string, Mean> networks;
  for (const auto& [key, task] : tasks) {
    if (!task->usable() || task->programs() == 0) continue;
    const std::string network = network_of(key);
    networks[network].add(*task);
    pool.all.add(*task);
    if (network != kFitted) pool.not_fitted.add(*task);
    print_task(*task, key);
  }
  for (const auto& [name, mean] : networks) mean.print(name);
  return 0;
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "records") return tensorsmith::run_records(argv[2], argv[3]);
  if (argc < 4 || argc % 3 != 1) {
    std::fprintf(stderr,
                 "usage: bench_gpu_estimate DEVICE WORKLOADS RECORDS [DEVICE WORKLOADS RECORDS ...]\n"
                 "       bench_gpu_estimate records DEVICE DATABASE\n");
    return 2;
  }
  tensorsmith::Pool pool;
  for (int i = 1; i < argc; i += 3)
    if (const int code = tensorsmith::run(argv[i], argv[i + 1], argv[i + 2], pool); code != 0) return code;
  pool.all.print("all");
  pool.not_fitted.print("not fitted");
}
