// Detects records that cannot be true, or do not hold on this machine, and warns once per run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/sinks.h"
#include "record/record.h"

namespace tensorsmith::search {

class RecordDoubts {
 public:
  // Adds a task with the least time that any of its programs can have on the device.
  void add_task(std::string name, double least_seconds) {
    names_.push_back(std::move(name));
    least_seconds_.push_back(least_seconds);
  }
  // Returns whether a record of the task can be true.
  bool is_believed(size_t task, const record::MeasureResult& result);
  // Reports that a record that claims `claimed` seconds was measured again.
  void ran_again(size_t task, double claimed, const record::MeasureResult& result);
  // Logs each kind of warning at most once in the life of this object.
  void warn(LogSink& log);

 private:
  struct Doubt {
    int64_t count = 0;
    std::string first;
    bool said = false;
  };
  std::vector<std::string> names_;
  std::vector<double> least_seconds_;
  Doubt implausible_, contradicted_;
};

}  // namespace tensorsmith::search
