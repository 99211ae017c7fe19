#include "search/recorded_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sched/storage.h"
#include "sched/trace_traits.h"

namespace tensorsmith::search {

namespace {

// Number of programs that a step can lead to.
constexpr size_t kNeighbours = 16;
// Probability of a step to a program of any structure.
constexpr double kRecordedJump = 0.05;

template <class T>
constexpr bool kIsNumber = std::is_same_v<T, int64_t>;

// Separates a trace into structure and coordinates: 64-bit integers are lengths and counts, the
// coordinates; other fields (positions, kinds, flags) are the structure.
struct Reading {
  std::string structure;
  std::vector<float> coordinates;

  void number(int64_t value) { coordinates.push_back(std::log2(1 + std::abs(static_cast<float>(value)))); }
  template <class T>
  void field(const T& value) {
    if constexpr (kIsNumber<T>) {
      number(value);
    } else if constexpr (std::is_same_v<T, sched::Layout>) {
      structure += "[" + std::to_string(value.size());
      for (const sched::LayoutDim& dim : value) {
        structure += "," + std::to_string(dim.dim);
        number(dim.divisor);
        number(dim.extent);
      }
      structure += "]";
    } else if constexpr (requires { value.begin(); }) {
      structure += "[" + std::to_string(value.size());
      for (const auto& element : value) {
        if constexpr (kIsNumber<std::decay_t<decltype(element)>>) {
          number(element);
        } else {
          structure += "," + std::to_string(static_cast<int64_t>(element));
        }
      }
      structure += "]";
    } else {
      structure += "," + std::to_string(static_cast<int64_t>(value));
    }
  }
};

Reading read(const sched::Trace& trace) {
  Reading reading;
  for (const sched::Step& step : trace.steps) {
    std::visit(
        [&](const auto& s) {
          using S = std::decay_t<decltype(s)>;
          reading.structure += S::kName;
          std::apply([&](const auto&... f) { (reading.field(s.*(f.member)), ...); }, S::fields());
          reading.structure += ";";
        },
        step);
  }
  return reading;
}

float octaves_between(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::abs(a[i] - b[i]);
  return sum;
}

// Returns the inputs that were created when the programs were read.
class StoredInputs final : public InputsOfCandidates {
 public:
  explicit StoredInputs(const std::vector<RecordedProgram>& programs) : programs_(programs) {}
  Result<std::shared_ptr<const ProgramInputs>> of(const space::Candidate& candidate) override {
    const auto& inputs = programs_[candidate.decisions.front()].inputs;
    if (inputs == nullptr)
      return Error{ErrorCode::kNotFound, "", "the program could not be built when it was recorded"};
    return inputs;
  }

 private:
  const std::vector<RecordedProgram>& programs_;
};

}  // namespace

Result<std::shared_ptr<const RecordedSpace>> RecordedSpace::create(ir::Workload workload,
                                                                   std::vector<RecordedProgram> programs) {
  std::shared_ptr<RecordedSpace> space(new RecordedSpace());
  space->workload_ = std::move(workload);
  space->best_seconds_ = std::numeric_limits<double>::infinity();
  std::unordered_map<std::string, size_t> structures;
  std::optional<size_t> first;
  for (RecordedProgram& program : programs) {
    const size_t number = space->programs_.size();
    if (!space->by_hash_.emplace(sched::hash(program.trace), number).second) continue;
    Reading reading = read(program.trace);
    const auto [it, added] = structures.emplace(reading.structure, space->structures_.size());
    if (added) {
      space->structures_.push_back(reading.structure);
      space->members_.emplace_back();
    }
    space->members_[it->second].push_back(number);
    space->structure_of_.push_back(it->second);
    space->coordinates_.push_back(std::move(reading.coordinates));
    if (program.result.ok()) {
      if (!first) first = number;
      space->best_seconds_ = std::min(space->best_seconds_, program.result.best_estimate());
    }
    space->programs_.push_back(std::move(program));
  }
  if (!first) return Error{ErrorCode::kInvalidArgument, "", "none of the recorded programs ran"};
  space->default_ = *first;
  space->has_estimates_ = std::all_of(
      space->programs_.begin(), space->programs_.end(),
      [](const RecordedProgram& program) { return program.estimate > 0 || !program.result.ok(); });
  if (space->has_estimates_) {
    for (size_t i = 0; i < space->programs_.size(); ++i) {
      RecordedProgram& program = space->programs_[i];
      if (!(program.estimate > 0)) program.estimate = std::numeric_limits<double>::infinity();
      if (program.estimate < space->programs_[space->default_].estimate) space->default_ = i;
    }
  }
  space->find_neighbours();
  return std::shared_ptr<const RecordedSpace>(std::move(space));
}

void RecordedSpace::find_neighbours() {
  near_.resize(programs_.size());
  std::vector<std::pair<float, size_t>> order;
  for (size_t i = 0; i < programs_.size(); ++i) {
    order.clear();
    for (const size_t j : members_[structure_of_[i]])
      if (j != i) order.emplace_back(octaves_between(coordinates_[i], coordinates_[j]), j);
    const size_t kept = std::min(kNeighbours, order.size());
    std::partial_sort(order.begin(), order.begin() + kept, order.end());
    for (size_t k = 0; k < kept; ++k) near_[i].push_back(order[k].second);
  }
}

space::Candidate RecordedSpace::candidate(size_t number) const {
  return {static_cast<int>(structure_of_[number]), {static_cast<int64_t>(number)}};
}

const record::MeasureResult* RecordedSpace::result_of(const sched::Trace& trace) const {
  const auto it = by_hash_.find(sched::hash(trace));
  return it == by_hash_.end() ? nullptr : &programs_[it->second].result;
}

space::Candidate RecordedSpace::mutate(const space::Candidate& candidate, Rng& rng) const {
  const auto& near = near_[number_of(candidate)];
  if (near.empty() || rng.bernoulli(kRecordedJump)) return sample(rng);
  return this->candidate(near[rng.below(near.size())]);
}

std::vector<space::Candidate> RecordedSpace::neighbours(const space::Candidate& candidate) const {
  std::vector<space::Candidate> result;
  for (const size_t number : near_[number_of(candidate)]) result.push_back(this->candidate(number));
  return result;
}

std::optional<size_t> RecordedSpace::nearest(size_t structure, const std::vector<float>& coordinates,
                                             std::span<const size_t> left_out) const {
  std::optional<size_t> best;
  float least = std::numeric_limits<float>::infinity();
  for (const size_t number : members_[structure]) {
    if (std::find(left_out.begin(), left_out.end(), number) != left_out.end()) continue;
    const float d = octaves_between(coordinates, coordinates_[number]);
    if (d >= least) continue;
    least = d;
    best = number;
  }
  return best;
}

space::Candidate RecordedSpace::crossover(const space::Candidate& a, const space::Candidate& b,
                                          Rng& rng) const {
  if (a.sketch != b.sketch) return a;
  const size_t parents[] = {number_of(a), number_of(b)};
  std::vector<float> mixed = coordinates_[parents[0]];
  const auto& other = coordinates_[parents[1]];
  for (size_t i = 0; i < mixed.size(); ++i)
    if (rng.bernoulli(0.5)) mixed[i] = other[i];
  const auto child = nearest(a.sketch, mixed, parents);
  return child ? candidate(*child) : a;
}

std::vector<space::Candidate> RecordedSpace::listed(size_t limit) const {
  std::vector<space::Candidate> all;
  for (const auto& members : members_) {
    if (members.size() > limit) continue;
    for (const size_t number : members) all.push_back(candidate(number));
  }
  return all;
}

Status RecordedSpace::check(const space::Candidate& candidate) const {
  if (candidate.decisions.size() == 1 && candidate.decisions.front() >= 0 &&
      number_of(candidate) < programs_.size() &&
      structure_of_[number_of(candidate)] == static_cast<size_t>(candidate.sketch))
    return {};
  return Error{ErrorCode::kInvalidArgument, "", "no such program was recorded"};
}

Result<sched::Trace> RecordedSpace::to_trace(const space::Candidate& candidate) const {
  TS_RETURN_IF_ERROR(check(candidate));
  return programs_[number_of(candidate)].trace;
}

Result<int64_t> RecordedSpace::temporary_bytes(const space::Candidate& candidate,
                                               const target::Device& device) const {
  TS_RETURN_IF_ERROR(check(candidate));
  return sched::temporary_bytes(workload_, programs_[number_of(candidate)].trace, device);
}

Result<space::Candidate> RecordedSpace::rescale(const SearchSpace& source,
                                                const space::Candidate& candidate) const {
  const auto* other = dynamic_cast<const RecordedSpace*>(&source);
  if (other == nullptr) return Error{ErrorCode::kUnsupported, "", "the source holds no recorded programs"};
  const size_t number = other->number_of(candidate);
  const std::string& structure = other->structures_[other->structure_of_[number]];
  for (size_t s = 0; s < structures_.size(); ++s) {
    if (structures_[s] != structure) continue;
    const auto found = nearest(s, other->coordinates_[number], {});
    if (found) return this->candidate(*found);
  }
  return Error{ErrorCode::kNotFound, "", "no recorded program has this structure"};
}

std::unique_ptr<InputsOfCandidates> RecordedSpace::make_extractor(std::shared_ptr<const QueriedTask>,
                                                                  const learn::ModelInputs&) const {
  return std::make_unique<StoredInputs>(programs_);
}

}  // namespace tensorsmith::search
