#include "engine/language_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "engine/judge.h"
#include "engine/language_corpus.h"
#include "learn/lm/prompt.h"

namespace tensorsmith::engine {

namespace {

// Of the softmax over sketches, as TLM draws them: exp(-(seconds / least seconds - 1) / kSketchTemperature).
constexpr double kSketchTemperature = 0.3;
// Sketches with a smaller share of the answers get none.
constexpr double kLeastShare = 0.04;

struct Share {
  size_t sketch = 0;
  double share = 0;
};

// By sketch, of the answers; the largest first.
std::vector<Share> shares_of(const std::vector<std::shared_ptr<const search::SketchContext>>& contexts,
                             const space::DesignSpace& space) {
  std::vector<Share> shares;
  double least = std::numeric_limits<double>::infinity(), sum = 0;
  for (size_t k = 0; k < contexts.size(); ++k) {
    if (contexts[k] == nullptr || contexts[k]->grammar.decisions().empty()) continue;
    const double seconds = space.estimate(contexts[k]->grammar.draft());
    shares.push_back({k, seconds});
    least = std::min(least, seconds);
  }
  for (Share& s : shares) sum += s.share = std::exp(-(s.share / least - 1) / kSketchTemperature);
  double kept = 0;
  for (Share& s : shares) {
    s.share /= sum;
    if (s.share < kLeastShare) s.share = 0;
    kept += s.share;
  }
  std::erase_if(shares, [](const Share& s) { return s.share == 0; });
  for (Share& s : shares) s.share /= kept;
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.share > b.share; });
  return shares;
}

}  // namespace

Result<std::unique_ptr<LanguageWriter>> LanguageWriter::create(const learn::lm::LanguageModel& model,
                                                               int threads) {
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
  DecoderOptions options;
  options.threads = threads;
  TS_ASSIGN_OR_RETURN(auto decoder, LanguageDecoder::create(model, machine, options));
  return std::unique_ptr<LanguageWriter>(new LanguageWriter(std::move(decoder)));
}

Result<std::vector<space::Candidate>> LanguageWriter::write(const graph::Task& task,
                                                            const space::DesignSpace& space,
                                                            const target::Device& device,
                                                            const WarmStart& known,
                                                            const WriterOptions& options) {
  const auto contexts = sketch_contexts(task, space, device, known);
  std::vector<GeneratedCandidate> written;
  Rng rng(Hasher().add("language writer").add(options.seed).add(task.key).digest64());
  for (const Share& share : shares_of(contexts, space)) {
    const auto& context = *contexts[share.sketch];
    const auto prompt = learn::lm::make_prompt(task.workload, device, device.cores,
                                               space.describe(static_cast<int>(share.sketch)));
    const auto count = static_cast<size_t>(
        std::ceil(share.share * static_cast<double>(options.count * std::max<size_t>(1, options.written))));
    TS_ASSIGN_OR_RETURN(auto part,
                        generate(*decoder_, prompt, context, count, options.sampling, rng, {}, report_));
    for (auto& one : part) {
      one.log_likelihood += std::log(share.share);
      written.push_back(std::move(one));
    }
  }
  std::vector<space::Candidate> candidates;
  std::vector<double> order;
  for (auto& one : written) {
    candidates.push_back(std::move(one.candidate));
    order.push_back(-one.log_likelihood);
  }
  if (options.cost_model != nullptr) {
    Judge judge(task, space, device, options.cost_model);
    order = judge.log_seconds(candidates);
    if (judge.failed()) return *judge.failed();
  }
  std::vector<size_t> places(candidates.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return order[a] < order[b]; });
  std::vector<space::Candidate> result;
  for (size_t i = 0; i < std::min(options.count, places.size()); ++i)
    result.push_back(std::move(candidates[places[i]]));
  return result;
}

}  // namespace tensorsmith::engine
