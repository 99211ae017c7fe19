#include "learn/latency/tensorsmith_correction.h"

#include <nlohmann/json.hpp>

#include "learn/gbt/forest_mean.h"
#include "learn/latency/tensorsmith_file.h"

namespace tensorsmith::learn {

void TensorsmithCorrection::add(std::span<const float> rows, std::span<double> out,
                                std::span<double> disagreement, std::span<double> ranks) const {
  const double rank_share = rank_members.empty() ? 0 : members.empty() ? 1 : rank_weight;
  std::vector<float> values(out.size());
  ForestMean seconds(out.size()), all(out.size());
  const auto add_forests = [&](const std::vector<Forest>& forests, double share, bool tells_seconds) {
    for (const Forest& forest : forests) {
      const double count = forests.size();
      if (!tells_seconds && (share == 0 || (disagreement.empty() && ranks.empty()))) continue;
      forest.predict(rows, values);
      if (tells_seconds) seconds.add(values, 1 / count);
      all.add(values, share / count);
    }
  };
  add_forests(members, 1 - rank_share, true);
  add_forests(rank_members, rank_share, members.empty());
  seconds.add_mean_to(out, 1);
  all.add_mean_to(ranks, 1);
  all.set_spread(disagreement, 1);
}

TreeRows TensorsmithCorrection::training_rows(const TensorsmithBase& base, const ChosenPrograms& programs,
                                              const TrainingData& source) const {
  const BaseRows rows = base_rows(base, columns, programs, &source);
  std::vector<double> sums(rows.errors.size(), 0), rank_sums(sums), labels;
  if (!members.empty()) add(rows.values, sums, {}, rank_sums);
  TreeRows out;
  for (size_t i = 0; i < sums.size(); ++i) {
    labels.push_back(rows.errors[i] - sums[i]);
    out.rank_labels.push_back(static_cast<float>(rows.errors[i] - rank_sums[i]));
  }
  out.data = pack_rows(programs, rows.values, labels);
  return out;
}

void TensorsmithCorrection::write(TensorFile& file, feature::ProgramKind kind, nlohmann::json& item) const {
  item["members"] = members.size();
  item["rank_members"] = rank_members.size();
  add_forests(file, kind, "", members);
  add_forests(file, kind, "rank", rank_members);
}

Status TensorsmithCorrection::read(const TensorFile& file, feature::ProgramKind kind,
                                   const nlohmann::json& item) {
  TS_ASSIGN_OR_RETURN(members, read_forests(file, kind, "", item.at("members")));
  TS_ASSIGN_OR_RETURN(rank_members, read_forests(file, kind, "rank", item.at("rank_members")));
  return {};
}

}  // namespace tensorsmith::learn
