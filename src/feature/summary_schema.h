// The columns of program summaries, by kind of program: resources, all in seconds on the device,
// and columns that describe the shape of the program. Columns that are specific to GPUs and to CPUs
// are in separate files.
#pragma once

#include "feature/program_summary.h"
#include "feature/summary_schema_cpu.h"
#include "feature/summary_schema_gpu.h"

namespace tensorsmith::feature {

// Columns of every program.
inline constexpr auto kCommonColumns = std::to_array<Column>({
    Column::size(
        Column::log2("flops", "operations", "Operations of the workload, as its records count them.")),
    Column::size(Column::log2("input_bytes", "bytes", "Bytes of the workload's inputs.")),
    Column::size(Column::log2("output_bytes", "bytes", "Bytes of the workload's outputs.")),
    Column::log2("intensity", "operations/byte", "Operations over the bytes of inputs and outputs."),
    Column::size(Column::log2("compute_seconds", "seconds", "Time of the operations at the device's peak.")),
    Column::size(
        Column::log2("roofline_seconds", "seconds",
                     "The longer of the times for operations and for memory traffic, at peak rates.")),
});

inline constexpr auto kGpuTiledColumns = concatenated(kTiledGpuColumns, kCommonColumns, kGpuDeviceColumns);
inline constexpr auto kGpuFlatColumns = concatenated(kFlatGpuColumns, kCommonColumns, kGpuDeviceColumns);
inline constexpr auto kCpuTiledResources = concatenated(kLeafResources, kTileResources);
inline constexpr auto kCpuTiledColumns = concatenated(kLeafColumns, kTileColumns, kCommonColumns);
inline constexpr auto kCpuOtherColumns = concatenated(kLeafColumns, kCommonColumns);
inline constexpr auto kCpuNestsColumns = concatenated(kNestColumns, kCommonColumns);

}  // namespace tensorsmith::feature
