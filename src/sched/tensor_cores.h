// Tensor cores of NVIDIA's GPUs: the products that they compute, and how the threads of a warp hold
// them. Plans lay out their accumulators accordingly, and code generation recognizes them.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/expr.h"
#include "target/machine.h"

namespace tensorsmith::sched {

// Rows and columns of a product (PTX ISA, "Matrix multiply-accumulate operation using mma
// instruction").
inline constexpr int64_t kMmaRows = 16, kMmaColumns = 8;
// Bytes of each row and column in a step along the reduction: 16 elements of f16, 32 of i8, 8 of
// TF32.
inline constexpr int64_t kMmaStepBytes = 32;
// A lane of a warp is identified by a group of rows and a place in the group: lane = 4 * group +
// place. It holds the sums of rows `group` and `group` + 8, in columns 2 * place and 2 * place + 1.
inline constexpr int64_t kMmaGroups = 8, kMmaPlaces = 4, kMmaHalves = 2, kMmaPairs = 2;
// A program for tensor cores has as many virtual threads as a thread has pairs of sums, which are
// at most half of its registers.
inline constexpr int64_t kMostMmaPairs = 64;

// A product by four warps (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"): each has
// 16 of its rows, as above.
inline constexpr int64_t kWarpgroupRows = 64, kWarpgroupWarps = 4;
// Alignment in bytes of the tiles in shared memory: the period of a 128-byte swizzle (PTX ISA, same
// section).
inline constexpr int64_t kWarpgroupTileAlignment = 1024;
// Blocks of a cluster that copy together. This is our limit: the instructions allow eight.
inline constexpr int64_t kClusterBlocks = 2;

// Returns whether there are instructions for products of these types. The products are exact, and
// their sums differ from scalar code only in the order of additions and in the last bit: f16, bf16,
// and f32 that was rounded to TF32, are accumulated in f32, bytes in i32.
constexpr bool has_mma(int capability, ir::DType a, ir::DType b) {
  const auto is_byte = [](ir::DType t) { return t == ir::DType::kI8 || t == ir::DType::kU8; };
  if (a == ir::DType::kF16 && b == a) return capability >= target::kTuring;
  if ((a == ir::DType::kBF16 || a == ir::DType::kF32) && b == a) return capability >= target::kAmpere;
  return is_byte(a) && is_byte(b) && capability >= target::kAmpere;
}
// Operand bytes that tensor cores multiply per cycle for each FMA of the ordinary lanes; the
// maximum over all generations. 1024 products of f16 for 64 lanes (A100 architecture whitepaper),
// 2048 for 128 (H100), twice as many for bytes.
inline constexpr double kMostMmaBytes = 32;
// Returns the load of a factor of such a product, which is converted to the type of the sum or
// rounded to TF32; null if e is no such factor.
inline const ir::Load* mma_factor(const ir::Expr& e, ir::DType sum) {
  if (e.dtype() != sum) return nullptr;
  if (const auto* cast = ir::as<ir::Cast>(e)) {
    const auto* load = ir::as<ir::Load>(cast->a);
    return load != nullptr && load->buffer->dtype != sum ? load : nullptr;
  }
  const auto* call = ir::as<ir::Call>(e);
  const bool rounded = call != nullptr && call->intrinsic == ir::Intrinsic::kRoundTf32;
  return rounded ? ir::as<ir::Load>(call->args[0]) : nullptr;
}
// Returns whether threads can copy from device memory to shared memory asynchronously (cp.async).
constexpr bool copies_asynchronously(int capability) { return capability >= target::kAmpere; }

}  // namespace tensorsmith::sched
