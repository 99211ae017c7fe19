// A language model that runs on Tensorsmith's own kernels: it is built as a network, compiled in memory for the device at
// hand, and writes answers token by token, many at a time, with the keys and values of what it has read kept.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/rng.h"
#include "engine/compile_model.h"
#include "learn/lm/language_model.h"
#include "search/ansor_answer.h"
#include "search/space_answer.h"

namespace tensorsmith::engine {

struct DecoderOptions {
  int batch = 32;           // answers that are written together
  int longest_prompt = 96;  // positions; longer ones are cut
  int longest_answer = 96;  // tokens; an answer that would be longer is not written
  int threads = 1;
};

// How tokens are drawn.
struct SamplingOptions {
  double temperature = 1;  // 0: the likeliest allowed token
  int top_k = 0;           // only the so many likeliest allowed tokens; 0 = all
  double top_p = 1;  // only the likeliest allowed tokens that together have this share of their probability
  // Above 0: nothing is drawn. The likeliest answers that a beam search of this width finds, at most the decoder's batch.
  int beam = 0;
  learn::lm::Quality quality = learn::lm::Quality::kBest;
};

struct GeneratedCandidate {
  space::Candidate candidate;
  // Of the tokens drawn, among those that were not known to be forbidden: natural logarithm of their probability. Of a beam
  // search: among those that are allowed.
  double log_likelihood = 0;
};

struct DecodingReport {
  int64_t answers = 0;  // written to their end: all are legal
  int64_t dead_ends = 0;
  int64_t too_long = 0;  // answers with more tokens than there is room for
  int64_t tokens = 0;
  int64_t forbidden = 0;  // tokens drawn that the grammar forbids, drawn again

  DecodingReport& operator+=(const DecodingReport& other) {
    answers += other.answers;
    dead_ends += other.dead_ends;
    too_long += other.too_long;
    tokens += other.tokens;
    forbidden += other.forbidden;
    return *this;
  }
};

class LanguageDecoder {
 public:
  static Result<std::unique_ptr<LanguageDecoder>> create(const learn::lm::LanguageModel& model,
                                                         const target::Device& device,
                                                         const DecoderOptions& options);
  virtual ~LanguageDecoder() = default;

  // Reads a prompt; what is written next answers it.
  virtual Status read(const learn::lm::Positions& prompt) = 0;
  // Scores of the next token of each answer under way, at most `batch`: [answers, kOutputs], row-major. positions: one of
  // each answer. The first call after begin() is for the first token.
  virtual void begin() = 0;
  virtual Result<std::span<const float>> next(const learn::lm::Positions& positions) = 0;
  // Answer i goes on as if it were answer sources[i]. Not before the first next().
  virtual void reorder(std::span<const size_t> sources) = 0;
  virtual const DecoderOptions& options() const = 0;
};

// The decisions of a candidate of the sketch that an answer begins with: the first `kept` in the order of the answer.
struct Beginning {
  const space::Candidate* candidate = nullptr;
  size_t kept = 0;
};

struct GenerateRequest {
  size_t count = 0;  // different candidates
  SamplingOptions sampling;
  std::function<bool(const space::Candidate&)> excluded;  // what is not wanted; empty: nothing
  // Where given, answers begin like these, one after the other.
  std::vector<Beginning> beginnings;
};

// Different candidates of the sketch; fewer than are asked for where no more were found in a few times as many draws.
// prompt: of this sketch. The same generator gives the same candidates. A beam search gives the likeliest ones it finds, in
// that order, and has no beginnings. kInvalidArgument for a beam that is wider than the decoder's batch.
Result<std::vector<GeneratedCandidate>> generate(LanguageDecoder& decoder, const learn::lm::Positions& prompt,
                                                 const search::SketchContext& context,
                                                 const GenerateRequest& request, Rng& rng,
                                                 DecodingReport& report);

struct GeneratedRecord {
  record::AnsorParts parts;
  std::vector<int64_t> split_extents;  // by step
  double log_likelihood = 0;           // as of GeneratedCandidate
};

struct RecordRequest {
  size_t count = 0;  // different programs
  SamplingOptions sampling;
  std::function<bool(const record::AnsorParts&)> excluded;  // what is not wanted; empty: nothing
};

// The same for a sketch of Ansor's records.
Result<std::vector<GeneratedRecord>> generate_records(LanguageDecoder& decoder,
                                                      const learn::lm::Positions& prompt,
                                                      const search::AnsorContext& context,
                                                      const RecordRequest& request, Rng& rng,
                                                      DecodingReport& report);

// Of whole programs of the sketch: natural logarithm of their probability among what the grammar allows; minus infinity for
// those that are too long.
Result<std::vector<double>> log_likelihoods(LanguageDecoder& decoder, const learn::lm::Positions& prompt,
                                            const search::AnsorContext& context,
                                            std::span<const record::AnsorParts> programs,
                                            learn::lm::Quality quality, DecodingReport& report);

}  // namespace tensorsmith::engine
