#include "record/profile.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace tensorsmith::record {

using Json = nlohmann::json;

Status check_profile(const Profile& profile) {
  const auto bad = [](std::string reason) {
    return Error{ErrorCode::kInvalidArgument, "", std::move(reason)};
  };
  if (profile.record_key.empty()) return bad("profile without the key of its record");
  if (profile.profiler.empty()) return bad("profile without a profiler");
  for (const auto& [name, value] : profile.counters) {
    if (name.empty()) return bad("profile with a counter that has no name");
    if (!std::isfinite(value)) return bad("counter \"" + name + "\" is not finite");
  }
  return {};
}

std::string encode_counters(const std::map<std::string, double>& counters) {
  return Json(counters).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::map<std::string, double>> decode_counters(const std::string& text) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return Error{ErrorCode::kCorrupt, "", "counters are not a JSON object"};
  std::map<std::string, double> out;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number()) return Error{ErrorCode::kCorrupt, "", "counter \"" + name + "\" is not a number"};
    out[name] = value.get<double>();
  }
  return out;
}

}  // namespace tensorsmith::record
