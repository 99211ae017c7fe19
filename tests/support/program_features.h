// Per-store features of a loop program, which tests write more easily than the schedule of such a program.
#pragma once

#include "feature/per_store.h"

namespace tensorsmith::feature {

// Computes what ScheduleFeatures does, with the same StoreCollector, from a loop program. Temporaries are
// indexed as the program stores them.
FeatureMatrix extract_per_store(const ir::Program& program, const PerStoreOptions& options);

}  // namespace tensorsmith::feature
