// Hyper-parameters of a model, read from a JSON object, with defaults for those that it leaves out.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::learn {

// Each call reads one parameter into a variable that holds its default. finish() checks that every
// given parameter is known, has the right type and lies in its range.
class Parameters {
 public:
  explicit Parameters(const nlohmann::json& given) : given_(given) {}

  void real(const char* name, double& value, double low, double high);
  void integer(const char* name, int& value, int low, int high);
  void flag(const char* name, bool& value);
  void choice(const char* name, std::string& value, std::initializer_list<const char*> allowed);

  // Returns the values of all parameters, as a model's card keeps them. kInvalidArgument names the
  // first wrong parameter and the values that are allowed.
  Result<nlohmann::json> finish() const;

 private:
  // Returns the given value, or nullptr if there is none.
  const nlohmann::json* take(const char* name);
  void bad(const char* name, const std::string& what);

  const nlohmann::json& given_;
  nlohmann::json values_ = nlohmann::json::object();
  Status status_;
};

// Parses "NAME=VALUE" assignments. A value is a number or boolean if its text is one, else a
// string. kInvalidArgument for an assignment without a name or a name that occurs twice.
Result<nlohmann::json> parse_parameters(const std::vector<std::string>& assignments);

}  // namespace tensorsmith::learn
