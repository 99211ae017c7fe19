// The likeliest answers of a language model, by a beam search. Part of generate().
#pragma once

#include "engine/language_decoder.h"

namespace tensorsmith::engine {

// Of the answers to the prompt that the decoder has read. Keeps the request.sampling.beam likeliest prefixes, each token being
// one of those that are allowed; a complete answer leaves the beam. At most request.count of the complete ones that are not
// excluded, the likeliest first.
Result<std::vector<GeneratedCandidate>> beam_search(LanguageDecoder& decoder,
                                                    const search::SketchContext& context,
                                                    const GenerateRequest& request, DecodingReport& report);

}  // namespace tensorsmith::engine
