#include "engine/language/language_writer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/hash.h"
#include "engine/language/different_programs.h"
#include "engine/language/sketch_contexts.h"
#include "engine/tune/candidate_times.h"
#include "learn/lm/prompt.h"

namespace tensorsmith::engine {

namespace {

// Weight of a nat of log-likelihood relative to the logarithm of seconds when a cost model ranks.
// The likelihood counts because, among many candidates, the best by the cost model alone are often
// those that it is wrong about. Chosen among 0, .03 and .1 on networks that are in neither training
// nor tests.
constexpr double kLikelihoodWeight = 0.1;
// Sketches with a smaller share of the answers are dropped.
constexpr double kLeastShare = 0.04;

struct Share {
  size_t sketch = 0;
  double share = 0;
};

// Returns each sketch's share of the answers, the largest first.
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

// The sketches of a task with their prompts.
class LanguageWriter::TaskSketches {
 public:
  TaskSketches(const search::PreparedTask& task, const WarmStart& known,
               const learn::lm::PromptOptions& prompting)
      : contexts_(sketch_contexts(task, known)), shares_(shares_of(contexts_, task.design())) {
    for (const Share& share : shares_)
      prompts_[share.sketch] = learn::lm::make_prompt(task.workload(), task.device(),
                                                      task.design().describe(share.sketch), prompting);
  }

  // Writes candidates sketch by sketch; their likelihood includes that of the sketch.
  Result<std::vector<GeneratedCandidate>> write(LanguageDecoder& decoder, size_t count,
                                                const SamplingOptions& sampling,
                                                const search::ScheduleWriter::Known& known, Rng& rng,
                                                DecodingReport& report) const {
    std::vector<GeneratedCandidate> written;
    for (const Share& share : shares_) {
      GenerateRequest request{
          static_cast<size_t>(std::ceil(share.share * static_cast<double>(count))), sampling, known, {}};
      TS_ASSIGN_OR_RETURN(auto part, generate(decoder, prompts_.at(share.sketch), *contexts_[share.sketch],
                                              request, rng, report));
      for (auto& one : part) {
        one.log_likelihood += std::log(share.share);
        written.push_back(std::move(one));
      }
    }
    return written;
  }

  Result<std::vector<GeneratedCandidate>> rewrite(LanguageDecoder& decoder,
                                                  std::span<const space::Candidate> parents, size_t count,
                                                  const search::ScheduleWriter::Known& known, Rng& rng,
                                                  DecodingReport& report) const {
    std::map<size_t, std::vector<AnswerPrefix>> prefixes;  // by sketch
    for (size_t i = 0; i < count; ++i) {
      const space::Candidate& parent = parents[rng.below(parents.size())];
      const size_t sketch = parent.sketch;
      if (prompts_.count(sketch) == 0) continue;
      const size_t decisions = contexts_[sketch]->grammar.decisions().size();
      prefixes[sketch].push_back({&parent, rng.below(decisions)});
    }
    std::vector<GeneratedCandidate> written;
    for (auto& [sketch, list] : prefixes) {
      GenerateRequest request{list.size(), SamplingOptions(), known, std::move(list)};
      TS_ASSIGN_OR_RETURN(auto part,
                          generate(decoder, prompts_.at(sketch), *contexts_[sketch], request, rng, report));
      for (auto& one : part) written.push_back(std::move(one));
    }
    return written;
  }

 private:
  std::vector<std::shared_ptr<const search::SketchContext>> contexts_;
  std::vector<Share> shares_;
  std::map<size_t, learn::lm::Positions> prompts_;  // by sketch
};

class LanguageWriter::TaskWriter final : public search::ScheduleWriter {
 public:
  TaskWriter(LanguageWriter& writer, std::shared_ptr<const search::PreparedTask> task, const WarmStart& known)
      : writer_(writer), task_(std::move(task)), known_(known) {}

  Result<std::vector<space::Candidate>> write(size_t count, const Known& known, Rng& rng) override {
    const std::lock_guard lock(writer_.mutex_);
    prepare();
    return ordered(sketches_->write(*writer_.decoder_, count, {}, known, rng, writer_.report_));
  }

  Result<std::vector<space::Candidate>> rewrite(std::span<const space::Candidate> parents, size_t count,
                                                const Known& known, Rng& rng) override {
    const std::lock_guard lock(writer_.mutex_);
    prepare();
    return ordered(sketches_->rewrite(*writer_.decoder_, parents, count, known, rng, writer_.report_));
  }

 private:
  void prepare() {
    if (sketches_ == nullptr) sketches_ = std::make_unique<TaskSketches>(*task_, known_, writer_.prompting_);
  }

  static Result<std::vector<space::Candidate>> ordered(Result<std::vector<GeneratedCandidate>> written) {
    if (!written.ok()) return written.error();
    std::stable_sort(written->begin(), written->end(),
                     [](const auto& a, const auto& b) { return a.log_likelihood > b.log_likelihood; });
    std::vector<space::Candidate> result;
    for (auto& one : *written) result.push_back(std::move(one.candidate));
    return result;
  }

  LanguageWriter& writer_;
  std::shared_ptr<const search::PreparedTask> task_;
  const WarmStart& known_;
  std::unique_ptr<TaskSketches> sketches_;
};

Result<std::unique_ptr<LanguageWriter>> LanguageWriter::create(const learn::lm::LanguageModel& model,
                                                               int threads) {
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
  DecoderOptions options;
  options.threads = threads;
  TS_ASSIGN_OR_RETURN(auto decoder, LanguageDecoder::create(model, machine, options));
  return std::unique_ptr<LanguageWriter>(new LanguageWriter(std::move(decoder), model.prompting));
}

Result<std::vector<space::Candidate>> LanguageWriter::write(const search::PreparedTask& task,
                                                            const WarmStart& known,
                                                            const WriterOptions& options) {
  const TaskSketches sketches(task, known, prompting_);
  Rng rng(Hasher().add("language writer").add(options.seed).add(task.key()).digest64());
  const std::lock_guard lock(mutex_);
  TS_ASSIGN_OR_RETURN(auto written,
                      sketches.write(*decoder_, options.count * std::max<size_t>(1, options.written),
                                     options.sampling, options.known, rng, report_));
  std::vector<space::Candidate> candidates;
  std::vector<double> order;
  for (auto& one : written) {
    candidates.push_back(std::move(one.candidate));
    order.push_back(-one.log_likelihood);
  }
  if (options.cost_model != nullptr) {
    CandidateTimes times(task, options.cost_model);
    const auto seconds = times.log_seconds(candidates);
    if (times.failed()) return *times.failed();
    for (size_t i = 0; i < seconds.size(); ++i) order[i] = seconds[i] + kLikelihoodWeight * order[i];
  }
  std::vector<size_t> places(candidates.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return order[a] < order[b]; });
  std::vector<space::Candidate> ranked;
  for (const size_t place : places) ranked.push_back(std::move(candidates[place]));
  return different_programs(task.design(), std::move(ranked), options.count);
}

std::shared_ptr<search::ScheduleWriter> LanguageWriter::of_task(
    std::shared_ptr<const search::PreparedTask> task, const WarmStart& known) {
  return std::make_shared<TaskWriter>(*this, std::move(task), known);
}

DecodingReport LanguageWriter::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

}  // namespace tensorsmith::engine
