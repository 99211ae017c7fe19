#include "lab/language_records.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "engine/language/language_writer.h"
#include "ir/text.h"
#include "lab/language_corpus.h"
#include "learn/lm/prompt.h"
#include "search/pipeline.h"

namespace tensorsmith::lab {

namespace {

using learn::lm::Corpus;

Result<std::shared_ptr<const search::AnsorContext>> context_of(const RecordedTask& task,
                                                               const RecordedSketch& sketch,
                                                               const target::Device& device) {
  return search::AnsorContext::create(task.task->fresh, sketch.sketch, sketch.placements, device);
}

learn::lm::Positions prompt_of(const RecordedTask& task, const search::AnsorContext& context,
                               const target::Device& device, const learn::lm::PromptOptions& prompting) {
  return learn::lm::make_prompt(task.task->workload, device, context.text(), prompting);
}

// Contribution of a task to a corpus: prompts with their sentences, numbered from 0.
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
      prompt_of_sketch[s] = out.prompts.size();
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

// Distributes `count` programs over the sketches.
std::vector<size_t> record_shares(const RecordedTask& task, size_t count, Rng& rng) {
  std::vector<double> weights;
  const double best = task.best_seconds();
  double all = 0;
  for (const auto& sketch : task.sketches) {
    double fastest = std::numeric_limits<double>::infinity();
    for (const auto& program : sketch.programs) fastest = std::min(fastest, program.seconds);
    // Without measurements, all sketches have the same weight.
    const double weight =
        std::isfinite(best) ? std::exp(-(fastest / best - 1) / engine::kSketchTemperature) : 1;
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

// Returns a predicate that is true for measured programs.
std::function<bool(const record::AnsorParts&)> excluded_of(const RecordedSketch& sketch) {
  std::set<std::pair<size_t, std::vector<int32_t>>> measured;
  for (const auto& program : sketch.programs) measured.emplace(program.placement, program.numbers);
  return [&sketch, measured = std::move(measured)](const record::AnsorParts& parts) {
    const auto place = std::find(sketch.placements.begin(), sketch.placements.end(), parts.placement);
    return measured.count({static_cast<size_t>(place - sketch.placements.begin()),
                           {parts.numbers.begin(), parts.numbers.end()}}) > 0;
  };
}

// The programs of a task that are ranked.
struct RankedSketches {
  RankedSketches(const RecordedTask& task, size_t most)
      : programs(task.sketches.size()), places(task.sketches.size()) {
    const auto order = task.fastest_first();
    const size_t count = std::min(order.size(), most);
    for (size_t i = 0; i < count; ++i) {
      const auto& [s, p] = order[i * order.size() / count];
      const RecordedSketch& sketch = task.sketches[s];
      programs[s].push_back(sketch.parts_of(sketch.programs[p]));
      places[s].push_back(i);
      seconds.push_back(sketch.programs[p].seconds);
    }
  }

  std::vector<std::vector<record::AnsorParts>> programs;  // by sketch
  std::vector<std::vector<size_t>> places;                // indices into `seconds` of these programs
  std::vector<double> seconds;                            // ascending
};

// `scores` has a score for each program; the least score ranks first.
RankedTask::Found found(const std::vector<double>& seconds, const std::vector<double>& scores) {
  std::vector<size_t> order(seconds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Among equal scores the slower program ranks first, so that a model with constant scores gains
  // nothing.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return scores[a] != scores[b] ? scores[a] < scores[b] : seconds[a] > seconds[b];
  });
  RankedTask::Found out{};
  for (size_t i = 0; i < kRankedFirst.size(); ++i) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t k = 0; k < std::min(kRankedFirst[i], order.size()); ++k)
      least = std::min(least, seconds[order[k]]);
    out[i] = seconds.front() / least;
  }
  return out;
}

// Returns predictions in the order of ranked.seconds.
Result<std::vector<double>> predicted_seconds(const learn::CostModel& model, const RecordedTask& task,
                                              const RankedSketches& ranked, const target::Device& device) {
  const search::QueriedTask queried(learn::stored_workload(*task.task), task.task->workload, device);
  std::vector<std::shared_ptr<const search::ProgramInputs>> inputs;
  std::vector<learn::ProgramQuery> queries;
  std::vector<size_t> places;
  for (size_t s = 0; s < ranked.programs.size(); ++s)
    for (size_t i = 0; i < ranked.programs[s].size(); ++i) {
      const auto trace = record::join_trace(ranked.programs[s][i]);
      TS_CHECK(trace.has_value(), "a recorded program lacks some of its numbers");
      TS_ASSIGN_OR_RETURN(const auto& made,
                          search::inputs_of(queried, task.task->workload, *trace, model.inputs()));
      queries.push_back(inputs.emplace_back(made)->query(queried));
      places.push_back(ranked.places[s][i]);
    }
  TS_ASSIGN_OR_RETURN(const auto predictions, model.predict(queries));
  std::vector<double> seconds(predictions.size());
  for (size_t i = 0; i < predictions.size(); ++i) seconds[places[i]] = predictions[i].ranked();
  return seconds;
}

}  // namespace

Status add_recorded(Corpus& corpus, const RecordedTasks& recorded, size_t measured, int threads,
                    const std::atomic<bool>& cancel) {
  std::vector<int32_t> device_of;
  for (const auto& device : recorded.devices) {
    const auto known = std::find_if(corpus.devices.begin(), corpus.devices.end(),
                                    [&](const auto& d) { return d.key() == device.key(); });
    device_of.push_back(known - corpus.devices.begin());
    if (known == corpus.devices.end()) corpus.devices.push_back(device);
  }
  std::vector<Sentences> made(recorded.tasks.size());
  ThreadPool pool(threads);
  pool.parallel_for(std::ssize(made), 1, [&](int64_t begin, int64_t end) {
    for (size_t i = begin; std::cmp_less(i, end) && !cancel; ++i)
      made[i] = sentences_of(recorded.tasks[i], recorded.devices[recorded.tasks[i].device], measured);
  });
  if (cancel) return Error{ErrorCode::kCancelled, "", "interrupted; no corpus was written"};
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].sentences.empty()) continue;
    const auto& task = *recorded.tasks[i].task;
    learn::lm::add_task(
        corpus,
        {task.structural_key, task.name, ir::print(task.workload), device_of[recorded.tasks[i].device]},
        std::move(made[i].prompts), std::move(made[i].sentences));
  }
  return {};
}

Result<WrittenRecords> write_records(engine::LanguageDecoder& decoder, const RecordedTask& task,
                                     const target::Device& device, const record::AnsorWorkloads& workloads,
                                     const RecordWriting& options, engine::DecodingReport& report) {
  Rng rng(Hasher().add(options.seed).add(task.task->key).add(device.key()).digest64());
  const auto shares = record_shares(task, options.count, rng);
  WrittenRecords out;
  for (size_t s = 0; s < shares.size(); ++s) {
    if (shares[s] == 0) continue;
    TS_ASSIGN_OR_RETURN(const auto context, context_of(task, task.sketches[s], device));
    const engine::RecordRequest request{shares[s], options.sampling, excluded_of(task.sketches[s])};
    TS_ASSIGN_OR_RETURN(auto generated, engine::generate_records(
                                            decoder, prompt_of(task, *context, device, options.prompting),
                                            *context, request, rng, report));
    for (auto& one : generated) {
      record::AnsorRecord record;
      record.task = task.sketches[s].like;
      record.trace = *record::join_trace(one.parts);
      record.split_extents = std::move(one.split_extents);
      record.seconds = {0};
      std::string line = record::to_ansor_line(record);
      ++out.programs;
      // Parses and replays the written record, as a program that measures it will do.
      record::AnsorRecord again;
      if (record::parse_ansor_record(line, again).ok() && workloads.replay(again).ok())
        out.lines.push_back(std::move(line));
    }
  }
  return out;
}

double mean_of_chance(const std::vector<double>& seconds, size_t k) {
  const double n = seconds.size();
  const auto drawn = std::min(static_cast<double>(k), n);
  double mean = 0, probability = drawn / n;  // that the fastest of the drawn programs is program i
  for (size_t i = 0; i < seconds.size() && probability > 0; ++i) {
    mean += probability * seconds.front() / seconds[i];
    const double behind = n - i - 1;
    if (behind < drawn) break;
    probability *= (behind - drawn + 1) / behind;
  }
  return mean;
}

Result<RankedTask> rank_records(engine::LanguageDecoder& decoder, const RecordedTask& task,
                                const target::Device& device, const RecordRanking& options,
                                engine::DecodingReport& report) {
  const RankedSketches ranked(task, options.programs);
  RankedTask out;
  out.programs = ranked.seconds.size();
  std::vector<double> scores(out.programs), contrasts(out.programs);
  for (size_t s = 0; s < task.sketches.size(); ++s) {
    if (ranked.programs[s].empty()) continue;
    TS_ASSIGN_OR_RETURN(const auto context, context_of(task, task.sketches[s], device));
    const auto prompt = prompt_of(task, *context, device, options.prompting);
    const auto likelihoods_as = [&](learn::lm::Quality quality) {
      return engine::log_likelihoods(decoder, prompt, *context, ranked.programs[s], quality, report);
    };
    TS_ASSIGN_OR_RETURN(const auto best, likelihoods_as(learn::lm::Quality::kBest));
    TS_ASSIGN_OR_RETURN(const auto slow, likelihoods_as(learn::lm::Quality::kSlow));
    for (size_t i = 0; i < best.size(); ++i) {
      const size_t place = ranked.places[s][i];
      scores[place] = -best[i];
      // Programs that are too long for the model rank last.
      contrasts[place] = std::isfinite(best[i]) ? slow[i] - best[i] : -best[i];
    }
  }
  out.likeliest = found(ranked.seconds, scores);
  out.contrasted = found(ranked.seconds, contrasts);
  if (options.cost_model != nullptr) {
    TS_ASSIGN_OR_RETURN(scores, predicted_seconds(*options.cost_model, task, ranked, device));
    out.predicted = found(ranked.seconds, scores);
  }
  for (size_t i = 0; i < kRankedFirst.size(); ++i)
    out.chance[i] = mean_of_chance(ranked.seconds, kRankedFirst[i]);
  return out;
}

}  // namespace tensorsmith::lab
