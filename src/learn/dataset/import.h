// Records of others, and our own, into a store.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "learn/dataset/store.h"
#include "record/ansor/workloads.h"
#include "record/line_reader.h"

namespace tensorsmith::learn {

// A line of a file of Ansor records and what became of it.
struct ImportedProgram {
  std::string file;
  int64_t line = 0;
  record::AnsorRecord record;
  std::shared_ptr<const record::AnsorWorkloads::Task> task;  // null for a failed program that does not replay
  feature::LeafFeatures leaves;                              // empty for such a program
};

// The task as stores keep it and latency models are asked about it.
StoredWorkload stored_workload(const record::AnsorWorkloads::Task& task);

struct ImportProblem {
  std::string place;  // "file:line"
  std::string reason;
};

// Reads files line by line, replays and extracts features on several threads, and hands on the results in the
// order of the lines. Memory: one batch.
class ProgramReader {
 public:
  ProgramReader(const record::AnsorWorkloads& workloads, int threads);

  // program() for each good line, problem() for each line that is corrupt or whose program cannot be made. A
  // record of a failed program counts as good even if the steps do not apply (error_no 1 says just that). An
  // error of program() or of the file ends it.
  Status read(const std::string& path, const std::function<Status(ImportedProgram&)>& program,
              const std::function<void(const ImportProblem&)>& problem);

 private:
  struct Slot {
    record::LineReader::Line line;
    Status status;
    ImportedProgram program;
  };
  void make(Slot& slot) const;

  const record::AnsorWorkloads& workloads_;
  int threads_;
  std::vector<Slot> slots_;
};

struct ImportFile {
  std::string device;  // as it is called in the store
  std::string path;
};
struct ImportReport {
  int64_t records = 0;  // stored
  int64_t failed = 0;   // of these: programs that could not be built or run
  int64_t corrupt = 0;  // lines that were skipped
  // Records of databases that are left out: given up after one reading (import_databases), measured by another version of the
  // code, or in a database before.
  int64_t stopped_early = 0, other_versions = 0, repeated = 0;
  std::vector<ImportProblem> problems;  // of the corrupt lines, at most 20
};
struct ImportOptions {
  int threads = 1;
  // Asked before a store without records takes the place of what is at output; an error leaves that there.
  std::function<Status()> allow_empty;
  std::function<void(const ImportReport&)> progress;  // now and then
};
// All records of the files as a new store at output, which replaces what is there at once or not at all.
Result<ImportReport> import_ansor(const std::vector<ImportFile>& files, const std::string& workloads_path,
                                  const std::string& output, const ImportOptions& options);

// A device's name in stores and so in the models trained on them: its own, but "local" says nothing where
// data comes from several machines, so a local device is called by its processor, instruction set and
// threads: "znver4-avx512-1t".
std::string stored_device_name(const target::Device& device);

// The same for record databases (record/database.h): their records of the current code version that were
// measured with warm caches, with the attributes of their devices; the time is that of the fastest repeat.
// Several databases may hold records of one device. What cannot be used counts as corrupt: records of devices
// that the database does not describe, and traces that no longer replay (unless the program failed). The report's numbers add up
// to the records of the databases.
Result<ImportReport> import_databases(const std::vector<std::string>& paths, const std::string& output,
                                      const ImportOptions& options);

}  // namespace tensorsmith::learn
