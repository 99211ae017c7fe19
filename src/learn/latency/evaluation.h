// How good predicted seconds are. A task is a workload on a device.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "learn/training.h"

namespace tensorsmith::learn {

// Failed programs have no seconds: they are counted and left out of everything else. 0 where nothing was
// measured.
struct Scores {
  int64_t records = 0;  // measured
  int64_t failed = 0;
  int64_t tasks = 0;       // with a measured program
  double mape = 0;         // mean of |predicted - measured| / measured; 0.1 is 10 %
  double mape_median = 0;  // median of the same
  double rmse = 0;         // seconds
  double rmse_log = 0;     // of the natural logarithm
  // TenSet's (learn/metrics.h), each task with weight 1: sum of the tasks' fastest seconds / sum of the
  // fastest among the 1 or 5 programs that were predicted fastest.
  double top1 = 0, top5 = 0;
  // Means over the tasks: TenSet's peak@k, and the share of pairs in the right order.
  double peak1 = 0, peak5 = 0;
  double pairwise = 0;
};

class Evaluation {
 public:
  // measured: seconds; +inf: failed.
  void add(const StoredWorkload& workload, const std::string& device, double measured,
           const Prediction& predicted);
  Scores total() const;
  // By StoredWorkload::name and by device, in the names' order.
  std::vector<std::pair<std::string, Scores>> by_operator() const;
  std::vector<std::pair<std::string, Scores>> by_device() const;
  // Workloads that were added and are among the given keys (ascending: ModelCard::workloads).
  int64_t seen_workloads(const std::vector<std::string>& keys) const;
  int64_t workloads() const;

  // Standard deviation of log(measured / predicted) as a normal would have it that covers as much: the
  // 0.6827-quantile of its absolute value. 0 where nothing was measured.
  double log_sigma() const;
  // Share of the measured programs within the intervals that their predictions claim to hold 68.27 and 95.45
  // % (one and two standard deviations of a normal distribution), and 90 %. Of those that claim any.
  std::pair<double, double> coverage() const;
  double coverage90() const;
  int64_t without_interval() const;  // measured programs whose prediction claims none

 private:
  struct Item {
    double measured = 0, predicted = 0, ranked = 0, log_sigma = 0, half90 = 0, half95 = 0;
  };
  struct Task {
    std::string workload, name, device;
    int64_t failed = 0;
    std::vector<Item> items;
  };
  template <class Key>
  std::vector<std::pair<std::string, Scores>> grouped(Key key) const;
  double inside(double Item::* half_width) const;

  std::map<std::pair<std::string, std::string>, size_t> numbers_;  // workload, device -> tasks_
  std::vector<Task> tasks_;
};

// The records that have features; a record's device is called as devices has it.
Result<Evaluation> evaluate_records(const CostModel& model, const Store& store,
                                    std::span<const target::Device* const> devices,
                                    std::span<const int64_t> records);

// Models that rank only have no errors in seconds: null.
nlohmann::ordered_json to_json(const Scores& scores, bool ranks_only);

// What a card keeps of a model: its scores on the validation part, as the text of a JSON object. "{}" where
// there is none.
Result<std::string> validation_metrics(const CostModel& model, const TrainingData& data);

}  // namespace tensorsmith::learn
