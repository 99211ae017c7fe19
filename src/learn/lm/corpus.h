// A corpus: programs of many tasks, written as sentences, in a file. Sentences of measured programs
// state their quality; the others only teach the structure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learn/lm/sentences.h"
#include "target/target.h"

namespace tensorsmith::learn::lm {

inline constexpr int kCorpusVersion = 2;

struct Corpus {
  struct Task {
    std::string key, name, text;  // of the workload
    int32_t device = 0;           // index in devices; its cores are the number of threads
  };
  // A prompt: a task and a sketch.
  struct Prompt {
    int32_t task = 0, sketch = 0;
    std::string structure;                      // the sketch's text, by which it is found again
    std::vector<std::vector<int64_t>> similar;  // decisions of fast programs of similar tasks, adapted
    // For a sketch from Ansor's records, whose steps are in `structure`: the steps that may follow.
    // Empty for a sketch of Tensorsmith's design space.
    std::vector<std::string> placements;
  };
  struct Sentence {
    int32_t prompt = 0;
    Quality quality = Quality::kUnmeasured;
    std::vector<int64_t> decisions;  // in the order of the answer
    std::vector<TokenMask> allowed;  // for each token: which tokens are allowed there
  };

  std::vector<target::Device> devices;
  std::vector<Task> tasks;
  std::vector<Prompt> prompts;
  std::vector<Sentence> sentences;

  std::string hash() const;
};

// Converts decisions to a sentence for a prompt. answer: at its beginning; must allow the
// decisions.
Corpus::Sentence make_sentence(int32_t prompt, Quality quality, std::vector<int64_t> decisions,
                               Answer& answer);

// Adds a task with its prompts and their sentences. The sentences refer to these prompts by numbers
// from 0 on.
void add_task(Corpus& corpus, Corpus::Task task, std::vector<Corpus::Prompt> prompts,
              std::vector<Corpus::Sentence> sentences);

// Replaces the file atomically.
Status write_corpus(const Corpus& corpus, const std::string& path);
// kCorrupt for a damaged file, or one of another kind; kMismatch for another version.
Result<Corpus> read_corpus(const std::string& path);

}  // namespace tensorsmith::learn::lm
