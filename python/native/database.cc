#include "record/database.h"

#include <nanobind/stl/string.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bindings.h"
#include "errors.h"
#include "target/target.h"

namespace tensorsmith::python {

namespace nb = nanobind;

namespace {

nb::object from_json(const std::string& text) { return nb::module_::import_("json").attr("loads")(text); }

nb::dict to_dict(const record::Record& r) {
  nb::dict out;
  out["key"] = r.key();
  out["task"] = r.task_key;
  out["device"] = r.device_key;
  out["threads"] = r.settings.threads;
  out["flush_cache"] = r.settings.flush_cache;
  out["trace"] = r.trace;
  out["outcome"] = std::string(record::to_string(r.result.outcome));
  out["reason"] = r.result.reason;
  nb::list seconds;
  for (const double s : r.result.seconds) seconds.append(s);
  out["seconds"] = seconds;
  out["best_estimate"] = r.result.best_estimate();
  out["unix_ms"] = r.unix_ms;
  return out;
}

class Database {
 public:
  Database(const std::string& path, bool read_only) {
    database_ =
        value_or_raise(read_only ? record::Database::open_read_only(path) : record::Database::open(path));
  }
  void close() { database_.reset(); }
  record::Database& open() {
    if (database_ == nullptr) raise({ErrorCode::kInvalidArgument, "Database", "is closed"});
    return *database_;
  }

  nb::list tasks() {
    nb::list out;
    for (const auto& task : value_or_raise(open().tasks())) {
      nb::dict entry;
      entry["key"] = task.key;
      entry["name"] = task.name;
      entry["text"] = task.text;
      entry["flops"] = task.flops;
      out.append(entry);
    }
    return out;
  }
  nb::list devices() {
    nb::list out;
    for (const auto& info : value_or_raise(open().devices())) {
      nb::dict entry;
      entry["key"] = info.key;
      entry["device"] = from_json(target::to_json(info.device));
      out.append(entry);
    }
    return out;
  }
  nb::list records(const std::string& task, const std::string& device) {
    nb::list out;
    check(open().for_each([&](const record::Record& r) -> Status {
      if ((task.empty() || r.task_key == task) && (device.empty() || r.device_key == device))
        out.append(to_dict(r));
      return {};
    }));
    return out;
  }
  nb::object best(const std::string& task, const std::string& device, int threads, bool flush_cache) {
    const auto best = value_or_raise(open().best(task, device, {threads, flush_cache}));
    return best ? nb::object(to_dict(*best)) : nb::none();
  }
  nb::dict import_jsonl(const std::string& path) {
    const auto report = value_or_raise(without_lock([&, &from = open()] { return from.import_jsonl(path); }));
    nb::dict out;
    out["tasks"] = report.tasks;
    out["devices"] = report.devices;
    out["records"] = report.records;
    out["profiles"] = report.profiles;
    out["duplicates"] = report.duplicates;
    out["corrupt"] = report.corrupt;
    nb::list problems;
    for (const auto& problem : report.problems) problems.append(problem);
    out["problems"] = problems;
    return out;
  }

 private:
  std::unique_ptr<record::Database> database_;
};

}  // namespace

void bind_database(nb::module_& module) {
  nb::class_<Database>(module, "Database", "Measured records.")
      .def(nb::init<const std::string&, bool>(), nb::arg("path"), nb::arg("read_only"))
      .def("close", &Database::close)
      .def("tasks", &Database::tasks)
      .def("devices", &Database::devices)
      .def("record_count", [](Database& d) { return value_or_raise(d.open().record_count()); })
      .def("records", &Database::records, nb::arg("task"), nb::arg("device"))
      .def("best", &Database::best, nb::arg("task"), nb::arg("device"), nb::arg("threads"),
           nb::arg("flush_cache"))
      .def(
          "export_jsonl",
          [](Database& d, const std::string& path, int64_t fastest) {
            check(without_lock(
                [&, &from = d.open()] { return from.export_jsonl(path, {.fastest = fastest}); }));
          },
          nb::arg("path"), nb::arg("fastest"))
      .def("import_jsonl", &Database::import_jsonl, nb::arg("path"))
      .def("check",
           [](Database& d) { check(without_lock([&from = d.open()] { return from.check_integrity(); })); });
}

}  // namespace tensorsmith::python
