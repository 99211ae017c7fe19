#include "search/objective.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tensorsmith::search {

namespace {

constexpr std::array<std::string_view, 3> kFigureNames{"latency", "memory", "energy"};
constexpr size_t kMemoryFigure = 1, kEnergyFigure = 2;

// The least cost of which a logarithm is taken.
constexpr double kLeastCost = 1e-30;
// Weight of the logarithm of the latency among programs of equal cost. It hardly changes the order of others.
constexpr double kTieWeight = 1e-4;

}  // namespace

Result<Objective> Objective::parse(std::string_view text) {
  Objective objective;
  auto formula = ir::Formula::parse(text, kFigureNames);
  if (!formula.ok()) {
    return Error{ErrorCode::kInvalidArgument, "objective '" + std::string(text) + "'",
                 formula.error().message() +
                     "; an objective is latency, memory, energy or a formula of them, for example "
                     "latency * (1 + memory / 1e6)"};
  }
  objective.text_ = text;
  if (text != kFigureNames.front()) objective.formula_ = std::move(*formula);
  return objective;
}

bool Objective::uses_memory() const { return formula_ && formula_->uses(kMemoryFigure); }
bool Objective::uses_energy() const { return formula_ && formula_->uses(kEnergyFigure); }

double Objective::cost(const ProgramFigures& figures) const {
  if (is_latency()) return figures.seconds;
  const double cost = formula_->value(std::array{figures.seconds, figures.bytes, figures.joules});
  return std::isnan(cost) ? std::numeric_limits<double>::infinity() : cost;
}

double Objective::log_cost(const ProgramFigures& figures) const {
  if (is_latency()) return std::log(figures.seconds);
  // A program without temporaries counts with one byte, so that memory has a logarithm.
  const double positive = cost({figures.seconds, std::max(figures.bytes, 1.0), figures.joules});
  return std::log(std::max(positive, kLeastCost)) + kTieWeight * std::log(figures.seconds);
}

}  // namespace tensorsmith::search
