// What tests of tensor cores have in common.
#pragma once

#include <vector>

#include "codegen/gpu/emitter.h"
#include "lower/interpreter.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::test {

// Failures are those of the test that calls.
target::Device device(const char* name);
space::DesignSpace space_of(const ir::Workload& workload, const target::Device& gpu);
// Words of what their plans say of themselves.
inline constexpr const char* kTensorCores = "tensor cores";
inline constexpr const char* kWarpgroups = "warpgroups ";
bool is_kind(const space::DesignSpace& space, int sketch, const char* plan);
// Any sketch.
bool has_kind(const space::DesignSpace& space, const char* plan);
// Samples of such plans; fewer than count where 600 samples have no more.
std::vector<space::Candidate> draw(const space::DesignSpace& space, uint64_t seed, size_t count,
                                   const char* plan = kTensorCores);
// The candidate's loop program, which is within the device's limits and keeps the rules of GPU programs.
ir::Program program_of(const space::DesignSpace& space, const space::Candidate& c, const target::Device& gpu);
std::vector<lower::Tensor> random_inputs(const ir::Workload& workload, uint64_t seed);
// CUDA C.
codegen::GpuSource source_of(const ir::Program& program, const target::Device& gpu);

}  // namespace tensorsmith::test
