#include "record/database.h"

#include <utility>

#include "base/input_file.h"
#include "record/jsonl.h"
#include "record/line_reader.h"
#include "record/postgresql/address.h"
#include "record/postgresql/session.h"
#include "record/sql/sql_database.h"
#include "record/sql/sql_fleet.h"
#include "record/sqlite/session.h"

namespace tensorsmith::record {

namespace {

constexpr size_t kBatch = 512;

// Adds items to a database in batches, each in one transaction.
class Batches {
 public:
  explicit Batches(Database& database) : database_(database) {}

  // bytes: approximate size of the item.
  Status add(Database::Item item, size_t bytes) {
    items_.push_back(std::move(item));
    bytes_ += bytes;
    return items_.size() < kBatch && bytes_ < Database::kMaxJsonLine ? Status() : flush();
  }
  Status flush() {
    if (items_.empty()) return {};
    TS_ASSIGN_OR_RETURN(const auto added, database_.add_items(items_));
    report.tasks += added.tasks;
    report.devices += added.devices;
    report.records += added.records;
    report.profiles += added.profiles;
    report.duplicates += added.duplicates;
    items_.clear();
    bytes_ = 0;
    return {};
  }

  Database::ImportReport report;

 private:
  Database& database_;
  std::vector<Database::Item> items_;
  size_t bytes_ = 0;
};

size_t bytes_of(const Database::Item& item) {
  if (const auto* record = std::get_if<Record>(&item))
    return record->trace.size() + record->result.reason.size() + 8 * record->result.seconds.size();
  if (const auto* task = std::get_if<TaskInfo>(&item)) return task->text.size();
  return 1024;
}

Result<std::unique_ptr<SqlSession>> open_session(const std::string& path, OpenMode mode) {
  return is_database_address(path) ? open_postgresql(path, mode == OpenMode::kRead) : open_sqlite(path, mode);
}

Result<std::unique_ptr<Database>> open_as(const std::string& path, OpenMode mode) {
  TS_ASSIGN_OR_RETURN(auto session, open_session(path, mode));
  return std::unique_ptr<Database>(std::make_unique<SqlDatabase>(std::move(session)));
}

}  // namespace

bool is_database_address(std::string_view path) { return is_postgresql_address(path); }

std::string shown_database(const std::string& path) {
  return is_database_address(path) ? without_password(path) : path;
}

bool is_database_file(const std::string& path) {
  if (is_database_address(path)) return true;
  // The SQLite file format (section 1.3.1) begins with 16 bytes including a terminating zero.
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::string begin(kMagic.size(), '\0');
  const auto file = open_input(path);
  const auto bytes = std::ssize(begin);
  return file.ok() && read_exactly(*file, path, 0, begin.data(), bytes).ok() && begin == kMagic;
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path) {
  return open_as(path, OpenMode::kCreate);
}

Result<std::unique_ptr<Database>> Database::open_read_only(const std::string& path) {
  return open_as(path, OpenMode::kRead);
}

Result<std::unique_ptr<Fleet>> Fleet::open(const std::string& path) {
  TS_ASSIGN_OR_RETURN(auto session, open_session(path, OpenMode::kCreate));
  auto fleet = std::make_unique<SqlFleet>(std::move(session));
  TS_RETURN_IF_ERROR(fleet->prepare());
  return std::unique_ptr<Fleet>(std::move(fleet));
}

Status Database::export_jsonl(const std::string& path, const ExportOptions& options) {
  TS_ASSIGN_OR_RETURN(auto writer, AtomicFileWriter::open(path));
  TS_RETURN_IF_ERROR(for_each_item(options, [&](const Item& item) {
    return std::visit([&](const auto& line) { return writer->write_line(to_json_line(line)); }, item);
  }));
  return writer->commit();
}

Result<Database::ImportReport> Database::import_jsonl(const std::string& path) {
  TS_ASSIGN_OR_RETURN(auto reader, LineReader::open(path, kMaxJsonLine));
  Batches batches(*this);
  const auto problem = [&](int64_t number, const std::string& what) {
    ++batches.report.corrupt;
    if (batches.report.problems.size() < 20)
      batches.report.problems.push_back("line " + std::to_string(number) + ": " + what);
  };
  LineReader::Line line;
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool more, reader->next(line));
    if (!more) break;
    if (line.too_long) {
      problem(line.number, "longer than " + std::to_string(kMaxJsonLine) + " bytes");
    } else if (line.text.find_first_not_of(" \t\r") != std::string::npos) {
      auto parsed = parse_json_line(line.text);
      if (parsed.ok()) {
        TS_RETURN_IF_ERROR(batches.add(std::move(parsed).value(), line.text.size()));
      } else {
        problem(line.number, parsed.error().reason);
      }
    }
  }
  TS_RETURN_IF_ERROR(batches.flush());
  return batches.report;
}

Result<Database::ImportReport> Database::copy_from(Database& from,
                                                   const std::function<void(const ImportReport&)>& progress) {
  Batches batches(*this);
  Status copied = from.for_each_item({}, [&](const Item& item) -> Status {
    TS_RETURN_IF_ERROR(batches.add(item, bytes_of(item)));
    if (progress) progress(batches.report);
    return {};
  });
  if (copied.ok()) copied = batches.flush();
  TS_RETURN_IF_ERROR(std::move(copied));
  return batches.report;
}

}  // namespace tensorsmith::record
