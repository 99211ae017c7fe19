// Helpers that tests of tensor cores share.
#pragma once

#include <vector>

#include "codegen/gpu/emitter.h"
#include "lower/interpreter.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith::test {

// Failures are reported in the calling test.
target::Device device(const char* name);
space::DesignSpace space_of(const ir::Workload& workload, const target::Device& gpu);
// Words in the plans' descriptions.
inline constexpr const char* kTensorCores = "tensor cores";
inline constexpr const char* kWarpgroups = "warpgroups ";
bool is_kind(const space::DesignSpace& space, int sketch, const char* plan);
// Returns whether any sketch uses such a plan.
bool has_kind(const space::DesignSpace& space, const char* plan);
// Returns samples of such plans; fewer than `count` if 600 samples do not contain more.
std::vector<space::Candidate> draw(const space::DesignSpace& space, uint64_t seed, size_t count,
                                   const char* plan = kTensorCores);
// Returns the candidate's loop program, and checks that it is within the device's limits and obeys
// the rules of GPU programs.
ir::Program program_of(const space::DesignSpace& space, const space::Candidate& c, const target::Device& gpu);
std::vector<lower::Tensor> random_inputs(const ir::Workload& workload, uint64_t seed);
// Returns the CUDA C source.
codegen::GpuSource source_of(const ir::Program& program, const target::Device& gpu);

}  // namespace tensorsmith::test
