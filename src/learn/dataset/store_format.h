// Layout of a store's file, shared by the writer and the reader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "feature/per_store.h"

namespace tensorsmith::learn::store_format {

inline constexpr char kMagic[8] = {'T', 'S', 'S', 'T', 'O', 'R', 'E', '\n'};
inline constexpr int kMaskWords = (feature::kPerStoreWidth + 63) / 64;
using Mask = std::array<uint64_t, kMaskWords>;

struct Header {
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t schema = 0;  // feature::kPerStoreVersion
  uint64_t catalog_offset = 0;
  uint64_t catalog_bytes = 0;
  char hash[32] = {};  // hash of everything after the header, in hex
};
static_assert(sizeof(Header) == 64);

// Fixed columns of one record. The `*_end` fields count from the beginning of the group.
struct Fixed {
  double mean_seconds = 0;
  int64_t unix_seconds = 0;
  uint64_t program = 0;
  uint32_t workload = 0;
  uint32_t device = 0;
  int32_t error_no = 0;
  uint32_t tree_nodes = 0;
  uint32_t seconds_end = 0;
  uint32_t leaves_end = 0;
  uint32_t trace_end = 0;
  uint32_t rows = 0;
};
static_assert(sizeof(Fixed) == 56);

struct Leaf {
  Mask mask{};
  uint32_t values_end = 0;
  uint16_t position = 0;
  int16_t row = -1;
};
static_assert(sizeof(Leaf) == 32);

// Number of elements of each section of a group, in the order in which the sections are stored.
struct GroupSizes {
  uint64_t records = 0, leaves = 0, seconds = 0, values = 0, trace_bytes = 0;
  // As many as records, or 0 if none is known. Stores of version 1 have none.
  uint64_t disturbances = 0;
  // Numbers of all design points, or 0 if none is known. A point is its sketch and its decisions. Before
  // them stands the end of each record's numbers, counted from the beginning of the group. Stores of
  // version 3 have some.
  uint64_t points = 0;
};
constexpr uint64_t aligned(uint64_t bytes) { return (bytes + 7) / 8 * 8; }
constexpr uint64_t bytes_of(const GroupSizes& g) {
  return g.records * sizeof(Fixed) + g.leaves * sizeof(Leaf) + g.seconds * sizeof(double) +
         aligned(g.values * sizeof(float)) + aligned(g.trace_bytes) +
         aligned(g.disturbances * sizeof(float)) +
         (g.points > 0 ? aligned(g.records * sizeof(uint32_t)) + g.points * sizeof(int64_t) : 0);
}

}  // namespace tensorsmith::learn::store_format
