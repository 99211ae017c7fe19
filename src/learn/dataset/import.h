// Imports record files of Ansor, databases of MetaSchedule and Tensorsmith's own record databases into
// a store.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "learn/dataset/parallel_lines.h"
#include "learn/dataset/store.h"
#include "record/ansor/workloads.h"

namespace tensorsmith::learn {

// A line of a file of Ansor records and the program made from it.
struct ImportedProgram {
  std::string file;
  int64_t line = 0;
  record::AnsorRecord record;
  // Null if the program failed and its steps do not apply.
  std::shared_ptr<const record::AnsorWorkloads::Task> task;
  feature::LeafFeatures leaves;  // empty for such a program
};

// Converts the task to the form in which stores keep it and latency models are queried about it.
StoredWorkload stored_workload(const record::ForeignTask& task);

// Reads files line by line. Replays the programs and extracts their features on several threads,
// and passes the results on in the order of the lines. Holds one batch in memory.
class ProgramReader {
 public:
  ProgramReader(const record::AnsorWorkloads& workloads, int threads);

  // Calls program() for each good line and problem() for each line that is corrupt or whose program
  // cannot be built. A record of a failed program counts as good even if its steps do not apply,
  // since error_no 1 means exactly that. Stops at an error of program() or of the file.
  Status read(const std::string& path, const std::function<Status(ImportedProgram&)>& program,
              const std::function<void(const ImportProblem&)>& problem);

 private:
  struct Slot : LineSlot {
    ImportedProgram program;
  };
  void make(Slot& slot) const;

  const record::AnsorWorkloads& workloads_;
  int threads_;
  std::vector<Slot> slots_;
};

struct ImportFile {
  std::string device;  // its name in the store
  std::string path;
};
struct ImportReport {
  int64_t records = 0;  // stored records
  int64_t failed = 0;   // of these: programs that could not be built or run
  int64_t corrupt = 0;  // skipped lines
  // Records of databases that were left out: abandoned after one reading (import_databases),
  // measured by another version of the code, or already in an earlier database.
  int64_t stopped_early = 0, other_versions = 0, repeated = 0;
  std::vector<ImportProblem> problems;  // about corrupt lines, at most 20

  void add_problem(const ImportProblem& problem);  // counts it, and keeps the first ones
};
struct ImportOptions {
  int threads = 1;
  // Called before a store without records replaces what is at `output`; an error prevents that.
  std::function<Status()> allow_empty;
  std::function<void(const ImportReport&)> progress;  // called from time to time
};
// Imports all records of the files into a new store, which atomically replaces what is at `output`.
Result<ImportReport> import_ansor(const std::vector<ImportFile>& files, const std::string& workloads_path,
                                  const std::string& output, const ImportOptions& options);

// A database of TVM's MetaSchedule: database_workload.json and database_tuning_record.json, plain or
// compressed with zstd.
struct MetaScheduleDatabase {
  std::string device;  // what target::find_device accepts
  std::string workloads, records;
};
// Returns the databases that the files are: folders with both files, or the files themselves, in any
// order. Several workload files belong to the record files in the same order; a single one belongs
// to all. None if no file is of MetaSchedule, so that others may read them. Errors (place: the
// file): kInvalidArgument if only some are, or if a half or the device's name is missing; those of
// reading.
Result<std::vector<MetaScheduleDatabase>> find_metaschedule_databases(const std::vector<ImportFile>& files);
// Imports all records of the databases into a new store, as import_ansor does. Programs that could
// not be built or run are stored as failed; TVM does not say why they failed.
Result<ImportReport> import_metaschedule(const std::vector<MetaScheduleDatabase>& databases,
                                         const std::string& output, const ImportOptions& options);

// Returns a device's name in stores, and thus in models trained on them. "local" would be ambiguous
// for data from several machines, so a local device is named by its processor, instruction set and
// number of threads: "znver4-avx512-1t".
std::string stored_device_name(const target::Device& device);

// Like import_ansor, for record databases (record/database.h): imports records of the current code
// version that were measured with warm caches, with the attributes of their devices. The time is
// that of the fastest repeat. Several databases may have records of one device. Records of devices
// that the database does not describe, and records of successful programs whose trace no longer
// replays, count as corrupt. The numbers of the report add up to the records of the databases.
Result<ImportReport> import_databases(const std::vector<std::string>& paths, const std::string& output,
                                      const ImportOptions& options);

}  // namespace tensorsmith::learn
