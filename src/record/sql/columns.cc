#include "record/sql/columns.h"

#include <cstring>
#include <limits>
#include <utility>

namespace tensorsmith::record {

SqlValues candidate_values(const CandidateOrigin& candidate) {
  SqlValues values{candidate.note, std::string(to_string(candidate.reason)), candidate.strategy};
  if (candidate.point) {
    values.emplace_back(candidate.point->sketch);
    values.emplace_back(print_decisions(candidate.point->decisions));
  } else {
    values.emplace_back();
    values.emplace_back(std::string());
  }
  return values;
}

std::optional<CandidateOrigin> read_candidate(const SqlRows& row, int first) {
  CandidateOrigin candidate;
  candidate.note = row.text(first);
  // Later versions may have more reasons; the record is usable without its reason.
  candidate.reason = parse_reason(row.text(first + 1)).value_or(Reason::kUnstated);
  candidate.strategy = row.text(first + 2);
  if (row.is_null(first + 3)) return candidate;
  const int64_t sketch = row.integer(first + 3);
  auto decisions = parse_decisions(row.text(first + 4));
  if (sketch < 0 || sketch > std::numeric_limits<int>::max() || !decisions) return std::nullopt;
  candidate.point = DesignPoint{static_cast<int>(sketch), std::move(*decisions)};
  return candidate;
}

SqlValues record_values(const Record& record) {
  const MeasureResult& result = record.result;
  SqlValues values{record.key(),
                   record.task_key,
                   record.device_key,
                   record.settings.threads,
                   record.settings.flush_cache,
                   record.code_version,
                   record.trace,
                   std::string(to_string(result.outcome)),
                   result.reason,
                   Blob{encode_doubles(result.seconds)},
                   result.ok() ? SqlValue(result.best_estimate()) : SqlValue(),
                   result.runs_per_repeat,
                   result.stopped_early,
                   result.build_seconds,
                   result.measure_seconds,
                   record.unix_ms};
  for (SqlValue& value : candidate_values(record.candidate)) values.push_back(std::move(value));
  values.push_back(result.disturbance ? SqlValue(*result.disturbance) : SqlValue());
  return values;
}

Result<Record> read_record(const SqlRows& row, const std::string& place) {
  Record record;
  record.task_key = row.text(1);
  record.device_key = row.text(2);
  record.settings.threads = row.integer(3);
  record.settings.flush_cache = row.integer(4) != 0;
  record.code_version = row.integer(5);
  record.trace = row.text(6);
  const std::string outcome_name = row.text(7);
  const auto outcome = parse_outcome(outcome_name);
  const std::string seconds = row.blob(9);
  auto candidate = read_candidate(row, 16);
  if (!row.is_null(21)) record.result.disturbance = row.real(21);
  const double disturbance = record.result.disturbance.value_or(0);
  if (!outcome || !candidate || seconds.size() % 8 != 0 || !(disturbance >= 0 && disturbance <= 1))
    return Error{ErrorCode::kCorrupt, place,
                 "record " + row.text(0) + " is damaged (outcome '" + outcome_name + "', " +
                     std::to_string(seconds.size()) + " bytes of seconds, measured as '" + row.text(17) +
                     "'); restore a copy"};
  record.result.outcome = *outcome;
  record.result.reason = row.text(8);
  record.result.seconds = decode_doubles(seconds);
  record.result.runs_per_repeat = row.integer(11);
  record.result.stopped_early = row.integer(12) != 0;
  record.result.build_seconds = row.real(13);
  record.result.measure_seconds = row.real(14);
  record.unix_ms = row.integer(15);
  record.candidate = std::move(*candidate);
  return record;
}

std::string encode_doubles(const std::vector<double>& values) {
  std::string out;
  out.reserve(values.size() * 8);
  for (double value : values) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, 8);
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>((bits >> (8 * i)) & 0xff));
  }
  return out;
}

std::vector<double> decode_doubles(std::string_view bytes) {
  std::vector<double> out;
  for (size_t begin = 0; begin + 8 <= bytes.size(); begin += 8) {
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; ++i)
      bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[begin + i])) << (8 * i);
    double value = 0;
    std::memcpy(&value, &bits, 8);
    out.push_back(value);
  }
  return out;
}

std::string insert_records_sql(size_t records) {
  return std::string("INSERT INTO record(") + kFirstRecordColumns + ", disturbance) VALUES" +
         placeholders(records, kRecordColumnCount) + " ON CONFLICT DO NOTHING";
}

std::string placeholders(size_t rows, size_t columns) {
  std::string out;
  for (size_t i = 0; i < rows * columns; ++i) {
    out += i % columns == 0 ? (i == 0 ? "($" : "), ($") : ", $";
    out += std::to_string(i + 1);
  }
  return out + ")";
}

}  // namespace tensorsmith::record
