// Functions that the imports of all other tuners' records share.
#pragma once

#include <cmath>
#include <map>

#include "learn/dataset/import.h"

namespace tensorsmith::learn {

// Adds records to a store, with the workloads that they refer to, and counts them.
class ForeignRecords {
 public:
  ForeignRecords(StoreWriter& writer, const ImportOptions& options) : writer_(writer), options_(options) {}

  // Sets the record's workload. The tasks must live as long as this object.
  Status add(const record::ForeignTask& task, StoreRecord& record) {
    const auto [it, added] = numbers_.emplace(&task, 0);
    if (added) it->second = writer_.add_workload(stored_workload(task));
    record.workload = it->second;
    ++report_.records;
    report_.failed += std::isfinite(record.mean_seconds) ? 0 : 1;
    TS_RETURN_IF_ERROR(writer_.add(record));
    if (options_.progress && report_.records % 4096 == 0) options_.progress(report_);
    return {};
  }
  void add_problem(const ImportProblem& problem) { report_.add_problem(problem); }

  // Writes the store to disk.
  Result<ImportReport> finish() {
    if (report_.records == 0 && options_.allow_empty) TS_RETURN_IF_ERROR(options_.allow_empty());
    TS_RETURN_IF_ERROR(writer_.finish());
    return report_;
  }

 private:
  StoreWriter& writer_;
  const ImportOptions& options_;
  ImportReport report_;
  std::map<const record::ForeignTask*, uint32_t> numbers_;
};

}  // namespace tensorsmith::learn
