#include "engine/fleet/measure_protocol.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace tensorsmith::engine {

namespace {

using Json = nlohmann::json;

constexpr double kMaxSeconds = 3600;
constexpr double kMaxRepeats = 1000;

// Lists each field with its name and its least and largest value; used for both printing and
// parsing.
template <typename Options, typename Fn>
void for_each_field(Options& o, Fn fn) {
  fn("build_timeout_s", o.build_timeout_s, 1e-3, kMaxSeconds);
  fn("run_timeout_s", o.run_timeout_s, 1e-3, kMaxSeconds);
  fn("memory_limit_bytes", o.memory_limit_bytes, 1e6, 1e15);
  fn("target_spread", o.target_spread, 0.0, 1e3);
  fn("min_repeats", o.min_repeats, 1.0, kMaxRepeats);
  fn("max_repeats", o.max_repeats, 1.0, kMaxRepeats);
  fn("min_repeat_s", o.min_repeat_s, 0.0, kMaxSeconds);
  fn("hopeless_factor", o.hopeless_factor, 0.0, 1e9);
  fn("loser_factor", o.loser_factor, 0.0, 1e9);
}

}  // namespace

std::string print_protocol(const measure::MeasureOptions& options) {
  Json json = Json::object();
  for_each_field(options, [&](const char* name, const auto& value, double, double) { json[name] = value; });
  return json.dump();
}

Result<measure::MeasureOptions> parse_protocol(const std::string& text) {
  const Json json = parse_json<Json>(text);
  measure::MeasureOptions options;
  std::string problem;
  for_each_field(options, [&](const char* name, auto& value, double least, double most) {
    const auto at = json.is_object() ? json.find(name) : json.end();
    if (at == json.end() || !at->is_number()) {
      problem = std::string(name) + " is missing";
      return;
    }
    const auto number = at->template get<double>();
    if (!std::isfinite(number) || number < least || number > most)
      problem = std::string(name) + " is out of range";
    if (problem.empty()) value = static_cast<std::remove_reference_t<decltype(value)>>(number);
  });
  if (!problem.empty()) return Error{ErrorCode::kCorrupt, "protocol", problem};
  return options;
}

}  // namespace tensorsmith::engine
