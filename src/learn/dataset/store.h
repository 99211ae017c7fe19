// A store of measured programs: their features, syntax-tree leaves, steps and times, by columns in one file
// that is mapped into memory. Reading takes no more memory than what is looked at, writing no more than a
// group of records.
//
// File (little endian, every section at a multiple of 8 bytes): header, groups of up to kGroupRecords
// records, a catalog (JSON: workloads, devices, sources, place and size of each group). A group holds fixed
// columns by record, then columns by leaf, then the variable parts; feature vectors are kept as a bit mask of
// their nonzero entries and these entries. The header names format version, feature schema version, the
// catalog's place and a hash of all that follows it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "feature/per_store.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::learn {

inline constexpr uint32_t kStoreVersion = 1;
inline constexpr int64_t kGroupRecords = 4096;

struct StoredWorkload {
  std::string key;   // ir::structural_key: equal for equal computations under several foreign keys
  std::string name;  // for people and error tables: "conv2d_layer", "T_matmul_NN"
  std::string text;  // ir::print
  double flops = 0;
  std::vector<std::string> foreign_keys;  // empty: its programs are compiled by Tensorsmith
};

// One record as it is added.
struct StoreRecord {
  uint32_t workload = 0, device = 0;  // numbers from add_workload and add_device
  int error_no = 0;                   // of TVM; 0: measured
  int64_t unix_seconds = 0;
  std::vector<double> seconds;  // one a repeat
  double mean_seconds = 0;      // +inf for a failed record
  feature::LeafFeatures leaves;
  sched::Trace trace;
};

class StoreWriter {
 public:
  // Writes beside the path; without finish() nothing is left, and what was at path stays.
  static Result<std::unique_ptr<StoreWriter>> create(const std::string& path);
  virtual ~StoreWriter() = default;
  virtual uint32_t add_workload(const StoredWorkload& workload) = 0;  // the same number for the same key
  // The same number for the same name. attributes: where the name alone does not say what the device is.
  virtual uint32_t add_device(const std::string& name,
                              const std::optional<target::Device>& attributes = std::nullopt) = 0;
  virtual Status add(const StoreRecord& record) = 0;
  // Reaches the disk and takes the path's place.
  virtual Status finish() = 0;
};

class Store {
 public:
  // Errors (place: the path): kNotFound, kIo, kCorrupt for a damaged file, kMismatch for one of another
  // version or feature schema. Checks all that is needed so that no read leaves the file; verify() also
  // checks the contents.
  static Result<std::unique_ptr<Store>> open(const std::string& path);
  virtual ~Store() = default;

  virtual int64_t size() const = 0;  // records
  virtual const std::vector<StoredWorkload>& workloads() const = 0;
  virtual const std::vector<std::string>& devices() const = 0;
  // By device number; none for devices that are known by name (target::find_device) or not at all.
  virtual const std::vector<std::optional<target::Device>>& device_attributes() const = 0;
  virtual const std::string& content_hash() const = 0;  // 32 hex digits
  // Reads the whole file.
  virtual Status verify() const = 0;

  struct Entry {
    uint32_t workload = 0, device = 0;
    int error_no = 0;
    double mean_seconds = 0;          // +inf: failed
    std::span<const double> seconds;  // as measured
    int64_t unix_seconds = 0;
    uint64_t program = 0;  // hash of workload and trace: equal programs have equal numbers, on every device
    int leaves = 0, rows = 0, tree_nodes = 0;
    bool failed() const { return error_no != 0 || !(mean_seconds < 1e9); }
  };
  // i in [0, size()).
  virtual Entry entry(int64_t i) const = 0;
  // Into an object that is used again.
  virtual void leaves(int64_t i, feature::LeafFeatures& out) const = 0;
  virtual feature::FeatureMatrix per_store(int64_t i) const = 0;
  virtual Result<sched::Trace> trace(int64_t i) const = 0;
};

// Whether the file is there and begins as every store does, whatever its version.
bool is_store_file(const std::string& path);

}  // namespace tensorsmith::learn
