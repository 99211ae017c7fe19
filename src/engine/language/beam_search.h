// Beam search for the likeliest answers of a language model. Implementation of generate() and
// generate_records().
#pragma once

#include "engine/language/language_decoder.h"

namespace tensorsmith::engine {

// A complete answer of the grammar A, which must be copyable.
template <class A>
struct CompleteAnswer {
  std::unique_ptr<A> answer;
  double log_likelihood = 0;
};

template <class A>
struct BeamRequest {
  size_t count = 0;  // number of different answers
  const SamplingOptions& sampling;
  std::function<bool(const A&)> excluded;  // answers to leave out; empty: none
};

// Returns the likeliest answers to the prompt that the decoder has read. `fresh` is an answer
// without any decision. The search keeps the request.sampling.beam likeliest prefixes and extends
// each by the allowed tokens; a complete answer leaves the beam. Returns at most request.count
// complete answers that are not excluded, the likeliest first. Defined for search::SpaceAnswer and
// search::AnsorAnswer.
template <class A>
Result<std::vector<CompleteAnswer<A>>> beam_search(LanguageDecoder& decoder, const A& fresh,
                                                   const BeamRequest<A>& request, DecodingReport& report);

}  // namespace tensorsmith::engine
