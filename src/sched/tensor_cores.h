// Tensor cores of NVIDIA's GPUs: which products they compute, and how a warp's threads hold them. Plans lay out their
// accumulators by this, code generation recognizes them by it.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/expr.h"
#include "target/target.h"

namespace tensorsmith::sched {

// Rows and columns of a product (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
inline constexpr int64_t kMmaRows = 16, kMmaColumns = 8;
// Bytes of each row and column that a step along the reduction takes: 16 elements of f16, 32 of i8, 8 of TF32.
inline constexpr int64_t kMmaStepBytes = 32;
// A warp's lane is a group of rows and a place in it: lane = 4 * group + place. It holds the sums of row `group` and of
// row `group` + 8, of columns 2 * place and 2 * place + 1.
inline constexpr int64_t kMmaGroups = 8, kMmaPlaces = 4, kMmaHalves = 2, kMmaPairs = 2;
// A program for them has as many virtual threads as a thread has pairs of sums: half of its registers, at most.
inline constexpr int64_t kMostMmaPairs = 64;

// A product by four warps (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"): each has 16 of its rows, as above.
inline constexpr int64_t kWarpgroupRows = 64, kWarpgroupWarps = 4;
// Bytes of which addresses of their tiles in shared memory are multiples: what a swizzle of 128 bytes repeats after (same place).
inline constexpr int64_t kWarpgroupTileAlignment = 1024;
// Blocks of a cluster that copy together. Ours: the instructions allow eight.
inline constexpr int64_t kClusterBlocks = 2;

// Compute capabilities from which on tensor cores can more.
inline constexpr int kTuring = 75, kAmpere = 80, kHopper = 90;
// 80 for an A100; 0 for devices that are no GPUs of NVIDIA.
inline int compute_capability(const target::Device& device) {
  std::string_view cpu = device.cpu;
  if (device.arch != "nvptx" || !cpu.starts_with("sm_")) return 0;
  int number = 0;
  for (const char c : cpu.substr(3)) {
    if (c < '0' || c > '9') break;
    number = 10 * number + (c - '0');
  }
  return number;
}

// Whether there are instructions for products of these types. These are exact and are added up as in scalar code but for
// the order and the last bit: f16, bf16, and f32 that were rounded to TF32, in f32; bytes in i32.
constexpr bool has_mma(int capability, ir::DType a, ir::DType b) {
  const auto is_byte = [](ir::DType t) { return t == ir::DType::kI8 || t == ir::DType::kU8; };
  if (a == ir::DType::kF16 && b == a) return capability >= kTuring;
  if ((a == ir::DType::kBF16 || a == ir::DType::kF32) && b == a) return capability >= kAmpere;
  return is_byte(a) && is_byte(b) && capability >= kAmpere;
}
// Bytes of operands that tensor cores multiply in a cycle for each FMA of the lanes beside them, of all generations the
// most: 1024 products of f16 beside 64 lanes (A100 architecture whitepaper), 2048 beside 128 (H100), bytes twice as many.
inline constexpr double kMostMmaBytes = 32;
// What a factor of such a product reads: it is converted to the type of the sum, or rounded to TF32. Null: it is another.
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
// Whether threads copy from device memory to shared memory without waiting (cp.async).
constexpr bool copies_asynchronously(int capability) { return capability >= kAmpere; }

}  // namespace tensorsmith::sched
