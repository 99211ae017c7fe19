#include "learn/net/language_reader.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace tensorsmith::learn::net {

namespace {

using lm::Quality;

// Collects the positions of several sequences.
class PositionCollector {
 public:
  void add(const lm::Positions& positions) {
    for (size_t i = 0; i + 1 < positions.begin.size(); ++i)
      begin_.push_back(std::ssize(entries_) + positions.begin[i]);
    for (const lm::Feature& feature : positions.features) {
      entries_.push_back(feature.entry);
      weights_.push_back(feature.weight);
    }
    rows_.push_back(rows_.back() + std::ssize(positions));
  }
  void tensors(torch::Device device, Tensor& entries, Tensor& weights, Tensor& begin, Ragged& ragged) const {
    entries = torch::tensor(entries_, torch::kInt64).to(device);
    weights = torch::tensor(weights_, torch::kFloat32).to(device);
    begin = torch::tensor(begin_, torch::kInt64).to(device);
    ragged = Ragged::create(rows_, device);
  }

 private:
  std::vector<int64_t> entries_, begin_, rows_{0};
  std::vector<float> weights_;
};
// Collects the answers of a batch with their tokens.
class AnswerCollector {
 public:
  void add(const lm::WrittenAnswer& answer, bool masked) {
    positions_.add(answer.positions);
    for (size_t t = 0; t < answer.tokens.size(); ++t) {
      tokens_.push_back(answer.tokens[t]);
      for (size_t o = 0; o < lm::kOutputs; ++o) allowed_.push_back(!masked || answer.allowed[t][o] ? 1 : 0);
    }
  }
  void tensors(torch::Device device, LanguageBatch& out) const {
    positions_.tensors(device, out.answer_entries, out.answer_weights, out.answer_begin, out.answers);
    out.tokens = torch::tensor(tokens_, torch::kInt64).to(device);
    out.allowed = torch::tensor(allowed_, torch::kUInt8)
                      .view({std::ssize(tokens_), lm::kOutputs})
                      .to(torch::kBool)
                      .to(device);
  }

 private:
  PositionCollector positions_;
  std::vector<int64_t> tokens_;
  std::vector<uint8_t> allowed_;
};

}  // namespace

LanguageReader::LanguageReader(const lm::SentenceSource& source, const lm::LanguageTraining& training,
                               uint64_t seed, torch::Device device)
    : source_(source),
      training_(training),
      seed_(seed),
      device_(device),
      pairs_(training.preference > 0),
      draws_(pairs_ ? std::max(1, training.answers / 2) : training.answers) {
  for (size_t p = 0; p < source.prompts(); ++p) {
    Prompt prompt = choose(p);
    if (prompt.drawn == 0) continue;
    Rng rng(Hasher().add("validation").add(source.task_of(p)).digest64());
    (rng.uniform() < training.validation ? validation_ : train_).push_back(std::move(prompt));
  }
  for (const Prompt& prompt : train_) count_ += prompt.drawn;
}

LanguageReader::Prompt LanguageReader::choose(size_t number) const {
  Prompt prompt;
  prompt.number = number;
  const auto quality = [&](int32_t s) { return source_.quality_of(s); };
  for (const int32_t s : source_.sentences_of(number)) {
    const bool measured = quality(s) != Quality::kUnmeasured;
    if (pairs_ ? measured : measured ? quality(s) <= training_.worst : training_.unmeasured)
      prompt.sentences.push_back(s);
  }
  prompt.drawn = prompt.sentences.size();
  if (!pairs_ || prompt.sentences.empty()) return prompt;
  // Sorts the best first. A sentence of the worst quality present has no worse one and cannot be
  // the better of a pair.
  std::stable_sort(prompt.sentences.begin(), prompt.sentences.end(),
                   [&](int32_t a, int32_t b) { return quality(a) < quality(b); });
  const Quality last = quality(prompt.sentences.back());
  const auto end = std::find_if(prompt.sentences.begin(), prompt.sentences.end(), [&](int32_t s) {
    return quality(s) > training_.worst || quality(s) == last;
  });
  prompt.drawn = end - prompt.sentences.begin();
  return prompt;
}

LanguageReader::Read LanguageReader::draw(const Prompt& prompt, Rng& rng) const {
  const int32_t sentence = prompt.sentences[rng.below(prompt.drawn)];
  const Quality quality = pairs_ ? Quality::kBest : source_.quality_of(sentence);
  return {sentence, quality, !rng.bernoulli(training_.without_similar)};
}

LanguageReader::Read LanguageReader::draw_worse(const Prompt& prompt, const Read& better, Rng& rng) const {
  const Quality quality = source_.quality_of(better.sentence);
  const auto first = std::partition_point(prompt.sentences.begin(), prompt.sentences.end(),
                                          [&](int32_t s) { return source_.quality_of(s) <= quality; });
  Read worse = better;
  worse.sentence =
      first[static_cast<ptrdiff_t>(rng.below(static_cast<uint64_t>(prompt.sentences.end() - first)))];
  return worse;
}

LanguageBatch LanguageReader::make(const std::vector<Prompt>& from, const char* what, int64_t number) const {
  Rng rng(Hasher().add(what).add(seed_).add(number).digest64());
  // Prompts with more sentences are read more often, but less than in proportion.
  std::vector<double> weights;
  for (const Prompt& prompt : from) weights.push_back(std::sqrt(prompt.drawn));
  PositionCollector prompts;
  AnswerCollector answers;
  const auto add = [&](const Read& read) {
    lm::WrittenAnswer answer;
    source_.write(read.sentence, read.quality, read.similar, answer);
    answers.add(answer, training_.masked);
  };
  for (int i = 0; i < training_.prompts; ++i) {
    const Prompt& prompt = from[rng.weighted(weights)];
    prompts.add(source_.prompt(prompt.number));
    for (int a = 0; a < draws_; ++a) {
      const Read read = draw(prompt, rng);
      add(read);
      if (pairs_) add(draw_worse(prompt, read, rng));
    }
  }
  LanguageBatch out;
  prompts.tensors(device_, out.prompt_entries, out.prompt_weights, out.prompt_begin, out.prompts);
  answers.tensors(device_, out);
  return out;
}

}  // namespace tensorsmith::learn::net
