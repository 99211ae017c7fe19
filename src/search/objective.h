// The objective of a search: the cost that it minimizes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/formula.h"

namespace tensorsmith::search {

// The figures of a program that an objective may use.
struct ProgramFigures {
  double seconds = 0;  // "latency": of one run
  double bytes = 0;    // "memory": sched::temporary_bytes
  double joules = 0;   // "energy": of one run
};

// The latency, or a formula of latency, memory and energy.
class Objective {
 public:
  Objective() = default;  // latency
  // kInvalidArgument with the text and the column if it is no formula of these names.
  static Result<Objective> parse(std::string_view text);

  const std::string& text() const { return text_; }
  bool is_latency() const { return !formula_; }
  bool uses_memory() const;
  bool uses_energy() const;

  // Returns +inf where the formula has no value.
  double cost(const ProgramFigures& figures) const;
  // Returns the logarithm of the cost, by which programs are ranked that are not measured. Among programs of
  // equal cost, those of less latency come first. Costs that are not positive count as equally small.
  double log_cost(const ProgramFigures& figures) const;

 private:
  std::string text_ = "latency";
  std::optional<ir::Formula> formula_;  // nothing: latency
};

}  // namespace tensorsmith::search
