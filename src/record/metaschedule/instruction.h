// Measured programs of TVM's MetaSchedule, one JSON line of database_tuning_record.json each:
//   [workload, [[instructions, decisions], [seconds, ...], target, [argument types]]]
// An instruction is [kind, inputs, attributes, outputs], a decision [number of its instruction, value].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace tensorsmith::record {

// An input, an attribute or a decision: a number, text, or a list. Text as an input is the name of a
// random variable ("b1": a block, "l4": a loop, "v11": a number), "None", or quoted text.
struct MetaScheduleValue {
  std::variant<int64_t, double, std::string, std::vector<MetaScheduleValue>> value;

  const int64_t* integer() const { return std::get_if<int64_t>(&value); }
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const std::vector<MetaScheduleValue>* list() const {
    return std::get_if<std::vector<MetaScheduleValue>>(&value);
  }
};

struct MetaScheduleInstruction {
  std::string kind;  // "SamplePerfectTile"
  std::vector<MetaScheduleValue> inputs, attributes;
  std::vector<std::string> outputs;
  std::optional<MetaScheduleValue> decision;
};

struct MetaScheduleRecord {
  int64_t workload = 0;  // line of database_workload.json, counted from 0
  std::vector<MetaScheduleInstruction> instructions;
  std::vector<double> seconds;  // one per repeat

  // True for a program that could not be built or run: MetaSchedule writes 1e10 seconds.
  bool failed() const;
  double mean_seconds() const;  // must not be called for a failed record
};

// Parses a line. Errors: kCorrupt for a line that does not follow the format; kInvalidArgument for a
// record without a measurement. Never crashes.
Result<MetaScheduleRecord> parse_metaschedule_record(std::string_view line);

// Returns whether the line is one of a database_tuning_record.json.
bool looks_like_metaschedule_record(std::string_view line);
// Returns whether the line is one of a database_workload.json: ["structural hash", "base64"].
bool looks_like_metaschedule_workload(std::string_view line);

}  // namespace tensorsmith::record
