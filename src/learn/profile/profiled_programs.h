// Measured programs with their profiler counters, read from record databases.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "learn/cost_model.h"

namespace tensorsmith::learn {

struct ProfiledProgram {
  size_t task = 0;  // index in ProfiledPrograms
  std::string record;
  sched::Trace trace;
  double seconds = 0;  // from a repeated measurement, else the fastest repeat of the record
  std::map<std::string, double> counters;
  std::vector<float> profile;  // feature::cpu_profile_row, or gpu_profile_row for Nsight Compute's counters
  std::vector<float> summary;  // learn::static_row; empty for GPUs
  feature::LeafFeatures leaves;
  feature::FeatureMatrix per_store;
};

struct ProfiledPrograms {
  target::Device device;
  std::string profiler;
  std::vector<StoredWorkload> tasks;
  std::vector<ProfiledProgram> programs;
  // A line for each reason why profiled programs of the databases are not among these, with their number.
  std::vector<std::string> left_out;

  std::vector<size_t> of_task(size_t task) const;
  // Returns a query for any kind of model; it points into this object.
  ProgramQuery query(size_t program) const;
  // Keeps only the wanted tasks and their programs, so that a model's card names what the model has
  // seen.
  void keep(const std::function<bool(const StoredWorkload&)>& wanted);
};

// Reads the successful records of one device with their profiles by `profiler`, and times that were
// measured again by `timing`. Records that were abandoned after one reading are used only if they
// have such a time. If the databases have records of several devices, uses the device with the most
// profiles. kNotFound if nothing was profiled, or nothing of it can be used.
Result<ProfiledPrograms> read_profiled_programs(const std::vector<std::string>& databases,
                                                const std::string& profiler, const std::string& timing);

// Returns the card of a model trained on these programs, without metrics.
ModelCard card_of_profiles(const ProfiledPrograms& data, const std::string& kind, uint64_t seed);
// Returns the error that explains why a model of this kind cannot be trained on stores.
Error needs_profiles(const std::string& kind);

}  // namespace tensorsmith::learn
