// Converts rows of the record tables. Internal to src/record.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "record/sql/session.h"

namespace tensorsmith::record {

// Columns of the table `record`, in the order of record_values(), except the last: `disturbance`, which
// databases of earlier versions lack.
inline constexpr const char* kFirstRecordColumns =
    "key, task_key, device_key, threads, flush_cache, code_version, trace, outcome, reason, seconds, "
    "best_seconds, runs_per_repeat, stopped_early, build_seconds, measure_seconds, unix_ms, note, why, "
    "strategy, sketch, decisions";
inline constexpr int kRecordColumnCount = 22;

SqlValues record_values(const Record& record);
// Returns "INSERT INTO record(...) VALUES(...), ..." for this number of records, which skips existing
// keys.
std::string insert_records_sql(size_t records);
// Reads a row that begins with all columns. kCorrupt names the record.
Result<Record> read_record(const SqlRows& row, const std::string& place);

// Values of note, why, strategy, sketch and decisions.
SqlValues candidate_values(const CandidateOrigin& candidate);
// Reads these columns, starting at column `first`; nullopt if they do not contain a valid
// candidate.
std::optional<CandidateOrigin> read_candidate(const SqlRows& row, int first);

// Encodes doubles as little-endian IEEE 754 on every machine.
std::string encode_doubles(const std::vector<double>& values);
std::vector<double> decode_doubles(std::string_view bytes);

// Returns "($1, $2), ($3, $4)" for this number of rows and columns.
std::string placeholders(size_t rows, size_t columns);

}  // namespace tensorsmith::record
