#include "record/metaschedule/instruction.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json_text.h"

namespace tensorsmith::record {

namespace {

using Json = nlohmann::json;

constexpr double kFailureMark = 1e9;  // MetaSchedule writes 1e10

Error bad_line(std::string reason) { return Error{ErrorCode::kCorrupt, "", std::move(reason)}; }

Result<MetaScheduleValue> value_of(const Json& json) {
  if (json.is_boolean()) return MetaScheduleValue{json.get<bool>() ? int64_t{1} : int64_t{0}};
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX) return bad_line("a number is too large");
  if (json.is_number_integer()) return MetaScheduleValue{json.get<int64_t>()};
  if (json.is_number()) return MetaScheduleValue{json.get<double>()};
  if (json.is_string()) return MetaScheduleValue{json.get<std::string>()};
  if (json.is_null()) return MetaScheduleValue{std::string("None")};
  if (!json.is_array())
    return bad_line("an instruction has an argument that is neither number, text nor list");
  std::vector<MetaScheduleValue> list;
  list.reserve(json.size());
  for (const Json& element : json) {
    TS_ASSIGN_OR_RETURN(MetaScheduleValue value, value_of(element));
    list.push_back(std::move(value));
  }
  return MetaScheduleValue{std::move(list)};
}

Result<std::vector<MetaScheduleValue>> values_of(const Json& json) {
  TS_ASSIGN_OR_RETURN(MetaScheduleValue value, value_of(json));
  return std::get<std::vector<MetaScheduleValue>>(std::move(value.value));
}

Result<MetaScheduleInstruction> instruction_of(const Json& json) {
  if (!json.is_array() || json.size() != 4 || !json[0].is_string() || !json[1].is_array() ||
      !json[2].is_array() || !json[3].is_array())
    return bad_line("an instruction is not [kind, inputs, attributes, outputs]");
  MetaScheduleInstruction out;
  out.kind = json[0].get<std::string>();
  TS_ASSIGN_OR_RETURN(out.inputs, values_of(json[1]));
  TS_ASSIGN_OR_RETURN(out.attributes, values_of(json[2]));
  for (const Json& name : json[3]) {
    if (!name.is_string()) return bad_line("an output of an instruction is not a name");
    out.outputs.push_back(name.get<std::string>());
  }
  return out;
}

Status read_trace(const Json& json, MetaScheduleRecord& out) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_array() || !json[1].is_array())
    return bad_line("the trace is not [instructions, decisions]");
  out.instructions.reserve(json[0].size());
  for (const Json& instruction : json[0]) {
    TS_ASSIGN_OR_RETURN(MetaScheduleInstruction read, instruction_of(instruction));
    out.instructions.push_back(std::move(read));
  }
  for (const Json& decision : json[1]) {
    if (!decision.is_array() || decision.size() != 2 || !decision[0].is_number_unsigned() ||
        decision[0].get<uint64_t>() >= out.instructions.size())
      return bad_line("a decision is not [number of its instruction, value]");
    TS_ASSIGN_OR_RETURN(out.instructions[decision[0].get<size_t>()].decision, value_of(decision[1]));
  }
  return {};
}

Status read_seconds(const Json& json, MetaScheduleRecord& out) {
  if (json.is_null()) return Error{ErrorCode::kInvalidArgument, "", "the record has no measurement"};
  if (!json.is_array()) return bad_line("the times are not a list of seconds");
  for (const Json& seconds : json) {
    if (!seconds.is_number() || !(seconds.get<double>() > 0)) return bad_line("a time is not positive");
    out.seconds.push_back(seconds.get<double>());
  }
  if (out.seconds.empty()) return Error{ErrorCode::kInvalidArgument, "", "the record has no measurement"};
  return {};
}

// Returns the first character that is no space from `at` on, and moves behind it; 0 at the end.
char next_letter(std::string_view line, size_t& at) {
  at = line.find_first_not_of(" \t\r\n", at);
  return at == std::string_view::npos ? '\0' : line[at++];
}

}  // namespace

bool MetaScheduleRecord::failed() const {
  return std::any_of(seconds.begin(), seconds.end(), [](double s) { return s >= kFailureMark; });
}

double MetaScheduleRecord::mean_seconds() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

Result<MetaScheduleRecord> parse_metaschedule_record(std::string_view line) {
  const Json json = parse_json<Json>(line);
  if (json.is_discarded()) return bad_line("the line is not JSON, or it ends early");
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() || !json[1].is_array() ||
      json[1].size() < 2)
    return bad_line("the line is not a record of MetaSchedule: [workload, [trace, seconds, target, types]]");
  MetaScheduleRecord out;
  if (json[0].get<uint64_t>() > INT32_MAX) return bad_line("the number of the workload is too large");
  out.workload = json[0].get<int64_t>();
  TS_RETURN_IF_ERROR(read_trace(json[1][0], out));
  TS_RETURN_IF_ERROR(read_seconds(json[1][1], out));
  return out;
}

bool looks_like_metaschedule_record(std::string_view line) {
  size_t at = 0;
  if (next_letter(line, at) != '[') return false;
  const size_t digits = at;
  at = line.find_first_not_of(" 0123456789", at);
  if (at == std::string_view::npos || at == digits) return false;
  return next_letter(line, at) == ',' && next_letter(line, at) == '[';
}

bool looks_like_metaschedule_workload(std::string_view line) {
  size_t at = 0;
  if (next_letter(line, at) != '[' || next_letter(line, at) != '"') return false;
  const size_t hash = at;
  at = line.find_first_not_of("-0123456789", at);
  if (at == std::string_view::npos || at == hash) return false;
  return next_letter(line, at) == '"' && next_letter(line, at) == ',' && next_letter(line, at) == '"';
}

}  // namespace tensorsmith::record
