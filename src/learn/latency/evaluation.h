// Metrics of predicted seconds. A task is a workload on a device.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "learn/training.h"

namespace tensorsmith::learn {

// Failed programs have no seconds; they are counted and otherwise ignored. Metrics are 0 if nothing
// was measured.
struct Scores {
  int64_t records = 0;  // measured programs
  int64_t failed = 0;
  int64_t tasks = 0;       // tasks with at least one measured program
  double mape = 0;         // mean of |predicted - measured| / measured; 0.1 is 10 %
  double mape_median = 0;  // median of the same ratio
  double rmse = 0;         // in seconds
  double rmse_log = 0;     // root mean square of log(predicted / measured)
  // TenSet's top-1 and top-5 scores (learn/metrics.h), each task with weight 1: sum of the tasks'
  // fastest seconds / sum of the fastest seconds among the 1 or 5 programs that were predicted
  // fastest.
  double top1 = 0, top5 = 0;
  // Means over the tasks: TenSet's peak@1 and peak@5, and the share of pairs that are ranked
  // correctly.
  double peak1 = 0, peak5 = 0;
  double pairwise = 0;
};

class Evaluation {
 public:
  // measured: seconds, or +inf for a program that failed.
  void add(const StoredWorkload& workload, const std::string& device, double measured,
           const Prediction& predicted);
  Scores total() const;
  // Scores for each StoredWorkload::name and for each device, sorted by name.
  std::vector<std::pair<std::string, Scores>> by_operator() const;
  std::vector<std::pair<std::string, Scores>> by_device() const;
  // Counts the added workloads whose key is in `keys` (sorted in ascending order, like
  // ModelCard::workloads).
  int64_t seen_workloads(const std::vector<std::string>& keys) const;
  int64_t workloads() const;

  // Standard deviation of the normal distribution that covers log(measured / predicted) equally
  // well at one sigma: the 0.6827-quantile of its absolute value. 0 if nothing was measured.
  double log_sigma() const;
  // Shares of the measured programs that lie within their predicted intervals: coverage() for the
  // intervals of nominally 68.27 % and 95.45 % (one and two standard deviations of a normal
  // distribution), coverage90() for those of nominally 90 %. Programs whose prediction has no
  // interval are left out.
  std::pair<double, double> coverage() const;
  double coverage90() const;
  int64_t without_interval() const;  // measured programs whose prediction has no interval

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

  std::map<std::pair<std::string, std::string>, size_t> numbers_;  // (workload, device) -> index in tasks_
  std::vector<Task> tasks_;
};

// Evaluates the model on those of the records that have features. `devices` gives the name of each
// device.
Result<Evaluation> evaluate_records(const CostModel& model, const Store& store,
                                    std::span<const target::Device* const> devices,
                                    std::span<const int64_t> records);

// Writes null for all errors in seconds if the model only ranks.
nlohmann::ordered_json to_json(const Scores& scores, bool ranks_only);

// Returns the metrics that are kept in a model's card: its scores on the validation part, as the
// text of a JSON object. "{}" if there is no validation part.
Result<std::string> validation_metrics(const CostModel& model, const TrainingData& data);

}  // namespace tensorsmith::learn
