#include "engine/language/beam_search.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::engine {

namespace {

using learn::lm::kOutputs;

// An incomplete answer.
template <class A>
struct Prefix {
  explicit Prefix(const A& fresh)
      : answer(std::make_unique<A>(fresh)), walk(std::make_unique<learn::lm::TokenWalk>(*answer)) {}
  Prefix(const Prefix& other)
      : answer(std::make_unique<A>(*other.answer)),
        walk(std::make_unique<learn::lm::TokenWalk>(*other.walk, *answer)),
        log_likelihood(other.log_likelihood) {}
  Prefix& operator=(const Prefix&) = delete;
  Prefix(Prefix&&) = default;
  Prefix& operator=(Prefix&&) = default;
  ~Prefix() = default;

  std::unique_ptr<A> answer;
  std::unique_ptr<learn::lm::TokenWalk> walk;
  double log_likelihood = 0;
};

struct Extension {
  size_t prefix = 0;
  uint8_t token = 0;
  double log_likelihood = 0;
};

// Appends the allowed next tokens of a prefix as extensions.
template <class A>
void extend(const Prefix<A>& prefix, size_t number, std::span<const float> scores,
            std::vector<Extension>& out) {
  const auto allowed = prefix.walk->allowed();
  double most = -std::numeric_limits<double>::infinity(), all = 0;
  for (size_t o = 0; o < kOutputs; ++o)
    if (allowed[o]) most = std::max(most, static_cast<double>(scores[o]));
  for (size_t o = 0; o < kOutputs; ++o)
    if (allowed[o]) all += std::exp(scores[o] - most);
  for (size_t o = 0; o < kOutputs; ++o)
    if (allowed[o])
      out.push_back(
          {number, static_cast<uint8_t>(o), prefix.log_likelihood + scores[o] - most - std::log(all)});
}

template <class A>
class BeamSearch {
 public:
  BeamSearch(LanguageDecoder& decoder, const A& fresh, const BeamRequest<A>& request, DecodingReport& report)
      : decoder_(decoder), request_(request), width_(request.sampling.beam), report_(report) {
    beam_.emplace_back(fresh);
  }

  Result<std::vector<CompleteAnswer<A>>> run() {
    decoder_.begin();
    for (int t = 0; !beam_.empty() && !enough(); ++t) {
      if (t == decoder_.options().longest_answer) {
        report_.too_long += std::ssize(beam_);
        break;
      }
      TS_RETURN_IF_ERROR(step());
    }
    if (complete_.size() > request_.count) complete_.resize(request_.count);
    return std::move(complete_);
  }

 private:
  // True if no prefix in the beam can become likelier than the complete answers.
  bool enough() const {
    if (complete_.size() < request_.count) return false;
    const auto likeliest = std::max_element(
        beam_.begin(), beam_.end(),
        [](const Prefix<A>& a, const Prefix<A>& b) { return a.log_likelihood < b.log_likelihood; });
    return complete_[request_.count - 1].log_likelihood >= likeliest->log_likelihood;
  }

  Status step() {
    learn::lm::Positions positions;
    for (const Prefix<A>& prefix : beam_) prefix.walk->describe(request_.sampling.quality, positions);
    TS_ASSIGN_OR_RETURN(const auto scores, decoder_.next(positions));
    std::vector<Extension> extensions;
    for (size_t i = 0; i < beam_.size(); ++i)
      extend(beam_[i], i, scores.subspan(i * kOutputs, kOutputs), extensions);
    std::stable_sort(extensions.begin(), extensions.end(), [](const Extension& a, const Extension& b) {
      return a.log_likelihood > b.log_likelihood;
    });
    if (extensions.size() > width_) extensions.resize(width_);
    std::vector<Prefix<A>> longer;
    std::vector<size_t> sources;
    for (const Extension& extension : extensions) {
      Prefix<A> next = beam_[extension.prefix];
      TS_CHECK(next.walk->take(extension.token), "an allowed token cannot be taken");
      next.log_likelihood = extension.log_likelihood;
      ++report_.tokens;
      if (next.walk->done()) {
        keep(std::move(next));
      } else {
        sources.push_back(extension.prefix);
        longer.push_back(std::move(next));
      }
    }
    decoder_.reorder(sources);
    beam_ = std::move(longer);
    return {};
  }

  // Inserts the answer into the complete ones by likelihood, unless it is excluded.
  void keep(Prefix<A> prefix) {
    ++report_.answers;
    if (request_.excluded && request_.excluded(*prefix.answer)) return;
    const auto place =
        std::upper_bound(complete_.begin(), complete_.end(), prefix.log_likelihood,
                         [](double likelihood, const auto& b) { return likelihood > b.log_likelihood; });
    complete_.insert(place, {std::move(prefix.answer), prefix.log_likelihood});
  }

  LanguageDecoder& decoder_;
  const BeamRequest<A>& request_;
  size_t width_;
  DecodingReport& report_;
  std::vector<Prefix<A>> beam_;
  std::vector<CompleteAnswer<A>> complete_;  // the likeliest first
};

}  // namespace

template <class A>
Result<std::vector<CompleteAnswer<A>>> beam_search(LanguageDecoder& decoder, const A& fresh,
                                                   const BeamRequest<A>& request, DecodingReport& report) {
  if (request.sampling.beam > decoder.options().batch)
    return Error{ErrorCode::kInvalidArgument, "beam",
                 "is wider than the " + std::to_string(decoder.options().batch) +
                     " answers that the decoder can generate at a time"};
  if (request.count == 0) return std::vector<CompleteAnswer<A>>();
  return BeamSearch<A>(decoder, fresh, request, report).run();
}

template Result<std::vector<CompleteAnswer<search::SpaceAnswer>>> beam_search(
    LanguageDecoder&, const search::SpaceAnswer&, const BeamRequest<search::SpaceAnswer>&, DecodingReport&);
template Result<std::vector<CompleteAnswer<search::AnsorAnswer>>> beam_search(
    LanguageDecoder&, const search::AnsorAnswer&, const BeamRequest<search::AnsorAnswer>&, DecodingReport&);

}  // namespace tensorsmith::engine
