#include "lab/written_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "engine/device/measured_device.h"
#include "engine/tune/prepare_tasks.h"
#include "engine/tune/tune_options.h"
#include "ir/text.h"
#include "record/jsonl.h"
#include "record/line_reader.h"

namespace tensorsmith::lab {

namespace {

using ProgramJson = nlohmann::ordered_json;

constexpr int kWrittenVersion = 1;

std::string text_of(const ProgramJson& json) {
  return json.dump(-1, ' ', false, ProgramJson::error_handler_t::replace);
}

std::string program_line(const std::string& task_key, const WrittenProgram& program) {
  return text_of(ProgramJson{{"type", "program"},
                             {"v", kWrittenVersion},
                             {"task", task_key},
                             {"sketch", program.candidate.sketch},
                             {"decisions", program.candidate.decisions},
                             {"log_likelihood", program.log_likelihood},
                             {"trace", program.trace}});
}

Result<WrittenProgram> parse_program(const ProgramJson& json, const std::string& task_key) {
  const auto bad = [](const char* reason) { return Error{ErrorCode::kCorrupt, "", reason}; };
  const auto is = [&](const char* name, auto check) { return json.contains(name) && check(json[name]); };
  const auto whole = [](const ProgramJson& value) { return value.is_number_integer(); };
  if (!is("task", [](const ProgramJson& value) { return value.is_string(); }) || json["task"] != task_key)
    return bad("this program is not of the task before it");
  if (!is("sketch", whole)) return bad("\"sketch\" is not an integer");
  if (!is("decisions", [&](const ProgramJson& value) {
        return value.is_array() && std::all_of(value.begin(), value.end(), whole);
      }))
    return bad("\"decisions\" is not a list of integers");
  if (!is("trace", [](const ProgramJson& value) { return value.is_string(); }))
    return bad("\"trace\" is not a text");
  if (!is("log_likelihood", [](const ProgramJson& value) { return value.is_number(); }))
    return bad("\"log_likelihood\" is not a number");
  WrittenProgram program;
  program.candidate.sketch = json["sketch"].get<int>();
  program.candidate.decisions = json["decisions"].get<std::vector<int64_t>>();
  program.trace = json["trace"].get<std::string>();
  program.log_likelihood = json["log_likelihood"].get<double>();
  return program;
}

bool is_header(const record::LineReader::Line& line) {
  if (line.too_long) return false;
  const auto json = parse_json<ProgramJson>(line.text);
  return json.is_object() && json.value("type", ProgramJson()) == "programs" &&
         json.value("v", ProgramJson()) == kWrittenVersion;
}

// Adds the item of a line after the header.
Status add_line(const std::string& text, WrittenPrograms& to) {
  const auto json = parse_json<ProgramJson>(text);
  if (json.is_object() && json.value("type", ProgramJson()) == "program") {
    if (to.tasks.empty()) return Error{ErrorCode::kCorrupt, "", "this program is not of the task before it"};
    TS_ASSIGN_OR_RETURN(WrittenProgram program, parse_program(json, to.tasks.back().task.key));
    to.tasks.back().programs.push_back(std::move(program));
    return {};
  }
  TS_ASSIGN_OR_RETURN(const record::JsonLine item, record::parse_json_line(text));
  if (const auto* task = std::get_if<record::TaskInfo>(&item))
    to.tasks.push_back({*task, {}});
  else if (const auto* device = std::get_if<record::DeviceInfo>(&item))
    to.device = *device;
  else
    return Error{ErrorCode::kCorrupt, "", "this is neither a device, a task nor a program"};
  return {};
}

// Sets the seeds of a task to its programs, the likeliest first.
MeasuredTask set_seeds(const WrittenTask& written, int64_t count, search::TuneTask& task) {
  MeasuredTask out{written.task.key, written.task.name};
  std::vector<const WrittenProgram*> order;
  for (const WrittenProgram& program : written.programs) order.push_back(&program);
  std::stable_sort(order.begin(), order.end(), [](const WrittenProgram* a, const WrittenProgram* b) {
    return a->log_likelihood > b->log_likelihood;
  });
  if (count > 0 && order.size() > static_cast<size_t>(count)) order.resize(static_cast<size_t>(count));
  const search::SearchSpace& space = task.task->space();
  for (const WrittenProgram* program : order) {
    // A point denotes the same program only as long as the space is built in the same way.
    const auto trace = space.check(program->candidate).ok() ? space.to_trace(program->candidate)
                                                            : Result<sched::Trace>(sched::Trace());
    if (!trace.ok() || sched::print(*trace) != program->trace) {
      ++out.left_out;
      continue;
    }
    ++out.programs;
    task.seeds.push_back({program->candidate, record::Reason::kWritten});
  }
  return out;
}

}  // namespace

Status add_written(const search::PreparedTask& task, const std::vector<WrittenProgram>& programs,
                   WrittenPrograms& to) {
  WrittenTask& added = to.tasks.emplace_back();
  added.task = {task.key(), task.text(), task.name(), task.flops()};
  for (WrittenProgram program : programs) {
    TS_ASSIGN_OR_RETURN(const sched::Trace trace, task.space().to_trace(program.candidate));
    program.trace = sched::print(trace);
    added.programs.push_back(std::move(program));
  }
  return {};
}

Status save_written(const WrittenPrograms& programs, const std::string& path) {
  TS_ASSIGN_OR_RETURN(const auto file, record::AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(file->write_line(text_of(ProgramJson{{"type", "programs"}, {"v", kWrittenVersion}})));
  TS_RETURN_IF_ERROR(file->write_line(record::to_json_line(programs.device)));
  for (const WrittenTask& task : programs.tasks) {
    TS_RETURN_IF_ERROR(file->write_line(record::to_json_line(task.task)));
    for (const WrittenProgram& program : task.programs)
      TS_RETURN_IF_ERROR(file->write_line(program_line(task.task.key, program)));
  }
  return file->commit();
}

Result<WrittenPrograms> read_written(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const auto reader, record::LineReader::open(path, record::Database::kMaxJsonLine));
  WrittenPrograms out;
  record::LineReader::Line line;
  for (bool first = true;; first = false) {
    TS_ASSIGN_OR_RETURN(const bool more, reader->next(line));
    if (first && (!more || !is_header(line)))
      return Error{ErrorCode::kMismatch, path,
                   "is not a file of programs of this version; make one with `lm generate MODEL -o FILE`"};
    if (!more) {
      if (out.device.key.empty()) return Error{ErrorCode::kCorrupt, path, "does not say for which device"};
      return out;
    }
    if (first) continue;
    const Status added = line.too_long ? Status(Error{ErrorCode::kCorrupt, "", "this line is too long"})
                                       : add_line(line.text, out);
    if (!added.ok())
      return Error{added.error().code, fmt::format("{}, line {}", path, line.number),
                   added.error().message()};
  }
}

Result<WrittenMeasurements> measure_written(const WrittenPrograms& written, const target::Device& device,
                                            const WrittenMeasuring& options, const Clock& clock, LogSink& log,
                                            const search::ProgressFn& progress,
                                            const std::atomic<bool>& cancel) {
  TS_RETURN_IF_ERROR(engine::check_measurable(device, "`lm measure`"));
  std::vector<graph::Task> described;
  for (const WrittenTask& task : written.tasks) {
    auto workload = ir::parse_workload(task.task.text);
    if (!workload.ok())
      return Error{ErrorCode::kCorrupt, "task '" + task.task.name + "'", workload.error().message()};
    graph::Task& made = described.emplace_back();
    made.key = task.task.key;
    made.name = task.task.name;
    made.workload = std::move(*workload);
  }
  std::vector<const graph::Task*> wanted;
  for (const graph::Task& task : described) wanted.push_back(&task);
  TS_ASSIGN_OR_RETURN(const engine::PreparedTasks prepared,
                      engine::prepare_tasks(wanted, device, {}, options.threads));
  WrittenMeasurements out;
  std::vector<search::TuneTask> tasks;
  int64_t programs = 0;
  for (size_t t = 0; t < prepared.size(); ++t) {
    tasks.push_back({.task = prepared[t]});
    out.tasks.push_back(set_seeds(written.tasks[t], options.count, tasks.back()));
    programs += out.tasks.back().programs;
  }
  if (programs == 0)
    return Error{ErrorCode::kMismatch, "device " + device.name,
                 "none of the programs can be measured here; they were written for the device " +
                     written.device.device.name + ", or by another version"};
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(options.where.database));
  TS_RETURN_IF_ERROR(engine::register_device(device, *database));
  TS_ASSIGN_OR_RETURN(const auto measurer,
                      engine::make_run_measurer(options.where, *database, device, {}, clock, log, cancel));
  search::TuneOptions tuning;
  tuning.trials = engine::kMostTrials;  // the search ends when all programs are measured
  tuning.strategy = &search::kTransferStrategy;
  tuning.threads = options.threads;
  tuning.confirm = false;
  TS_ASSIGN_OR_RETURN(
      const search::TuneReport report,
      search::tune(tasks, device, tuning, {*database, *measurer, nullptr, clock, log, cancel, progress}));
  out.trials = report.final.trials;
  for (size_t t = 0; t < out.tasks.size(); ++t) {
    out.tasks[t].failed = report.final.tasks[t].failures;
    out.tasks[t].untuned_seconds = report.final.tasks[t].default_seconds;
    out.tasks[t].best_seconds = report.final.tasks[t].best_seconds;
  }
  if (cancel)
    return Error{
        ErrorCode::kCancelled, "",
        fmt::format("interrupted after {} measurements; run the same command again to continue", out.trials)};
  return out;
}

}  // namespace tensorsmith::lab
