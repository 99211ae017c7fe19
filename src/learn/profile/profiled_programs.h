// Measured programs with what a profiler counted of them, of record databases.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "feature/per_store.h"
#include "learn/dataset/store.h"
#include "target/target.h"

namespace tensorsmith::learn {

struct ProfiledProgram {
  size_t task = 0;  // in ProfiledPrograms
  std::string record;
  std::string trace;
  double seconds = 0;  // measured again, or of the fastest repeat of the record
  std::map<std::string, double> counters;
  std::vector<float> profile;  // feature::cpu_profile_row, or gpu_profile_row of Nsight Compute's counters
  std::vector<float> summary;  // learn::static_row; empty for GPUs
  feature::FeatureMatrix per_store;
};

struct ProfiledPrograms {
  target::Device device;
  std::vector<StoredWorkload> tasks;
  std::vector<ProfiledProgram> programs;
  int64_t without_profile = 0;        // records that were not profiled
  std::vector<std::string> problems;  // of records that were left out, at most 20

  std::vector<size_t> of_task(size_t task) const;
};

// Successful records of one device with their profiles by this profiler, and times that were measured again by the other
// one. Records that were given up after one reading need these. Databases with records of several devices:
// those of the one with the most profiles. kNotFound where nothing was profiled.
Result<ProfiledPrograms> read_profiled_programs(const std::vector<std::string>& databases,
                                                const std::string& profiler, const std::string& timing);

}  // namespace tensorsmith::learn
