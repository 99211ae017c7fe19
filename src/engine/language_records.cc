#include "engine/language_records.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "engine/language_corpus.h"
#include "engine/language_writer.h"
#include "ir/text.h"
#include "learn/lm/prompt.h"

namespace tensorsmith::engine {

namespace {

using learn::lm::Corpus;

Result<std::shared_ptr<const search::AnsorContext>> context_of(const RecordedTask& task,
                                                               const RecordedSketch& sketch,
                                                               const target::Device& device) {
  return search::AnsorContext::create(task.task->fresh, sketch.sketch, sketch.placements, device);
}

learn::lm::Positions prompt_of(const RecordedTask& task, const search::AnsorContext& context,
                               const target::Device& device, const learn::lm::PromptOptions& prompting) {
  return learn::lm::make_prompt(task.task->workload, device, device.cores, context.text(), prompting);
}

// What a task adds to a corpus: prompts with their sentences, numbered from 0.
struct Sentences {
  std::vector<Corpus::Prompt> prompts;
  std::vector<Corpus::Sentence> sentences;
};

Sentences sentences_of(const RecordedTask& task, const target::Device& device, size_t measured) {
  Sentences out;
  std::vector<int32_t> prompt_of_sketch(task.sketches.size(), -1);
  std::vector<std::shared_ptr<const search::AnsorContext>> contexts(task.sketches.size());
  const auto order = task.fastest_first();
  const double best = task.best_seconds();
  for (const size_t place : places_to_learn(order.size(), measured)) {
    const auto& [s, p] = order[place];
    const RecordedSketch& sketch = task.sketches[s];
    if (contexts[s] == nullptr) {
      auto context = context_of(task, sketch, device);
      if (!context.ok()) continue;
      contexts[s] = std::move(*context);
      prompt_of_sketch[s] = static_cast<int32_t>(out.prompts.size());
      Corpus::Prompt prompt{0, static_cast<int32_t>(s), sched::print(sketch.sketch), {}, {}};
      for (const auto& placement : contexts[s]->placements())
        prompt.placements.push_back(sched::print(placement));
      out.prompts.push_back(std::move(prompt));
    }
    const auto parts = sketch.parts_of(sketch.programs[p]);
    auto decisions = search::decisions_in_order(*contexts[s], parts);
    if (!decisions || decisions->empty()) continue;
    search::AnsorAnswer answer(*contexts[s], &parts);
    const auto quality = learn::lm::quality_of(sketch.programs[p].seconds / best - 1);
    out.sentences.push_back(
        learn::lm::make_sentence(prompt_of_sketch[s], quality, std::move(*decisions), answer));
  }
  return out;
}

// How many of `count` programs each sketch gets.
std::vector<size_t> shares_of(const RecordedTask& task, size_t count, Rng& rng) {
  std::vector<double> weights;
  const double best = task.best_seconds();
  double all = 0;
  for (const auto& sketch : task.sketches) {
    double fastest = std::numeric_limits<double>::infinity();
    for (const auto& program : sketch.programs) fastest = std::min(fastest, program.seconds);
    // Where nothing was measured, all are equal.
    const double weight = std::isfinite(best) ? std::exp(-(fastest / best - 1) / kSketchTemperature) : 1;
    all += weights.emplace_back(weight);
  }
  std::vector<size_t> shares(weights.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    double at = rng.uniform() * all;
    size_t chosen = 0;
    for (size_t s = 0; s < weights.size(); ++s) {
      if (weights[s] <= 0) continue;
      chosen = s;
      if ((at -= weights[s]) < 0) break;
    }
    ++shares[chosen];
  }
  return shares;
}

}  // namespace

Status add_recorded(Corpus& corpus, const RecordedTasks& recorded, size_t measured, int threads,
                    const std::atomic<bool>& cancel) {
  std::vector<int32_t> device_of;
  for (const auto& device : recorded.devices) {
    const auto known = std::find_if(corpus.devices.begin(), corpus.devices.end(),
                                    [&](const auto& d) { return d.key() == device.key(); });
    device_of.push_back(static_cast<int32_t>(known - corpus.devices.begin()));
    if (known == corpus.devices.end()) corpus.devices.push_back(device);
  }
  std::vector<Sentences> made(recorded.tasks.size());
  ThreadPool pool(threads);
  pool.parallel_for(std::ssize(made), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); std::cmp_less(i, end) && !cancel; ++i)
      made[i] = sentences_of(recorded.tasks[i], recorded.devices[recorded.tasks[i].device], measured);
  });
  if (cancel) return Error{ErrorCode::kCancelled, "", "making the corpus was stopped; nothing was written"};
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].sentences.empty()) continue;
    const auto& task = *recorded.tasks[i].task;
    const auto number = static_cast<int32_t>(corpus.tasks.size());
    const auto first = static_cast<int32_t>(corpus.prompts.size());
    corpus.tasks.push_back(
        {task.structural_key, task.name, ir::print(task.workload), device_of[recorded.tasks[i].device]});
    for (auto& prompt : made[i].prompts) {
      prompt.task = number;
      corpus.prompts.push_back(std::move(prompt));
    }
    for (auto& sentence : made[i].sentences) {
      sentence.prompt += first;
      corpus.sentences.push_back(std::move(sentence));
    }
  }
  return {};
}

Result<WrittenRecords> write_records(LanguageDecoder& decoder, const RecordedTask& task,
                                     const target::Device& device, const record::AnsorWorkloads& workloads,
                                     const RecordWriting& options, DecodingReport& report) {
  Rng rng(Hasher().add(options.seed).add(task.task->key).add(device.key()).digest64());
  const auto shares = shares_of(task, options.count, rng);
  WrittenRecords out;
  for (size_t s = 0; s < shares.size(); ++s) {
    if (shares[s] == 0) continue;
    TS_ASSIGN_OR_RETURN(const auto context, context_of(task, task.sketches[s], device));
    TS_ASSIGN_OR_RETURN(auto generated,
                        generate_records(decoder, prompt_of(task, *context, device, options.prompting),
                                         *context, shares[s], options.sampling, rng, report));
    for (auto& one : generated) {
      record::AnsorRecord record;
      record.task = task.sketches[s].like;
      record.trace = *record::join_trace(one.parts);
      record.split_extents = std::move(one.split_extents);
      record.seconds = {0};
      std::string line = record::to_ansor_line(record);
      ++out.programs;
      // What was written is read again, as whoever measures it will.
      record::AnsorRecord again;
      if (record::parse_ansor_record(line, again).ok() && workloads.replay(again).ok())
        out.lines.push_back(std::move(line));
    }
  }
  return out;
}

double mean_of_chance(const std::vector<double>& seconds, size_t k) {
  const auto n = static_cast<double>(seconds.size());
  const auto drawn = std::min(static_cast<double>(k), n);
  double mean = 0, probability = drawn / n;  // that the fastest one that is drawn is this one
  for (size_t i = 0; i < seconds.size() && probability > 0; ++i) {
    mean += probability * seconds.front() / seconds[i];
    const double behind = n - static_cast<double>(i) - 1;
    if (behind < drawn) break;
    probability *= (behind - drawn + 1) / behind;
  }
  return mean;
}

Result<RankedTask> rank_records(LanguageDecoder& decoder, const RecordedTask& task,
                                const target::Device& device, const learn::lm::PromptOptions& prompting,
                                size_t most, DecodingReport& report) {
  const auto order = task.fastest_first();
  const size_t count = std::min(order.size(), most);
  std::vector<std::vector<record::AnsorParts>> programs(task.sketches.size());
  std::vector<std::vector<double>> times(task.sketches.size());
  std::vector<double> seconds;
  for (size_t i = 0; i < count; ++i) {
    const auto& [s, p] = order[i * order.size() / count];
    const auto& sketch = task.sketches[s];
    programs[s].push_back(sketch.parts_of(sketch.programs[p]));
    times[s].push_back(sketch.programs[p].seconds);
    seconds.push_back(sketch.programs[p].seconds);
  }
  std::vector<std::pair<double, double>> ranked;  // minus the log likelihood, seconds
  for (size_t s = 0; s < programs.size(); ++s) {
    if (programs[s].empty()) continue;
    TS_ASSIGN_OR_RETURN(const auto context, context_of(task, task.sketches[s], device));
    TS_ASSIGN_OR_RETURN(const auto likelihoods,
                        log_likelihoods(decoder, prompt_of(task, *context, device, prompting), *context,
                                        programs[s], learn::lm::Quality::kBest, report));
    for (size_t i = 0; i < likelihoods.size(); ++i) ranked.emplace_back(-likelihoods[i], times[s][i]);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  RankedTask out;
  out.programs = ranked.size();
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min<size_t>(5, ranked.size()); ++i) {
    least = std::min(least, ranked[i].second);
    out.top_5 = seconds.front() / least;
    if (i == 0) out.top_1 = out.top_5;
  }
  out.chance_1 = mean_of_chance(seconds, 1);
  out.chance_5 = mean_of_chance(seconds, 5);
  return out;
}

}  // namespace tensorsmith::engine
