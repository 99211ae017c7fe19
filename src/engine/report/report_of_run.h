// Makes the report of a tuning run, during the run and at its end.
#pragma once

#include <vector>

#include "base/clock.h"
#include "engine/report/report_data.h"
#include "engine/report/report_records.h"
#include "engine/tune/tune_model.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Covers the models' tasks on the device, with all their records in the database. `tuned` has the
// results by model, whose compiled models are run (report_model.h); it is empty during the run,
// when `progress` is the current state. `progress` and `loops` may be null. Errors: those of the
// database and of loading a compiled model.
Result<Report> report_of_run(const std::vector<ModelToTune>& models, const std::vector<TunedModel>& tuned,
                             const search::TuneProgress* progress, const target::Device& device,
                             const record::MeasureSettings& settings, record::Database& database,
                             ReportLoops* loops, const Clock& clock);

}  // namespace tensorsmith::engine
