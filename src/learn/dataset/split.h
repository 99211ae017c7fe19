// Assigns the records of a store to training, validation and test. A split is made once, stored and
// never changed.
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
  kWithinTask,  // every task is in every part; equal programs, even on different devices, share a part
  kByTask,      // equal workloads, even on different devices, share a part: no label of a test task is seen
  kByDevice,    // test: the records of the test devices; the others are split by program
  // Like by-device, but some tasks of each test device are in training and validation too, split by
  // program. They represent what could be measured on a new device. The device's other tasks are
  // the test part.
  kFewTasks,
};
std::string_view to_string(SplitKind kind);  // "within-task", "by-task", "by-device", "few-tasks"
Result<SplitKind> parse_split_kind(const std::string& name);

struct SplitOptions {
  SplitKind kind = SplitKind::kWithinTask;
  double validation = 0.1, test = 0.1;    // shares; by-device and few-tasks use only `validation`
  std::vector<std::string> test_devices;  // for by-device and few-tasks
  int profile_tasks = 20;                 // few-tasks: number of tasks of each test device
  TaskChoice choice = TaskChoice::kMedoids;
  // few-tasks: uses these workloads (StoredWorkload::key) instead of profile_tasks and choice.
  std::vector<std::string> profiled;
  uint64_t seed = 0;
  // A task with fewer measured programs on a device is unused there. TenSet's by-task splits use
  // 48.
  int64_t min_records = 0;
};

struct Split {
  SplitOptions options;
  std::string store_hash;   // Store::content_hash
  std::vector<Part> parts;  // of each record

  std::vector<int64_t> records_of(Part part) const;  // in ascending order
  // Hash of store and parts, 32 hex digits; identifies the split that a model was trained with.
  std::string content_hash() const;
};

// Depends only on the store's contents and the options. Programs without features are unused.
// Errors: kInvalidArgument for shares that leave nothing to train on, kNotFound for an unknown
// device or workload.
Result<Split> make_split(const Store& store, const SplitOptions& options);

// Checks that the split belongs to this store (else kMismatch) and that its parts have nothing in
// common that its kind keeps apart: programs, workloads or devices (else kInvalidArgument).
Status check_split(const Store& store, const Split& split);

// Replaces the file atomically.
Status save_split(const Split& split, const std::string& path);
Result<Split> load_split(const std::string& path);

}  // namespace tensorsmith::learn
