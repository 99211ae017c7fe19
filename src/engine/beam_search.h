// The likeliest answers of a language model, by a beam search. Part of generate() and generate_records().
#pragma once

#include "engine/language_decoder.h"

namespace tensorsmith::engine {

// A: a grammar of answers that can be copied.
template <class A>
struct CompleteAnswer {
  std::unique_ptr<A> answer;
  double log_likelihood = 0;
};

template <class A>
struct BeamRequest {
  size_t count = 0;  // different answers
  const SamplingOptions& sampling;
  std::function<bool(const A&)> excluded;  // what is not wanted; empty: nothing
};

// Of the answers to the prompt that the decoder has read. fresh: nothing of it is decided. Keeps the request.sampling.beam
// likeliest prefixes, each token being one of those that are allowed; a complete answer leaves the beam. At most request.count of
// the complete ones that are not excluded, the likeliest first. Defined for search::SpaceAnswer and search::AnsorAnswer.
template <class A>
Result<std::vector<CompleteAnswer<A>>> beam_search(LanguageDecoder& decoder, const A& fresh,
                                                   const BeamRequest<A>& request, DecodingReport& report);

}  // namespace tensorsmith::engine
