// The columns of a record that hold its candidate. For use inside the room.
#pragma once

#include "record/candidate.h"
#include "record/sqlite/statement.h"

namespace tensorsmith::record {

// Binds note, why, strategy, sketch and decisions as the statement's next parameters.
void bind_candidate(Statement& statement, const Candidate& candidate);
// From the column `first` on. Empty if they hold something else than a candidate.
std::optional<Candidate> read_candidate(const Statement& select, int first);

}  // namespace tensorsmith::record
