// Reshape, Flatten, Squeeze, Unsqueeze: the same elements in the same order under another shape.
#include <algorithm>

#include "graph/ops/index.h"
#include "graph/ops/registry.h"

namespace tensorsmith::graph {

namespace {

Result<Buffers> emit_reshape(OpContext& ctx) {
  std::vector<int64_t> wanted;
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(wanted, ctx.constant_ints(1, "shape"));
  } else if (auto attr = ctx.ints_attr("shape")) {
    wanted = *std::move(attr);
  } else {
    return ctx.invalid("input 1 (shape) is missing");
  }
  const bool allow_zero = ctx.int_attr("allowzero", 0) != 0;
  const Shape& from = ctx.shape(0);
  std::optional<size_t> inferred;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == 0 && !allow_zero) {
      if (d >= from.size()) return ctx.invalid("dimension " + std::to_string(d) + " of 0 has no counterpart");
      wanted[d] = from[d];
    } else if (wanted[d] == -1) {
      if (inferred) return ctx.invalid("more than one dimension of -1");
      inferred = d;
      wanted[d] = 1;
    }
  }
  const auto mismatch = [&] {
    return ctx.invalid("cannot reshape " + describe(ctx.dtype(0), from) + " to " +
                       describe(ctx.dtype(0), wanted));
  };
  if (!is_reasonable(wanted)) return mismatch();
  const int64_t total = product(from);
  const int64_t known = product(wanted);
  if (inferred) {
    if (known == 0 ? total != 0 : total % known != 0) return mismatch();
    wanted[*inferred] = known == 0 ? 0 : total / known;
  }
  if (product(wanted) != total) return mismatch();
  return Buffers{reshape(ctx, "reshape", ctx.in(0), wanted)};
}

Result<Buffers> emit_flatten(OpContext& ctx) {
  const Shape& from = ctx.shape(0);
  const auto rank = std::ssize(from);
  int64_t axis = ctx.int_attr("axis", 1);
  if (axis < -rank || axis > rank) return ctx.invalid("axis " + std::to_string(axis) + " is out of range");
  if (axis < 0) axis += rank;
  const auto split = std::span(from);
  const Shape to = {product(split.first(axis)), product(split.subspan(axis))};
  return Buffers{reshape(ctx, "flatten", ctx.in(0), to)};
}

// Axes are an attribute before opset 13 and an input since then.
Result<std::optional<std::vector<int64_t>>> read_axes(OpContext& ctx) {
  if (ctx.has(1)) {
    TS_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ctx.constant_ints(1, "axes"));
    return std::optional(std::move(axes));
  }
  return ctx.ints_attr("axes");
}

Result<Buffers> emit_squeeze(OpContext& ctx) {
  const Shape& from = ctx.shape(0);
  TS_ASSIGN_OR_RETURN(const auto axes, read_axes(ctx));
  std::vector<size_t> removed;
  if (axes) {
    TS_ASSIGN_OR_RETURN(removed, ctx.normalize_axes(*axes, from.size()));
  } else {
    for (size_t d = 0; d < from.size(); ++d) {
      if (from[d] == 1) removed.push_back(d);
    }
  }
  Shape to;
  for (size_t d = 0; d < from.size(); ++d) {
    if (std::find(removed.begin(), removed.end(), d) == removed.end()) {
      to.push_back(from[d]);
    } else if (from[d] != 1) {
      return ctx.invalid("dimension " + std::to_string(d) + " of " + describe(ctx.dtype(0), from) +
                         " is not 1");
    }
  }
  return Buffers{reshape(ctx, "squeeze", ctx.in(0), to)};
}

Result<Buffers> emit_unsqueeze(OpContext& ctx) {
  TS_ASSIGN_OR_RETURN(const auto axes, read_axes(ctx));
  if (!axes) return ctx.invalid("the axes are missing");
  const size_t rank = ctx.rank(0) + axes->size();
  if (rank > kMaxRank) return ctx.invalid("the result would have rank " + std::to_string(rank));
  TS_ASSIGN_OR_RETURN(const std::vector<size_t> inserted, ctx.normalize_axes(*axes, rank));
  Shape to;
  size_t next = 0;
  for (size_t d = 0; d < rank; ++d) {
    const bool fresh = std::find(inserted.begin(), inserted.end(), d) != inserted.end();
    to.push_back(fresh ? 1 : ctx.shape(0)[next++]);
  }
  return Buffers{reshape(ctx, "unsqueeze", ctx.in(0), to)};
}

}  // namespace

std::span<const OpEntry> reshape_operators() {
  static const OpEntry kEntries[] = {
      {"Flatten", "a:T", emit_flatten, kReshapes | kMovesElements | kMayReturnInput},
      {"Reshape", "a:Tl", emit_reshape, kReshapes | kMovesElements | kMayReturnInput},
      {"Squeeze", "a:Tl", emit_squeeze, kReshapes | kMovesElements | kMayReturnInput},
      {"Unsqueeze", "a:Tl", emit_unsqueeze, kReshapes | kMovesElements | kMayReturnInput},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
