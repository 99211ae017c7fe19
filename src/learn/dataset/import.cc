#include "learn/dataset/import.h"

#include <limits>

#include "ir/text.h"
#include "learn/dataset/foreign_records.h"

namespace tensorsmith::learn {

void ImportReport::add_problem(const ImportProblem& problem) {
  constexpr size_t kMaxProblems = 20;
  ++corrupt;
  if (problems.size() < kMaxProblems) problems.push_back(problem);
}

ProgramReader::ProgramReader(const record::AnsorWorkloads& workloads, int threads)
    : workloads_(workloads), threads_(threads) {}

void ProgramReader::make(Slot& slot) const {
  ImportedProgram& program = slot.program;
  program.task = nullptr;
  program.leaves = {};
  program.line = slot.line.number;
  slot.status = record::parse_ansor_record(slot.line.text, program.record);
  if (!slot.status.ok()) return;
  if (program.record.unmeasured()) {
    slot.status = Error{ErrorCode::kInvalidArgument, "", "the record has no measurement"};
    return;
  }
  auto replayed = workloads_.replay(program.record);
  Status made;
  if (replayed.ok()) {
    feature::PerStoreOptions options;
    options.cacheline_bytes = program.record.cacheline_bytes;
    auto leaves = feature::extract_leaves(replayed->schedule, options);
    program.task = std::move(replayed->task);
    if (leaves.ok()) {
      program.leaves = std::move(*leaves);
    } else {
      made = std::move(leaves).error();
    }
  } else {
    made = std::move(replayed).error();
    program.task = workloads_.find(program.record.workload_key);
  }
  if (!made.ok() && !(program.record.failed() && program.task)) slot.status = std::move(made);
}

Status ProgramReader::read(const std::string& path, const std::function<Status(ImportedProgram&)>& program,
                           const std::function<void(const ImportProblem&)>& problem) {
  const auto use = [&](Slot& slot) {
    slot.program.file = path;
    return program(slot.program);
  };
  return read_lines(path, threads_, slots_, [this](Slot& slot) { make(slot); }, use, problem);
}

StoredWorkload stored_workload(const record::ForeignTask& task) {
  return {task.structural_key, task.name, ir::print(task.workload), task.flops, {task.key}};
}

Result<ImportReport> import_ansor(const std::vector<ImportFile>& files, const std::string& workloads_path,
                                  const std::string& output, const ImportOptions& options) {
  TS_ASSIGN_OR_RETURN(const auto workloads, record::AnsorWorkloads::load(workloads_path));
  TS_ASSIGN_OR_RETURN(auto writer, StoreWriter::create(output));
  ForeignRecords records(*writer, options);
  ProgramReader reader(workloads, options.threads);
  StoreRecord record;
  for (const ImportFile& file : files) {
    record.device = writer->add_device(file.device);
    const auto store = [&](ImportedProgram& program) -> Status {
      record.error_no = program.record.error_no;
      record.unix_seconds = program.record.unix_seconds;
      record.mean_seconds =
          program.record.failed() ? std::numeric_limits<double>::infinity() : program.record.mean_seconds();
      record.seconds = program.record.seconds;
      std::swap(record.leaves, program.leaves);
      std::swap(record.trace, program.record.trace);
      return records.add(*program.task, record);
    };
    TS_RETURN_IF_ERROR(reader.read(file.path, store, [&](const auto& p) { records.add_problem(p); }));
  }
  return records.finish();
}

}  // namespace tensorsmith::learn
