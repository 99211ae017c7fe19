#include "lab/language_corpus.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "engine/language/sketch_contexts.h"
#include "engine/tune/prepare_tasks.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "learn/lm/prompt.h"
#include "search/pipeline.h"
#include "search/plausible.h"

namespace tensorsmith::lab {

namespace {

using learn::lm::Corpus;
using learn::lm::Quality;

constexpr double kFastest = 0.5;  // share of the fastest programs in places_to_learn
// Candidates drawn for each one that is kept as a favourite of the estimate.
constexpr size_t kDrawn = 12;

// A task on a device with its measured programs.
struct Source {
  graph::Task task;
  size_t device = 0;
  struct Measured {
    space::Candidate candidate;
    std::string trace;
    double seconds = 0;
  };
  std::vector<Measured> measured;
  bool unmeasured = false;
};

// Contribution of a source to a corpus: prompts with their sentences, numbered from 0.
struct Written {
  std::vector<Corpus::Prompt> prompts;
  std::vector<Corpus::Sentence> sentences;
};

class SourceWriter {
 public:
  SourceWriter(const Source& source, const target::Device& device, const engine::WarmStart& known,
               const CorpusOptions& options)
      : source_(source), options_(options), rng_(Hasher().add(options.seed).add(source.task.key).digest64()) {
    auto task = engine::prepare_task(source.task, device);
    if (!task.ok()) return;
    task_ = std::move(*task);
    contexts_ = engine::sketch_contexts(*task_, known);
  }

  Written write() {
    if (task_ == nullptr) return {};
    add_measured();
    if (source_.unmeasured) add_unmeasured();
    return std::move(out_);
  }

 private:
  void add(const space::Candidate& candidate, Quality quality) {
    const auto& context = contexts_[candidate.sketch];
    if (context == nullptr || context->grammar.decisions().empty()) return;
    const auto [prompt, fresh] =
        prompts_.try_emplace(candidate.sketch, static_cast<int32_t>(out_.prompts.size()));
    if (fresh) {
      Corpus::Prompt made{0, candidate.sketch, task_->design().describe(candidate.sketch), {}, {}};
      for (const auto& similar : context->similar)
        made.similar.push_back(search::decisions_in_order(context->grammar, similar));
      out_.prompts.push_back(std::move(made));
    }
    search::SpaceAnswer answer(*context, &candidate);
    out_.sentences.push_back(learn::lm::make_sentence(
        prompt->second, quality, search::decisions_in_order(context->grammar, candidate), answer));
  }

  void add_measured() {
    std::vector<const Source::Measured*> usable;
    for (const auto& m : source_.measured) {
      if (!task_->design().check(m.candidate).ok()) continue;
      const auto trace = task_->design().to_trace(m.candidate);
      if (trace.ok() && sched::print(*trace) == m.trace) usable.push_back(&m);
    }
    std::stable_sort(usable.begin(), usable.end(), [](auto* a, auto* b) { return a->seconds < b->seconds; });
    if (usable.empty()) return;
    const double best = usable.front()->seconds;
    for (const size_t place : places_to_learn(usable.size(), options_.measured))
      add(usable[place]->candidate, learn::lm::quality_of(usable[place]->seconds / best - 1));
  }

  void add_unmeasured() {
    struct Drawn {
      double estimate;
      space::Candidate candidate;
    };
    std::vector<Drawn> drawn;
    std::set<uint64_t> seen;
    const auto draw = [&](size_t count) {
      for (size_t i = 0; i < count; ++i) {
        space::Candidate c = task_->design().sample(rng_);
        if (seen.insert(c.hash()).second) drawn.push_back({task_->design().estimate(c), std::move(c)});
      }
    };
    const size_t half = options_.unmeasured / 2;
    draw(options_.unmeasured - half);
    for (const auto& d : drawn) add(d.candidate, Quality::kUnmeasured);
    drawn.clear();
    draw(half * kDrawn);
    std::stable_sort(drawn.begin(), drawn.end(),
                     [](const Drawn& a, const Drawn& b) { return a.estimate < b.estimate; });
    if (drawn.size() > half) drawn.resize(half);
    for (const auto& d : drawn) add(d.candidate, Quality::kUnmeasured);
  }

  const Source& source_;
  const CorpusOptions& options_;
  Rng rng_;
  std::shared_ptr<const search::PreparedTask> task_;  // null: its design space could not be built
  std::vector<std::shared_ptr<const search::SketchContext>> contexts_;
  std::map<int, int32_t> prompts_;  // by sketch
  Written out_;
};

// Adds a source for each task and device of a database.
Status add_database(const std::string& path, const CorpusOptions& options,
                    std::vector<target::Device>& devices, std::vector<Source>& sources) {
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open_read_only(path));
  TS_ASSIGN_OR_RETURN(const auto infos, database->tasks());
  TS_ASSIGN_OR_RETURN(const auto stored, database->devices());
  std::map<std::string, size_t> device_of;
  for (const auto& [key, device] : stored) {
    auto known = std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d.key() == key; });
    if (known == devices.end()) known = devices.insert(devices.end(), device);
    device_of[key] = known - devices.begin();
  }
  std::map<std::string, const record::TaskInfo*> tasks;
  for (const auto& info : infos)
    if (options.held_out.count(info.key) == 0) tasks[info.key] = &info;
  std::map<std::pair<std::string, size_t>, size_t> places;
  for (size_t i = 0; i < sources.size(); ++i) places[{sources[i].task.key, sources[i].device}] = i;
  return database->for_each([&](const record::Record& record) -> Status {
    const auto info = tasks.find(record.task_key);
    const auto device = device_of.find(record.device_key);
    if (!record.result.ok() || info == tasks.end() || device == device_of.end() || !record.candidate.point)
      return {};
    if (!search::is_plausible(record.result,
                              search::implausible_below(info->second->flops, 0, devices[device->second])))
      return {};
    const auto [place, fresh] = places.try_emplace({record.task_key, device->second}, sources.size());
    if (fresh) {
      auto workload = ir::parse_workload(info->second->text);
      if (!workload.ok()) {
        places.erase(place);
        return {};
      }
      Source source;
      source.task.key = info->second->key;
      source.task.name = info->second->name;
      source.task.workload = std::move(*workload);
      source.task.flops = info->second->flops;
      source.device = device->second;
      sources.push_back(std::move(source));
    }
    sources[place->second].measured.push_back(
        {search::from_point(*record.candidate.point), record.trace, record.result.best_estimate()});
    return {};
  });
}

}  // namespace

std::vector<size_t> places_to_learn(size_t count, size_t most) {
  const size_t all = std::min(count, most);
  const auto fastest = count <= most ? all : static_cast<size_t>(kFastest * static_cast<double>(all));
  std::vector<size_t> places;
  for (size_t i = 0; i < all; ++i)
    places.push_back(i < fastest ? i : fastest + (i - fastest) * (count - fastest) / (all - fastest));
  return places;
}

Result<Corpus> make_corpus(const std::vector<engine::ModelSource>& models, const CorpusOptions& options,
                           const std::function<void(const CorpusProgress&)>& progress,
                           const std::atomic<bool>& cancel) {
  Corpus corpus;
  corpus.devices = options.devices;
  std::vector<Source> sources;
  if (!models.empty()) {
    TS_ASSIGN_OR_RETURN(auto shared, engine::load_tasks(models));
    for (const auto& one : shared) {
      if (options.held_out.count(one.task.key) > 0) continue;
      for (size_t d = 0; d < options.devices.size(); ++d) {
        Source source;
        source.task = one.task;
        source.device = d;
        source.unmeasured = true;
        sources.push_back(std::move(source));
      }
    }
  }
  engine::WarmStart known;
  for (const std::string& path : options.databases) {
    TS_RETURN_IF_ERROR(add_database(path, options, corpus.devices, sources));
    TS_RETURN_IF_ERROR(known.add_file(path));
  }
  known.forget(options.held_out);
  ThreadPool pool(options.threads);
  std::vector<Written> written(sources.size());
  std::mutex mutex;
  CorpusProgress done;
  done.of = sources.size();
  pool.parallel_for(std::ssize(sources), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !cancel; ++i) {
      const Source& source = sources[i];
      Written& out = written[i];
      out = SourceWriter(source, corpus.devices[source.device], known, options).write();
      const std::lock_guard lock(mutex);
      ++done.tasks;
      done.sentences += out.sentences.size();
      if (progress) progress(done);
    }
  });
  if (cancel) return Error{ErrorCode::kCancelled, "", "interrupted; no corpus was written"};
  for (size_t i = 0; i < sources.size(); ++i) {
    if (written[i].prompts.empty()) continue;
    learn::lm::add_task(corpus,
                        {sources[i].task.key, sources[i].task.name, ir::print(sources[i].task.workload),
                         static_cast<int32_t>(sources[i].device)},
                        std::move(written[i].prompts), std::move(written[i].sentences));
  }
  return corpus;
}

Result<std::unique_ptr<CorpusSentences>> CorpusSentences::create(Corpus corpus,
                                                                 const learn::lm::PromptOptions& prompting,
                                                                 ThreadPool& pool) {
  auto out = std::make_unique<CorpusSentences>();
  out->hash_ = corpus.hash();
  out->corpus_ = std::move(corpus);
  out->prompting_ = prompting;
  const Corpus& c = out->corpus_;
  std::vector<std::vector<size_t>> prompts_of(c.tasks.size());
  for (size_t p = 0; p < c.prompts.size(); ++p) prompts_of[c.prompts[p].task].push_back(p);
  std::vector<std::optional<Prompt>> made(c.prompts.size());
  pool.parallel_for(std::ssize(c.tasks), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const auto& task = c.tasks[t];
      const target::Device& device = c.devices[task.device];
      const auto workload = ir::parse_workload(task.text);
      if (!workload.ok()) continue;
      std::optional<space::DesignSpace> space;
      for (const size_t p : prompts_of[t]) {
        const auto& prompt = c.prompts[p];
        if (!prompt.placements.empty()) {
          made[p] = prompt_of_records(task.key, *workload, device, prompt, prompting);
          continue;
        }
        if (!space) {
          auto built = space::DesignSpace::build(*workload, device, {});
          if (!built.ok()) break;
          space = std::move(*built);
        }
        made[p] = prompt_of_space(task.key, *workload, *space, device, prompt, prompting);
      }
    }
  });
  out->prompt_of_.assign(c.prompts.size(), SIZE_MAX);
  for (size_t s = 0; s < c.sentences.size(); ++s) {
    const size_t p = c.sentences[s].prompt;
    if (made[p] && can_be_read(*made[p], c.sentences[s]))
      made[p]->sentences.push_back(s);
    else
      ++out->left_out_;
  }
  for (size_t p = 0; p < made.size(); ++p) {
    if (!made[p] || made[p]->sentences.empty()) continue;
    out->prompt_of_[p] = out->prompts_.size();
    out->prompts_.push_back(std::move(*made[p]));
  }
  if (out->prompts_.empty())
    return Error{ErrorCode::kMismatch, "corpus",
                 "has no sentence that this version can read; make the corpus again"};
  return out;
}

bool CorpusSentences::can_be_read(const Prompt& prompt, const Corpus::Sentence& sentence) {
  if (prompt.records) return search::from_decisions(*prompt.records, sentence.decisions).has_value();
  return search::from_decisions(prompt.context->grammar, sentence.decisions).has_value();
}

std::optional<CorpusSentences::Prompt> CorpusSentences::prompt_of_space(
    const std::string& task, const ir::Workload& workload, const space::DesignSpace& space,
    const target::Device& device, const Corpus::Prompt& prompt, const learn::lm::PromptOptions& prompting) {
  if (prompt.sketch < 0 || std::cmp_greater_equal(prompt.sketch, space.num_sketches()) ||
      space.describe(prompt.sketch) != prompt.structure)
    return std::nullopt;
  auto grammar = space::SketchGrammar::create(space, prompt.sketch);
  if (!grammar.ok()) return std::nullopt;
  Prompt ready;
  ready.task = task;
  ready.positions = learn::lm::make_prompt(workload, device, prompt.structure, prompting);
  ready.without_similar = std::make_shared<const search::SketchContext>(search::SketchContext{*grammar, {}});
  search::SketchContext with{*grammar, {}};
  for (const auto& decisions : prompt.similar)
    if (auto candidate = search::from_decisions(*grammar, decisions)) with.similar.push_back(*candidate);
  ready.context = std::make_shared<const search::SketchContext>(std::move(with));
  return ready;
}

std::optional<CorpusSentences::Prompt> CorpusSentences::prompt_of_records(
    const std::string& task, const ir::Workload& workload, const target::Device& device,
    const Corpus::Prompt& prompt, const learn::lm::PromptOptions& prompting) {
  auto sketch = sched::parse_trace(prompt.structure);
  if (!sketch.ok()) return std::nullopt;
  std::vector<sched::Trace> placements;
  for (const std::string& text : prompt.placements) {
    auto placement = sched::parse_trace(text);
    if (placement.ok()) placements.push_back(std::move(*placement));
  }
  auto context =
      search::AnsorContext::create(sched::Schedule::create(workload), std::move(*sketch), placements, device);
  if (!context.ok()) return std::nullopt;
  Prompt ready;
  ready.task = task;
  ready.positions = learn::lm::make_prompt(workload, device, (*context)->text(), prompting);
  ready.records = std::move(*context);
  return ready;
}

void CorpusSentences::write(int32_t sentence, Quality quality, bool similar,
                            learn::lm::WrittenAnswer& out) const {
  const Corpus::Sentence& s = corpus_.sentences[sentence];
  const Prompt& prompt = prompts_[prompt_of_[s.prompt]];
  out.positions.clear();
  out.tokens.clear();
  out.allowed = s.allowed;
  std::optional<space::Candidate> candidate;
  std::optional<record::AnsorParts> parts;
  std::unique_ptr<learn::lm::Answer> answer;
  if (prompt.records) {
    parts = search::from_decisions(*prompt.records, s.decisions);
    if (parts) answer = std::make_unique<search::AnsorAnswer>(*prompt.records, &*parts);
  } else {
    const search::SketchContext& context = similar ? *prompt.context : *prompt.without_similar;
    candidate = search::from_decisions(context.grammar, s.decisions);
    if (candidate) answer = std::make_unique<search::SpaceAnswer>(context, &*candidate);
  }
  TS_CHECK(answer != nullptr, "a sentence is not an answer to its prompt");
  learn::lm::TokenWalk walk(*answer);
  for (const int64_t decision : s.decisions) learn::lm::append_tokens(decision, out.tokens);
  for (const uint8_t token : out.tokens) {
    walk.describe(quality, out.positions);
    TS_CHECK(walk.take(token), "a token of a legal candidate is not allowed");
  }
  TS_CHECK(out.allowed.size() == out.tokens.size(), "there is not one mask per token");
}

std::vector<std::string> CorpusSentences::tasks() const {
  std::set<std::string> keys;
  for (const auto& task : corpus_.tasks) keys.insert(task.key);
  return {keys.begin(), keys.end()};
}

std::vector<std::string> CorpusSentences::devices() const {
  std::set<std::string> names;
  for (const auto& device : corpus_.devices) names.insert(device.name);
  return {names.begin(), names.end()};
}

}  // namespace tensorsmith::lab
