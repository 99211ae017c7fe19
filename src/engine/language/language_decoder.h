// Runs a language model on Tensorsmith's own kernels. The model is built as a network, compiled in
// memory for a device, and generates many answers at a time, token by token, with a cache of keys
// and values.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/rng.h"
#include "engine/model/compile_model.h"
#include "learn/lm/language_model.h"
#include "search/ansor_answer.h"
#include "search/space_answer.h"

namespace tensorsmith::engine {

struct DecoderOptions {
  int batch = 32;           // answers generated together
  int longest_prompt = 96;  // positions; longer prompts are truncated
  int longest_answer = 96;  // tokens; a longer answer is dropped
  int threads = 1;
};

// Sampling parameters for tokens.
struct SamplingOptions {
  double temperature = 1;  // 0: always the likeliest allowed token
  int top_k = 0;           // draws only from this many likeliest allowed tokens; 0 = all
  // Draws only from the likeliest allowed tokens that together have this share of the probability.
  double top_p = 1;
  // If positive, nothing is sampled: a beam search of this width finds the likeliest answers. At
  // most the decoder's batch.
  int beam = 0;
  learn::lm::Quality quality = learn::lm::Quality::kBest;
};

struct GeneratedCandidate {
  space::Candidate candidate;
  // Natural logarithm of the probability of the drawn tokens, each among the tokens that were not
  // known to be forbidden; for a beam search, each among the allowed tokens.
  double log_likelihood = 0;
};

struct DecodingReport {
  int64_t answers = 0;  // completed answers, all of them legal
  int64_t dead_ends = 0;
  int64_t too_long = 0;  // answers that exceeded the longest answer
  int64_t tokens = 0;
  int64_t forbidden = 0;  // drawn tokens that the grammar forbids; each was drawn again

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

  // Reads a prompt; the answers generated next answer it.
  virtual Status read(const learn::lm::Positions& prompt) = 0;
  // Returns the scores of the next token of each current answer, at most `batch`: [answers,
  // kOutputs], row-major. `positions` has one position per answer. The first call after begin() is
  // for the first token.
  virtual void begin() = 0;
  virtual Result<std::span<const float>> next(const learn::lm::Positions& positions) = 0;
  // Replaces the state of answer i by that of answer sources[i]. Must not be called before the
  // first next().
  virtual void reorder(std::span<const size_t> sources) = 0;
  virtual const DecoderOptions& options() const = 0;
};

// The beginning of an answer: the first `kept` decisions, in the order of the answer, of a
// candidate of the sketch.
struct AnswerPrefix {
  const space::Candidate* candidate = nullptr;
  size_t kept = 0;
};

struct GenerateRequest {
  size_t count = 0;  // number of different candidates
  SamplingOptions sampling;
  std::function<bool(const space::Candidate&)> excluded;  // candidates to leave out; empty: none
  // If not empty, the answers start with these prefixes in turn.
  std::vector<AnswerPrefix> prefixes;
};

// Generates different candidates of the sketch that `prompt` is about; fewer than requested if no
// more were found after a few times as many draws. The result is determined by the state of `rng`.
// A beam search returns the likeliest candidates that it finds in that order, and takes no
// prefixes. kInvalidArgument for a beam that is wider than the decoder's batch.
Result<std::vector<GeneratedCandidate>> generate(LanguageDecoder& decoder, const learn::lm::Positions& prompt,
                                                 const search::SketchContext& context,
                                                 const GenerateRequest& request, Rng& rng,
                                                 DecodingReport& report);

struct GeneratedRecord {
  record::AnsorParts parts;
  std::vector<int64_t> split_extents;  // by step
  double log_likelihood = 0;           // as in GeneratedCandidate
};

struct RecordRequest {
  size_t count = 0;  // number of different programs
  SamplingOptions sampling;
  std::function<bool(const record::AnsorParts&)> excluded;  // programs to leave out; empty: none
};

// As generate(), for a sketch of Ansor's records.
Result<std::vector<GeneratedRecord>> generate_records(LanguageDecoder& decoder,
                                                      const learn::lm::Positions& prompt,
                                                      const search::AnsorContext& context,
                                                      const RecordRequest& request, Rng& rng,
                                                      DecodingReport& report);

// Returns the natural logarithm of the probability of each whole program of the sketch among those
// that the grammar allows; minus infinity for programs that are too long.
Result<std::vector<double>> log_likelihoods(LanguageDecoder& decoder, const learn::lm::Positions& prompt,
                                            const search::AnsorContext& context,
                                            std::span<const record::AnsorParts> programs,
                                            learn::lm::Quality quality, DecodingReport& report);

}  // namespace tensorsmith::engine
