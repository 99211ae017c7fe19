// Hyper-parameters of a model: what a JSON object names, and the defaults of what it leaves out.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::learn {

// Each call reads one parameter into its variable, which holds the default; finish() says whether all that
// was given is known, of the right type and in its range.
class Parameters {
 public:
  explicit Parameters(const nlohmann::json& given) : given_(given) {}

  void real(const char* name, double& value, double low, double high);
  void integer(const char* name, int& value, int low, int high);
  void flag(const char* name, bool& value);
  void choice(const char* name, std::string& value, std::initializer_list<const char*> allowed);

  // The values of all parameters, as a model's card keeps them. kInvalidArgument names the first parameter
  // that is wrong and says what may stand there.
  Result<nlohmann::json> finish() const;

 private:
  // The given value, or nullptr.
  const nlohmann::json* take(const char* name);
  void bad(const char* name, const std::string& what);

  const nlohmann::json& given_;
  nlohmann::json values_ = nlohmann::json::object();
  Status status_;
};

// "NAME=VALUE" for each: numbers and true/false where the text is one, else text. kInvalidArgument for what
// has no name or comes twice.
Result<nlohmann::json> parse_parameters(const std::vector<std::string>& assignments);

}  // namespace tensorsmith::learn
