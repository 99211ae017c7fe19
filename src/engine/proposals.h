// Programs that are proposed for a task before any of it is measured: written by a language model, or the best by the
// estimate or a cost model. What such methods are worth is measured beside searches (compare_searches.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/language_writer.h"
#include "engine/warm_start.h"
#include "graph/tasks.h"
#include "learn/cost_model.h"
#include "search/tuner.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Names of methods that propose, none of which is a search strategy's (search/strategy.h).
inline constexpr std::string_view kWrittenProposals = "written";    // by a language model
inline constexpr std::string_view kEstimateProposals = "estimate";  // the best by the analytic estimate
inline constexpr std::string_view kCostModelProposals =
    "best-of-100k";  // the best of 100,000 samples by a cost model
bool proposes(std::string_view method);

struct ProposalRequest {
  std::string method;      // one of the three above
  std::string cost_model;  // a file; "none": the estimate alone ranks, or the likelihood of what is written
  std::string language_model;  // a file, for kWrittenProposals
};

// Language models and cost models, each loaded once.
class Proposers {
 public:
  // Errors: those of files; kInvalidArgument for kCostModelProposals without a cost model.
  Status load(const ProposalRequest& request, int threads);

  // Different candidates, the best first, at most `count`, without the untuned one. known: fast programs of other tasks, which a language model
  // sees.
  Result<std::vector<search::Seed>> propose(const ProposalRequest& request, const graph::Task& task,
                                            const space::DesignSpace& space, const target::Device& device,
                                            const WarmStart& known, size_t count, uint64_t seed);

  // Of all language models together.
  DecodingReport decoding() const;

 private:
  std::map<std::string, std::unique_ptr<LanguageWriter>> writers_;  // by file
  std::map<std::string, std::unique_ptr<learn::CostModel>> models_;
};

}  // namespace tensorsmith::engine
