// A store of measured programs: their features, syntax-tree leaves, steps and times, in columns of
// one memory-mapped file. Reading uses memory only for the parts that are accessed, writing for one
// group of records.
//
// The file is little endian, with every section at a multiple of 8 bytes. It consists of a header,
// groups of up to kGroupRecords records, and a catalog (JSON: workloads, devices, sources, offset
// and sizes of each group). A group has fixed columns by record, then columns by leaf, then the
// parts of variable length. A feature vector is stored as a bit mask of its nonzero entries
// followed by these entries. A group in which a disturbance is known ends with a column of them; NaN
// stands for one that is not known. A group in which a design point is known then has the points' ends and
// numbers. The header has the format version, the feature schema version, the
// position of the catalog and a hash of everything that follows the header.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "feature/per_store.h"
#include "record/candidate.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::learn {

// Version 2 has disturbances, version 3 also has design points. A store is written as the lowest version that
// can hold its records, which earlier programs read.
inline constexpr uint32_t kStoreVersion = 3;
inline constexpr int64_t kGroupRecords = 4096;

struct StoredWorkload {
  std::string key;   // ir::structural_key; equal computations under several foreign keys have the same
  std::string name;  // for messages and error tables: "conv2d_layer", "T_matmul_NN"
  std::string text;  // ir::print
  double flops = 0;
  std::vector<std::string> foreign_keys;  // empty: its programs are compiled by Tensorsmith
};

// One record to add.
struct StoreRecord {
  uint32_t workload = 0, device = 0;  // numbers from add_workload and add_device
  int error_no = 0;                   // TVM's MeasureErrorNo; 0: measured
  int64_t unix_seconds = 0;
  std::vector<double> seconds;             // one for each repeat
  double mean_seconds = 0;                 // +inf for a failed record
  std::optional<double> disturbance = {};  // of the measurement (record/disturbance.h)
  std::optional<record::DesignPoint> point = {};
  feature::LeafFeatures leaves;
  sched::Trace trace;
};

class StoreWriter {
 public:
  // Writes to a temporary file beside `path`. Without finish(), it is removed and a file at `path`
  // stays unchanged.
  static Result<std::unique_ptr<StoreWriter>> create(const std::string& path);
  virtual ~StoreWriter() = default;
  // Returns the same number for the same key.
  virtual uint32_t add_workload(const StoredWorkload& workload) = 0;
  // Returns the same number for the same name. attributes: needed if the name alone does not
  // identify the device.
  virtual uint32_t add_device(const std::string& name,
                              const std::optional<target::Device>& attributes = std::nullopt) = 0;
  virtual Status add(const StoreRecord& record) = 0;
  // Writes everything to disk and replaces the file at `path`.
  virtual Status finish() = 0;
};

class Store {
 public:
  // Errors (place: the path): kNotFound, kIo, kCorrupt for a damaged file, kMismatch for another
  // version or feature schema. Checks everything needed to keep reads within the file; verify()
  // also checks the contents.
  static Result<std::unique_ptr<Store>> open(const std::string& path);
  virtual ~Store() = default;

  virtual int64_t size() const = 0;  // number of records
  virtual const std::vector<StoredWorkload>& workloads() const = 0;
  virtual const std::vector<std::string>& devices() const = 0;
  // By device number; empty for devices that are known only by name (target::find_device).
  virtual const std::vector<std::optional<target::Device>>& device_attributes() const = 0;
  virtual const std::string& content_hash() const = 0;  // 32 hex digits
  // Checks the hash; reads the whole file.
  virtual Status verify() const = 0;

  struct Entry {
    uint32_t workload = 0, device = 0;
    int error_no = 0;
    double mean_seconds = 0;          // +inf for a failed record
    std::span<const double> seconds;  // the measured repeats
    int64_t unix_seconds = 0;
    uint64_t program = 0;  // hash of workload and trace, the same on all devices
    int leaves = 0, rows = 0, tree_nodes = 0;
    std::optional<double> disturbance = {};
    bool failed() const { return error_no != 0 || !(mean_seconds < 1e9); }
  };
  // i must be in [0, size()).
  virtual Entry entry(int64_t i) const = 0;
  // Fills `out`, whose memory is reused.
  virtual void leaves(int64_t i, feature::LeafFeatures& out) const = 0;
  virtual feature::FeatureMatrix per_store(int64_t i) const = 0;
  virtual Result<sched::Trace> trace(int64_t i) const = 0;
  // The program's point of its task's design space, if it is known.
  virtual std::optional<record::DesignPoint> point(int64_t i) const = 0;
};

// Returns whether the file exists and begins like a store of any version.
bool is_store_file(const std::string& path);

}  // namespace tensorsmith::learn
