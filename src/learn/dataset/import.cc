#include "learn/dataset/import.h"

#include <limits>
#include <map>

#include "base/thread_pool.h"
#include "ir/text.h"

namespace tensorsmith::learn {

namespace {

constexpr size_t kLinesAtOnce = 2048;
constexpr size_t kMaxLine = size_t{16} << 20;
constexpr size_t kMaxLineProblems = 20;

}  // namespace

ProgramReader::ProgramReader(const record::AnsorWorkloads& workloads, int threads)
    : workloads_(workloads), threads_(threads) {}

void ProgramReader::make(Slot& slot) const {
  ImportedProgram& program = slot.program;
  program.task = nullptr;
  program.leaves = {};
  program.line = slot.line.number;
  slot.status = {};
  if (slot.line.too_long) {
    slot.status = Error{ErrorCode::kCorrupt, "", "the line is too long"};
    return;
  }
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
  TS_ASSIGN_OR_RETURN(auto reader, record::LineReader::open(path, kMaxLine));
  // The calling thread takes part in the work.
  std::unique_ptr<ThreadPool> pool;
  if (threads_ > 1) pool = std::make_unique<ThreadPool>(threads_ - 1);
  slots_.resize(kLinesAtOnce);
  Status end;
  for (bool more = true; more;) {
    size_t count = 0;
    while (count < slots_.size()) {
      auto next = reader->next(slots_[count].line);
      more = next.ok() && *next;
      if (!next.ok()) end = std::move(next).error();
      if (!more) break;
      const auto& line = slots_[count].line;
      const bool blank = !line.too_long && line.text.find_first_not_of(" \t\r") == std::string::npos;
      if (!blank) ++count;
    }
    const auto work = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) make(slots_[i]);
    };
    if (pool) {
      pool->parallel_for(count, 16, work);
    } else {
      work(0, count);
    }
    for (size_t i = 0; i < count; ++i) {
      Slot& slot = slots_[i];
      if (slot.status.ok()) {
        slot.program.file = path;
        TS_RETURN_IF_ERROR(program(slot.program));
      } else {
        problem({path + ":" + std::to_string(slot.line.number), slot.status.error().message()});
      }
    }
  }
  return end;
}

StoredWorkload stored_workload(const record::AnsorWorkloads::Task& task) {
  return {task.structural_key, task.name, ir::print(task.workload), task.flops, {task.key}};
}

Result<ImportReport> import_ansor(const std::vector<ImportFile>& files, const std::string& workloads_path,
                                  const std::string& output, const ImportOptions& options) {
  TS_ASSIGN_OR_RETURN(const auto workloads, record::AnsorWorkloads::load(workloads_path));
  TS_ASSIGN_OR_RETURN(auto writer, StoreWriter::create(output));
  ImportReport report;
  std::map<const record::AnsorWorkloads::Task*, uint32_t> numbers;
  ProgramReader reader(workloads, options.threads);
  StoreRecord record;
  for (const ImportFile& file : files) {
    record.device = writer->add_device(file.device);
    const auto store = [&](ImportedProgram& program) -> Status {
      const auto [it, added] = numbers.emplace(program.task.get(), 0);
      if (added) it->second = writer->add_workload(stored_workload(*program.task));
      record.workload = it->second;
      record.error_no = program.record.error_no;
      record.unix_seconds = program.record.unix_seconds;
      record.mean_seconds =
          program.record.failed() ? std::numeric_limits<double>::infinity() : program.record.mean_seconds();
      record.seconds = program.record.seconds;
      std::swap(record.leaves, program.leaves);
      std::swap(record.trace, program.record.trace);
      ++report.records;
      report.failed += record.mean_seconds < std::numeric_limits<double>::infinity() ? 0 : 1;
      TS_RETURN_IF_ERROR(writer->add(record));
      if (options.progress && report.records % 4096 == 0) options.progress(report);
      return {};
    };
    const auto problem = [&](const ImportProblem& p) {
      ++report.corrupt;
      if (report.problems.size() < kMaxLineProblems) report.problems.push_back(p);
    };
    TS_RETURN_IF_ERROR(reader.read(file.path, store, problem));
  }
  if (report.records == 0 && options.allow_empty) TS_RETURN_IF_ERROR(options.allow_empty());
  TS_RETURN_IF_ERROR(writer->finish());
  return report;
}

}  // namespace tensorsmith::learn
