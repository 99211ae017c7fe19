// A corpus: programs of many tasks as sentences, in a file. Measured ones say how good they are, the others are there for
// their structure.
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
    std::string key, name, text;  // the workload's
    int32_t device = 0;           // in devices; its cores are the threads
  };
  // One prompt: a task and a sketch.
  struct Prompt {
    int32_t task = 0, sketch = 0;
    std::string structure;                      // the sketch's text, to find it again
    std::vector<std::vector<int64_t>> similar;  // decisions of fast programs of similar tasks, made to fit
    // Of a sketch of Ansor's records, whose steps `structure` has: the steps that may follow. Empty: a sketch of our space.
    std::vector<std::string> placements;
  };
  struct Sentence {
    int32_t prompt = 0;
    Quality quality = Quality::kUnmeasured;
    std::vector<int64_t> decisions;  // in the order of the answer
    std::vector<TokenMask> allowed;  // by token
  };

  std::vector<target::Device> devices;
  std::vector<Task> tasks;
  std::vector<Prompt> prompts;
  std::vector<Sentence> sentences;

  std::string hash() const;
};

// The decisions as a sentence to a prompt. answer: new, and allows them.
Corpus::Sentence make_sentence(int32_t prompt, Quality quality, std::vector<int64_t> decisions,
                               Answer& answer);

// Adds a task with its prompts and their sentences, which number these prompts from 0.
void add_task(Corpus& corpus, Corpus::Task task, std::vector<Corpus::Prompt> prompts,
              std::vector<Corpus::Sentence> sentences);

// Replaces the file at once or not at all.
Status write_corpus(const Corpus& corpus, const std::string& path);
// kCorrupt for what is damaged, kMismatch for another version or another kind of file.
Result<Corpus> read_corpus(const std::string& path);

}  // namespace tensorsmith::learn::lm
