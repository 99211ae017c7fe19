#include "engine/beam_search.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::engine {

namespace {

using learn::lm::kOutputs;

// An answer under way.
struct Prefix {
  explicit Prefix(const search::SketchContext& context)
      : answer(std::make_unique<search::SpaceAnswer>(context)),
        walk(std::make_unique<learn::lm::TokenWalk>(*answer)) {}
  Prefix(const Prefix& other)
      : answer(std::make_unique<search::SpaceAnswer>(*other.answer)),
        walk(std::make_unique<learn::lm::TokenWalk>(*other.walk, *answer)),
        log_likelihood(other.log_likelihood) {}
  Prefix& operator=(const Prefix&) = delete;
  Prefix(Prefix&&) = default;
  Prefix& operator=(Prefix&&) = default;
  ~Prefix() = default;

  std::unique_ptr<search::SpaceAnswer> answer;
  std::unique_ptr<learn::lm::TokenWalk> walk;
  double log_likelihood = 0;
};

struct Extension {
  size_t prefix = 0;
  uint8_t token = 0;
  double log_likelihood = 0;
};

// Appends the tokens that may follow a prefix.
void extend(const Prefix& prefix, size_t number, std::span<const float> scores, std::vector<Extension>& out) {
  const auto allowed = prefix.walk->allowed();
  double most = -std::numeric_limits<double>::infinity(), all = 0;
  for (size_t o = 0; o < kOutputs; ++o)
    if (allowed[o]) most = std::max(most, static_cast<double>(scores[o]));
  for (size_t o = 0; o < kOutputs; ++o)
    if (allowed[o]) all += std::exp(static_cast<double>(scores[o]) - most);
  for (size_t o = 0; o < kOutputs; ++o)
    if (allowed[o])
      out.push_back({number, static_cast<uint8_t>(o),
                     prefix.log_likelihood + static_cast<double>(scores[o]) - most - std::log(all)});
}

class BeamSearch {
 public:
  BeamSearch(LanguageDecoder& decoder, const search::SketchContext& context, const GenerateRequest& request,
             DecodingReport& report)
      : decoder_(decoder),
        request_(request),
        width_(static_cast<size_t>(request.sampling.beam)),
        report_(report) {
    beam_.emplace_back(context);
  }

  Result<std::vector<GeneratedCandidate>> run() {
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
  // Whether nothing under way can become likelier than what is complete.
  bool enough() const {
    if (complete_.size() < request_.count) return false;
    const auto likeliest = std::max_element(beam_.begin(), beam_.end(), [](const Prefix& a, const Prefix& b) {
      return a.log_likelihood < b.log_likelihood;
    });
    return complete_[request_.count - 1].log_likelihood >= likeliest->log_likelihood;
  }

  Status step() {
    learn::lm::Positions positions;
    for (const Prefix& prefix : beam_) prefix.walk->describe(request_.sampling.quality, positions);
    TS_ASSIGN_OR_RETURN(const auto scores, decoder_.next(positions));
    std::vector<Extension> extensions;
    for (size_t i = 0; i < beam_.size(); ++i)
      extend(beam_[i], i, scores.subspan(i * kOutputs, kOutputs), extensions);
    std::stable_sort(extensions.begin(), extensions.end(), [](const Extension& a, const Extension& b) {
      return a.log_likelihood > b.log_likelihood;
    });
    if (extensions.size() > width_) extensions.resize(width_);
    std::vector<Prefix> longer;
    std::vector<size_t> sources;
    for (const Extension& extension : extensions) {
      Prefix next = beam_[extension.prefix];
      TS_CHECK(next.walk->take(extension.token), "what is allowed can be taken");
      next.log_likelihood = extension.log_likelihood;
      ++report_.tokens;
      if (next.walk->done()) {
        keep(next);
      } else {
        sources.push_back(extension.prefix);
        longer.push_back(std::move(next));
      }
    }
    decoder_.reorder(sources);
    beam_ = std::move(longer);
    return {};
  }

  // In its place among the complete ones, unless it is excluded.
  void keep(const Prefix& prefix) {
    ++report_.answers;
    GeneratedCandidate one{prefix.answer->candidate(), prefix.log_likelihood};
    if (request_.excluded && request_.excluded(one.candidate)) return;
    const auto place = std::upper_bound(complete_.begin(), complete_.end(), one,
                                        [](const GeneratedCandidate& a, const GeneratedCandidate& b) {
                                          return a.log_likelihood > b.log_likelihood;
                                        });
    complete_.insert(place, std::move(one));
  }

  LanguageDecoder& decoder_;
  const GenerateRequest& request_;
  size_t width_;
  DecodingReport& report_;
  std::vector<Prefix> beam_;
  std::vector<GeneratedCandidate> complete_;  // the likeliest first
};

}  // namespace

Result<std::vector<GeneratedCandidate>> beam_search(LanguageDecoder& decoder,
                                                    const search::SketchContext& context,
                                                    const GenerateRequest& request, DecodingReport& report) {
  TS_CHECK(request.beginnings.empty(), "a beam search has no beginnings");
  if (request.sampling.beam > decoder.options().batch)
    return Error{ErrorCode::kInvalidArgument, "beam",
                 "is wider than the " + std::to_string(decoder.options().batch) +
                     " answers that the decoder writes together"};
  if (request.count == 0) return std::vector<GeneratedCandidate>();
  return BeamSearch(decoder, context, request, report).run();
}

}  // namespace tensorsmith::engine
