#include "learn/latency/parameters.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/json_text.h"

namespace tensorsmith::learn {

namespace {
using Json = nlohmann::json;
}

const Json* Parameters::take(const char* name) {
  const auto it = given_.find(name);
  return it == given_.end() ? nullptr : &*it;
}

void Parameters::bad(const char* name, const std::string& what) {
  if (status_.ok())
    status_ = Error{ErrorCode::kInvalidArgument, std::string("parameter ") + name, "must be " + what};
}

void Parameters::real(const char* name, double& value, double low, double high) {
  if (const Json* given = take(name)) {
    const double x = given->is_number() ? given->get<double>() : NAN;
    if (x >= low && x <= high) {
      value = x;
    } else {
      bad(name, "a number from " + Json(low).dump() + " to " + Json(high).dump());
    }
  }
  values_[name] = value;
}

void Parameters::integer(const char* name, int& value, int low, int high) {
  if (const Json* given = take(name)) {
    const double x = given->is_number() ? given->get<double>() : NAN;
    if (x >= low && x <= high && x == std::floor(x)) {
      value = static_cast<int>(x);
    } else {
      bad(name, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    }
  }
  values_[name] = value;
}

void Parameters::flag(const char* name, bool& value) {
  if (const Json* given = take(name)) {
    if (given->is_boolean()) {
      value = given->get<bool>();
    } else {
      bad(name, "true or false");
    }
  }
  values_[name] = value;
}

void Parameters::choice(const char* name, std::string& value, std::initializer_list<const char*> allowed) {
  if (const Json* given = take(name)) {
    const auto it =
        std::find_if(allowed.begin(), allowed.end(), [&](const char* one) { return *given == Json(one); });
    if (it != allowed.end()) {
      value = *it;
    } else {
      std::string names;
      for (const char* one : allowed) names += (names.empty() ? "" : ", ") + std::string(one);
      bad(name, "one of " + names);
    }
  }
  values_[name] = value;
}

Result<Json> Parameters::finish() const {
  if (!given_.is_object())
    return Error{ErrorCode::kInvalidArgument, "", "the parameters of a model must be a JSON object"};
  for (const auto& [name, value] : given_.items()) {
    if (values_.contains(name)) continue;
    std::string known;
    for (const auto& [other, unused] : values_.items()) known += (known.empty() ? "" : ", ") + other;
    return Error{ErrorCode::kInvalidArgument, "parameter " + name,
                 known.empty() ? "this model has no parameters"
                               : "is unknown; the parameters of this kind of model are " + known};
  }
  if (!status_.ok()) return status_.error();
  return values_;
}

Result<Json> parse_parameters(const std::vector<std::string>& assignments) {
  Json out = Json::object();
  for (const std::string& text : assignments) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorCode::kInvalidArgument, "'" + text + "'", "write parameters as NAME=VALUE"};
    const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
    if (out.contains(name)) return Error{ErrorCode::kInvalidArgument, "parameter " + name, "is given twice"};
    const Json parsed = parse_json<Json>(value);
    out[name] = parsed.is_number() || parsed.is_boolean() ? parsed : Json(value);
  }
  return out;
}

}  // namespace tensorsmith::learn
