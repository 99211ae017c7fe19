#include "learn/lm/corpus.h"

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_text.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn::lm {

namespace {

using Json = nlohmann::json;

constexpr const char* kCorpusFormat = "tensorsmith corpus";
constexpr size_t kMaskBytes = kOutputs / 8;

Status check_corpus_format(const Metadata& metadata) {
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kCorpusFormat)
    return Error{ErrorCode::kCorrupt, "", "is not a corpus of programs; `lm corpus` makes one"};
  const auto version = metadata.find("version");
  if (version == metadata.end() || version->second != std::to_string(kCorpusVersion))
    return Error{ErrorCode::kMismatch, "", "has another version of the format; make the corpus again"};
  return {};
}

Error damaged(const std::string& what) { return {ErrorCode::kCorrupt, "", "is damaged: " + what}; }

Result<Corpus> read_corpus_file(const TensorFile& file) {
  Corpus corpus;
  try {
    for (const Json& text : Json::parse(file.metadata.at("devices"))) {
      TS_ASSIGN_OR_RETURN(auto device, target::parse_device(text.get<std::string>(), "corpus"));
      corpus.devices.push_back(std::move(device));
    }
    for (const Json& t : Json::parse(file.metadata.at("tasks")))
      corpus.tasks.push_back({t.at("key"), t.at("name"), t.at("text"), t.at("device")});
    for (const Json& p : Json::parse(file.metadata.at("prompts")))
      corpus.prompts.push_back(
          {p.at("task"), p.at("sketch"), p.at("structure"), p.at("similar"), p.at("placements")});
  } catch (const std::exception&) {
    return damaged("its tasks cannot be read");
  }
  for (const auto& task : corpus.tasks)
    if (task.device < 0 || std::cmp_greater_equal(task.device, corpus.devices.size()))
      return damaged("a task refers to a device that does not exist");
  for (const auto& prompt : corpus.prompts)
    if (prompt.task < 0 || std::cmp_greater_equal(prompt.task, corpus.tasks.size()))
      return damaged("a prompt refers to a task that does not exist");
  TS_ASSIGN_OR_RETURN(const auto prompts, file.values<int32_t>("sentence.prompt", {-1}));
  const auto count = std::ssize(prompts);
  TS_ASSIGN_OR_RETURN(const auto quality, file.values<uint8_t>("sentence.quality", {count}));
  TS_ASSIGN_OR_RETURN(const auto begin, file.values<int32_t>("sentence.begin", {count + 1}));
  TS_ASSIGN_OR_RETURN(const auto mask_begin, file.values<int32_t>("sentence.mask_begin", {count + 1}));
  TS_ASSIGN_OR_RETURN(const auto decisions, file.values<int32_t>("decisions", {-1}));
  TS_ASSIGN_OR_RETURN(const auto masks, file.values<uint8_t>("masks", {-1, kMaskBytes}));
  const auto ascending = [](const std::vector<int32_t>& places, size_t end) {
    if (places.front() != 0 || std::cmp_not_equal(places.back(), end)) return false;
    return std::is_sorted(places.begin(), places.end());
  };
  if (!ascending(begin, decisions.size()) || !ascending(mask_begin, masks.size() / kMaskBytes))
    return damaged("its sentences do not fit together");
  for (size_t i = 0; i < prompts.size(); ++i) {
    Corpus::Sentence sentence;
    if (prompts[i] < 0 || std::cmp_greater_equal(prompts[i], corpus.prompts.size()) ||
        quality[i] >= static_cast<uint8_t>(Quality::kCount))
      return damaged("a sentence refers to a prompt or quality that does not exist");
    sentence.prompt = prompts[i];
    sentence.quality = static_cast<Quality>(quality[i]);
    sentence.decisions.assign(decisions.begin() + begin[i], decisions.begin() + begin[i + 1]);
    for (int32_t m = mask_begin[i]; m < mask_begin[i + 1]; ++m) {
      TokenMask mask;
      for (size_t b = 0; b < kOutputs; ++b) mask[b] = (masks[m * kMaskBytes + b / 8] >> (b % 8) & 1) != 0;
      sentence.allowed.push_back(mask);
    }
    corpus.sentences.push_back(std::move(sentence));
  }
  return corpus;
}

TensorFile to_file(const Corpus& corpus) {
  TensorFile file;
  Json devices = Json::array(), tasks = Json::array(), prompts = Json::array();
  for (const auto& device : corpus.devices) devices.push_back(target::to_json(device));
  for (const auto& t : corpus.tasks)
    tasks.push_back({{"key", t.key}, {"name", t.name}, {"text", t.text}, {"device", t.device}});
  for (const auto& p : corpus.prompts)
    prompts.push_back({{"task", p.task},
                       {"sketch", p.sketch},
                       {"structure", p.structure},
                       {"similar", p.similar},
                       {"placements", p.placements}});
  file.metadata = {{"format", kCorpusFormat},
                   {"version", std::to_string(kCorpusVersion)},
                   {"devices", devices.dump()},
                   {"tasks", tasks.dump()},
                   {"prompts", prompts.dump()}};
  std::vector<int32_t> prompt, begin{0}, mask_begin{0}, decisions;
  std::vector<uint8_t> quality, masks;
  for (const auto& s : corpus.sentences) {
    prompt.push_back(s.prompt);
    quality.push_back(static_cast<uint8_t>(s.quality));
    for (const int64_t d : s.decisions) decisions.push_back(d);
    begin.push_back(decisions.size());
    for (const TokenMask& mask : s.allowed) {
      uint8_t bytes[kMaskBytes] = {};
      for (size_t b = 0; b < kOutputs; ++b)
        if (mask[b]) bytes[b / 8] = bytes[b / 8] | 1U << (b % 8);
      masks.insert(masks.end(), std::begin(bytes), std::end(bytes));
    }
    mask_begin.push_back(masks.size() / kMaskBytes);
  }
  const auto count = std::ssize(prompt);
  file.add<int32_t>("sentence.prompt", {count}, prompt);
  file.add<uint8_t>("sentence.quality", {count}, quality);
  file.add<int32_t>("sentence.begin", {count + 1}, begin);
  file.add<int32_t>("sentence.mask_begin", {count + 1}, mask_begin);
  file.add<int32_t>("decisions", {std::ssize(decisions)}, decisions);
  file.add<uint8_t>("masks",
                    {std::ssize(masks) / static_cast<int64_t>(kMaskBytes), static_cast<int64_t>(kMaskBytes)},
                    masks);
  return file;
}

}  // namespace

void add_task(Corpus& corpus, Corpus::Task task, std::vector<Corpus::Prompt> prompts,
              std::vector<Corpus::Sentence> sentences) {
  const int32_t number = corpus.tasks.size();
  const int32_t first = corpus.prompts.size();
  corpus.tasks.push_back(std::move(task));
  for (auto& prompt : prompts) {
    prompt.task = number;
    corpus.prompts.push_back(std::move(prompt));
  }
  for (auto& sentence : sentences) {
    sentence.prompt += first;
    corpus.sentences.push_back(std::move(sentence));
  }
}

Corpus::Sentence make_sentence(int32_t prompt, Quality quality, std::vector<int64_t> decisions,
                               Answer& answer) {
  Corpus::Sentence sentence{prompt, quality, std::move(decisions), {}};
  TokenWalk walk(answer);
  std::vector<uint8_t> tokens;
  for (const int64_t decision : sentence.decisions) append_tokens(decision, tokens);
  for (const uint8_t token : tokens) {
    sentence.allowed.push_back(walk.allowed());
    TS_CHECK(walk.take(token), "a token of a program is not allowed");
  }
  return sentence;
}

std::string Corpus::hash() const { return Hasher().add(to_bytes(to_file(*this))).hex128(); }

Status write_corpus(const Corpus& corpus, const std::string& path) {
  return write_tensor_file(to_file(corpus), path);
}

Result<Corpus> read_corpus(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const TensorFile file, read_tensor_file(path, check_corpus_format));
  auto corpus = read_corpus_file(file);
  if (!corpus.ok()) return Error{corpus.error().code, path, corpus.error().reason};
  return corpus;
}

}  // namespace tensorsmith::learn::lm
