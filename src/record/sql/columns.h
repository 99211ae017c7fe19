// Rows of the record tables. For use inside the room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "record/sql/session.h"

namespace tensorsmith::record {

// Of the table record, in the order of record_values().
inline constexpr const char* kRecordColumns =
    "key, task_key, device_key, threads, flush_cache, code_version, trace, outcome, reason, seconds, "
    "best_seconds, runs_per_repeat, stopped_early, build_seconds, measure_seconds, unix_ms, note, why, "
    "strategy, sketch, decisions";
inline constexpr int kRecordColumnCount = 21;

SqlValues record_values(const Record& record);
// Of a row that begins with kRecordColumns. kCorrupt: names the record.
Result<Record> read_record(const SqlRows& row, const std::string& place);

// note, why, strategy, sketch and decisions.
SqlValues candidate_values(const Candidate& candidate);
// From the column `first` on. Empty if they hold something else than a candidate.
std::optional<Candidate> read_candidate(const SqlRows& row, int first);

// Doubles as little-endian IEEE 754, whatever the machine.
std::string encode_doubles(const std::vector<double>& values);
std::vector<double> decode_doubles(std::string_view bytes);

// "($1, $2), ($3, $4)" for rows of so many values.
std::string placeholders(size_t rows, size_t columns);

}  // namespace tensorsmith::record
