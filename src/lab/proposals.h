// Proposes programs for a task before any of them is measured: programs written by a language
// model, or the best ones by the estimate or a cost model. compare_searches.h compares these
// methods with searches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/language/language_writer.h"
#include "engine/tune/warm_start.h"
#include "graph/tasks.h"
#include "learn/cost_model.h"
#include "search/tuner.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::lab {

// Names of the proposing methods. No search strategy (strategies/strategies.h) has one of these names.
inline constexpr std::string_view kWrittenProposals = "written";    // by a language model
inline constexpr std::string_view kEstimateProposals = "estimate";  // the best by the analytic estimate
inline constexpr std::string_view kCostModelProposals =
    "best-of-100k";  // the best of 100,000 samples by a cost model
bool proposes(std::string_view method);

struct ProposalRequest {
  std::string method;  // one of the three names above
  // File; "none": ranks by the estimate alone, or by the likelihood of written programs.
  std::string cost_model;
  std::string language_model;  // file, for kWrittenProposals
};

// Loads each language model and cost model once and proposes programs with them.
class Proposers {
 public:
  // Errors: those of the files; kInvalidArgument for kCostModelProposals without a cost model.
  Status load(const ProposalRequest& request, int threads);

  // Returns at most `count` different candidates, the best first, without the untuned one. `known`:
  // fast programs of other tasks, which a language model sees while it writes.
  Result<std::vector<search::Seed>> propose(const ProposalRequest& request, const search::PreparedTask& task,
                                            const engine::WarmStart& known, size_t count, uint64_t seed);

  // Statistics summed over all language models.
  engine::DecodingReport decoding() const;

 private:
  std::map<std::string, std::unique_ptr<engine::LanguageWriter>> writers_;  // by file
  std::map<std::string, std::unique_ptr<learn::CostModel>> models_;
};

}  // namespace tensorsmith::lab
