#include "search/pipeline.h"

#include <charconv>

namespace tensorsmith::search {

feature::PerStoreOptions feature_options(const target::Device& device) {
  feature::PerStoreOptions options;
  options.cacheline_bytes = device.cacheline_bytes;
  options.gpu = device.kind == target::DeviceKind::kGpu;
  return options;
}

Result<std::shared_ptr<const feature::FeatureMatrix>> features_of(const ir::Workload& workload,
                                                                  const sched::Trace& trace,
                                                                  const feature::PerStoreOptions& options) {
  TS_ASSIGN_OR_RETURN(const auto schedule, sched::replay(workload, trace));
  TS_ASSIGN_OR_RETURN(auto features, feature::extract_per_store(schedule, options));
  return std::make_shared<const feature::FeatureMatrix>(std::move(features));
}

Result<std::shared_ptr<const feature::FeatureMatrix>> CandidateFeatures::of(
    const space::Candidate& candidate) {
  TS_RETURN_IF_ERROR(space_.to_schedule(candidate, schedule_));
  TS_ASSIGN_OR_RETURN(auto features, features_.per_store(schedule_));
  return std::make_shared<const feature::FeatureMatrix>(std::move(features));
}

std::string encode(const space::Candidate& candidate) {
  std::string text = std::to_string(candidate.sketch) + "/";
  for (size_t i = 0; i < candidate.decisions.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(candidate.decisions[i]);
  return text;
}

std::optional<space::Candidate> decode(std::string_view text) {
  space::Candidate candidate;
  const char* p = text.data();
  const char* const end = p + text.size();
  auto parsed = std::from_chars(p, end, candidate.sketch);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '/') return std::nullopt;
  p = parsed.ptr + 1;
  while (p < end) {
    int64_t value = 0;
    parsed = std::from_chars(p, end, value);
    if (parsed.ec != std::errc()) return std::nullopt;
    candidate.decisions.push_back(value);
    p = parsed.ptr;
    if (p == end) break;
    if (*p++ != ',' || p == end) return std::nullopt;
  }
  return candidate;
}

}  // namespace tensorsmith::search
