// The report of a tuning run, while it goes on and at its end.
#pragma once

#include <vector>

#include "base/clock.h"
#include "engine/report_data.h"
#include "engine/report_records.h"
#include "engine/tune_model.h"
#include "target/target.h"

namespace tensorsmith::engine {

// Of the models' tasks on the device, with all records that the database has of them there. tuned: by model, the run's
// result, whose compiled models are run (report_model.h); empty while it goes on. progress: where it is then, or null.
// loops: may be null. Errors: those of the database and of loading a compiled model.
Result<Report> report_of_run(const std::vector<ModelToTune>& models, const std::vector<TunedModel>& tuned,
                             const search::TuneProgress* progress, const target::Device& device,
                             const record::MeasureSettings& settings, record::Database& database,
                             ReportLoops* loops, const Clock& clock);

}  // namespace tensorsmith::engine
