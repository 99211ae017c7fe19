#include "record/sqlite/candidate_columns.h"

#include <limits>
#include <utility>

namespace tensorsmith::record {

void bind_candidate(Statement& statement, const Candidate& candidate) {
  statement.bind(candidate.note).bind(to_string(candidate.reason)).bind(candidate.strategy);
  if (candidate.point) {
    statement.bind(static_cast<int64_t>(candidate.point->sketch))
        .bind(print_decisions(candidate.point->decisions));
  } else {
    statement.bind_null().bind(std::string_view());
  }
}

std::optional<Candidate> read_candidate(const Statement& select, int first) {
  Candidate candidate;
  candidate.note = select.text(first);
  // Later versions may know more reasons; the record is as good without.
  candidate.reason = parse_reason(select.text(first + 1)).value_or(Reason::kUnstated);
  candidate.strategy = select.text(first + 2);
  if (select.is_null(first + 3)) return candidate;
  const int64_t sketch = select.integer(first + 3);
  auto decisions = parse_decisions(select.text(first + 4));
  if (sketch < 0 || sketch > std::numeric_limits<int>::max() || !decisions) return std::nullopt;
  candidate.point = DesignPoint{static_cast<int>(sketch), std::move(*decisions)};
  return candidate;
}

}  // namespace tensorsmith::record
