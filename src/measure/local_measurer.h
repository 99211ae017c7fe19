// The measurer of this machine with an explicit builder, for tests.
#pragma once

#include "measure/builder.h"
#include "measure/measurer.h"
#include "measure/reference_program.h"

namespace tensorsmith::measure {

Result<std::unique_ptr<Measurer>> make_local_measurer(const target::Device& device,
                                                      const MeasureOptions& options,
                                                      std::vector<std::string> worker_command, LogSink& log,
                                                      std::shared_ptr<const Builder> builder);

}  // namespace tensorsmith::measure
