// Which records of a store train a model, choose it and test it: made once, stored, and never changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/dataset/choose_tasks.h"
#include "learn/dataset/store.h"

namespace tensorsmith::learn {

enum class Part : uint8_t { kTrain, kValidation, kTest, kUnused };
std::string_view to_string(Part part);  // "train", "validation", "test", "unused"

enum class SplitKind : uint8_t {
  kWithinTask,  // every task is in every part; equal programs are in one part, whatever their device
  kByTask,    // equal workloads are in one part, whatever their device: a test task's labels were never seen
  kByDevice,  // the test devices' records test; the others train and validate, split by program
  // As by-device, but some tasks of each test device train and validate too, split by program: what could be
  // measured on a new device. Its other tasks test.
  kFewTasks,
};
std::string_view to_string(SplitKind kind);  // "within-task", "by-task", "by-device", "few-tasks"
Result<SplitKind> parse_split_kind(const std::string& name);

struct SplitOptions {
  SplitKind kind = SplitKind::kWithinTask;
  double validation = 0.1, test = 0.1;    // shares; of by-device and few-tasks only validation counts
  std::vector<std::string> test_devices;  // by-device, few-tasks
  int profile_tasks = 20;                 // few-tasks: of each test device
  TaskChoice choice = TaskChoice::kMedoids;
  // few-tasks: these workloads (StoredWorkload::key) instead; profile_tasks and choice do not count then.
  std::vector<std::string> profiled;
  uint64_t seed = 0;
  // Tasks with fewer measured programs on a device are unused there; by-task splits of TenSet use 48.
  int64_t min_records = 0;
};

struct Split {
  SplitOptions options;
  std::string store_hash;   // Store::content_hash
  std::vector<Part> parts;  // by record

  std::vector<int64_t> records_of(Part part) const;  // ascending
  // Of store and parts, 32 hex digits: which split a model was trained by.
  std::string content_hash() const;
};

// Depends on the store's contents and the options alone. Failed programs without features are unused. Errors:
// kInvalidArgument for shares that leave nothing to train on, kNotFound for an unknown device or workload.
Result<Split> make_split(const Store& store, const SplitOptions& options);

// Ok if the split is one of this store (kMismatch) and its parts share nothing that its kind keeps apart:
// programs, workloads, or devices (kInvalidArgument).
Status check_split(const Store& store, const Split& split);

// Replaces the file at once or not at all.
Status save_split(const Split& split, const std::string& path);
Result<Split> load_split(const std::string& path);

}  // namespace tensorsmith::learn
