#include "learn/profile/static_row.h"

#include <algorithm>
#include <cmath>

#include "feature/summary_schema.h"

namespace tensorsmith::learn {

namespace {
// Lower limit of a resource's share, for resources that are not used: a millionth of the
// operations' time.
constexpr double kLeastColumnShare = 1e-6;
}  // namespace

Result<std::vector<float>> static_row(const feature::ProgramSummary& summary) {
  if (summary.kind != feature::ProgramKind::kCpuNests)
    return Error{
        ErrorCode::kUnsupported, "program",
        "is not one of Tensorsmith's own CPU programs; static features can only be computed for those"};
  const feature::ColumnValues<feature::kCpuNestsColumns> columns(summary.columns);
  const double compute = std::exp2(double{columns["compute_seconds"]});
  std::vector<float> row;
  row.reserve(static_width());
  for (const double seconds : summary.resources)
    row.push_back(static_cast<float>(std::log2(std::max(seconds / compute, kLeastColumnShare))));
  row.insert(row.end(), summary.columns.begin(), summary.columns.end());
  return row;
}

size_t static_width() {
  const auto& schema = feature::summary_schema(feature::ProgramKind::kCpuNests);
  return schema.resources.columns.size() + schema.columns.columns.size();
}

}  // namespace tensorsmith::learn
