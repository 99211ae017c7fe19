// Measured programs with what a profiler counted of them, of record databases.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "learn/cost_model.h"

namespace tensorsmith::learn {

struct ProfiledProgram {
  size_t task = 0;  // in ProfiledPrograms
  std::string record;
  sched::Trace trace;
  double seconds = 0;  // measured again, or of the fastest repeat of the record
  std::map<std::string, double> counters;
  std::vector<float> profile;  // feature::cpu_profile_row, or gpu_profile_row of Nsight Compute's counters
  std::vector<float> summary;  // learn::static_row; empty for GPUs
  feature::LeafFeatures leaves;
  feature::FeatureMatrix per_store;
};

struct ProfiledPrograms {
  target::Device device;
  std::string profiler;
  std::vector<StoredWorkload> tasks;
  std::vector<ProfiledProgram> programs;
  int64_t without_profile = 0;        // records that were not profiled
  std::vector<std::string> problems;  // of records that were left out, at most 20

  std::vector<size_t> of_task(size_t task) const;
  // For any kind of model; points into this.
  ProgramQuery query(size_t program) const;
  // Leaves out the tasks that are not wanted, with their programs: a model's card tells what it has seen.
  void keep(const std::function<bool(const StoredWorkload&)>& wanted);
};

// Successful records of one device with their profiles by this profiler, and times that were measured again by the other
// one. Records that were given up after one reading need these. Databases with records of several devices:
// those of the one with the most profiles. kNotFound where nothing was profiled.
Result<ProfiledPrograms> read_profiled_programs(const std::vector<std::string>& databases,
                                                const std::string& profiler, const std::string& timing);

// Of a model that learnt from these programs: all but metrics.
ModelCard card_of_profiles(const ProfiledPrograms& data, const std::string& kind, uint64_t seed);
// Why there is no trainer of such a kind on stores.
Error needs_profiles(const std::string& kind);

}  // namespace tensorsmith::learn
