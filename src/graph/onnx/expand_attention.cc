// Expands Attention (opset 23, 24 with nonpad_kv_seqlen, 25 with windows) into nodes that grouping turns into one
// kernel, and RotaryEmbedding (opset 23) into simpler nodes. f16 and bf16 are only used for storage:
// intermediate values are f32.
#include <cmath>
#include <limits>
#include <optional>

#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Reshapes (batch, length, heads * depth) to (batch, heads, length, depth).
Result<ValueId> split_heads(Expansion& e, ValueId id, int64_t heads) {
  const Shape& shape = e.shape(id);
  if (heads < 1 || shape[2] % heads != 0) {
    return e.ctx.invalid("an input of shape " + describe(e.dtype(id), shape) + " does not divide into " +
                         std::to_string(heads) + " heads (attributes q_num_heads, kv_num_heads)");
  }
  TS_ASSIGN_OR_RETURN(const ValueId split, e.reshape(id, {shape[0], shape[1], heads, shape[2] / heads}));
  return e.transpose(split, {0, 2, 1, 3});
}

// `depth` is the length of a query and of a key, `width` that of a value.
struct Sizes {
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, depth = 0, width = 0;
};

// A query at position p may see the keys p - left to p + right; nothing = without limit.
struct Window {
  std::optional<int64_t> left, right;

  bool limits() const { return left || right; }
  bool shows(int64_t position, int64_t key) const {
    return (!left || key >= position - *left) && (!right || key <= position + *right);
  }
};

// Returns a mask of shape (queries, keys). Element (i, j) is 0 if query i, which is at position i + offset,
// may see key j; otherwise it is -inf.
lower::Tensor window_mask(const Sizes& s, int64_t offset, const Window& window, DType dtype) {
  lower::Tensor mask = lower::Tensor::zeros(dtype, {s.queries, s.keys});
  for (int64_t i = 0; i < s.queries; ++i)
    for (int64_t j = 0; j < s.keys; ++j)
      if (!window.shows(i + offset, j)) mask.set(i * s.keys + j, ir::scalar_float(dtype, -kInfinity));
  return mask;
}

// Returns the numbers 0, 1, ..., n - 1 as a tensor of this shape, which must have n elements.
lower::Tensor counted(int64_t n, const Shape& shape) {
  lower::Tensor result = lower::Tensor::zeros(DType::kI64, shape);
  for (int64_t i = 0; i < n; ++i) result.set(i, ir::scalar_int(DType::kI64, i));
  return result;
}

// Collects the terms that are added to the scores, in shapes that broadcast to (batch, heads,
// queries, keys).
class Bias {
 public:
  // `dtype` is that of the scores, `mask_dtype` that of a mask that is not bool.
  Bias(Expansion& e, const Sizes& sizes, DType dtype, DType mask_dtype)
      : e_(e), s_(sizes), dtype_(dtype), mask_dtype_(mask_dtype) {}

  // Returns 0 where the condition holds, else -inf.
  Result<ValueId> where(ValueId condition) {
    return e_.op("Where", {condition, e_.scalar(dtype_, 0), e_.scalar(dtype_, -kInfinity)});
  }
  Status add(ValueId term) {
    if (sum == kNoValue) {
      sum = term;
      return {};
    }
    TS_ASSIGN_OR_RETURN(sum, e_.op("Add", {sum, term}));
    return {};
  }

  // Adds the mask of input 3. If it has several keys, but fewer than K has, the remaining keys are masked.
  Status add_mask(ValueId mask) {
    const Shape shape = e_.shape(mask);
    const bool boolean = e_.dtype(mask) == DType::kBool;
    if (shape.empty() || shape.size() > 4 || (!boolean && e_.dtype(mask) != mask_dtype_))
      return e_.ctx.invalid("the mask is " + describe(e_.dtype(mask), shape));
    if (boolean) {
      TS_ASSIGN_OR_RETURN(mask, where(mask));
    } else {
      TS_ASSIGN_OR_RETURN(mask, e_.cast(mask, dtype_));
    }
    if (shape.back() < s_.keys && shape.back() != 1) {
      std::vector<int64_t> pads(shape.size() * 2, 0);
      pads.back() = s_.keys - shape.back();
      TS_ASSIGN_OR_RETURN(mask, e_.op("Pad", {mask, e_.ints(pads), e_.scalar(dtype_, -kInfinity)}));
    }
    const Shape all = {s_.batch, s_.heads, s_.queries, s_.keys};
    const Shape& own = e_.shape(mask);
    for (size_t k = 0; k < own.size(); ++k) {
      const int64_t extent = own[own.size() - 1 - k];
      if (extent != 1 && extent != all[3 - k])
        return e_.ctx.invalid("the mask " + describe(e_.dtype(mask), own) + " does not broadcast to " +
                              describe(dtype_, all));
    }
    can_hide_rows = can_hide_rows || !shows_each_row(mask);
    return add(mask);
  }

  // Masks the keys from lengths[b] on in element b of the batch. `lengths` has the shape (batch).
  Status add_lengths(ValueId lengths, const Window& window) {
    if (e_.shape(lengths) != Shape{s_.batch} || e_.dtype(lengths) != DType::kI64)
      return e_.ctx.invalid("nonpad_kv_seqlen must have one i64 per batch");
    TS_ASSIGN_OR_RETURN(const ValueId length, e_.reshape(lengths, {s_.batch, 1, 1, 1}));
    const ValueId key = e_.constant(counted(s_.keys, {s_.keys}));
    TS_ASSIGN_OR_RETURN(const ValueId inside, e_.op("Less", {key, length}));
    TS_ASSIGN_OR_RETURN(const ValueId padding, where(inside));
    TS_RETURN_IF_ERROR(add(padding));
    can_hide_rows = true;
    // The last query is aligned with the last key: query i is at position i + length - queries.
    const auto add_limit = [&](const char* comparison, int64_t shift) -> Status {
      lower::Tensor from_end = counted(s_.queries, {s_.queries, 1});
      for (int64_t i = 0; i < s_.queries; ++i)
        from_end.set(i, ir::scalar_int(DType::kI64, i - s_.queries + shift));
      TS_ASSIGN_OR_RETURN(const ValueId limit, e_.op("Add", {length, e_.constant(std::move(from_end))}));
      TS_ASSIGN_OR_RETURN(const ValueId seen, e_.op(comparison, {key, limit}));
      TS_ASSIGN_OR_RETURN(const ValueId unseen, where(seen));
      return add(unseen);
    };
    if (window.right) TS_RETURN_IF_ERROR(add_limit("LessOrEqual", *window.right));
    if (window.left) TS_RETURN_IF_ERROR(add_limit("GreaterOrEqual", -*window.left));
    return {};
  }

  ValueId sum = kNoValue;
  bool can_hide_rows = false;  // all keys of a query may be masked

  // Returns whether the mask is known and leaves each query at least one key.
  bool shows_each_row(ValueId mask) const {
    const lower::Tensor* known = e_.known(mask);
    if (known == nullptr || known->num_elements() == 0) return false;
    const int64_t row = known->shape.back();
    for (int64_t begin = 0; begin < known->num_elements(); begin += row) {
      bool shown = false;
      for (int64_t j = 0; j < row && !shown; ++j) shown = known->at(begin + j).f > -kInfinity;
      if (!shown) return false;
    }
    return true;
  }

 private:
  Expansion& e_;
  const Sizes& s_;
  DType dtype_, mask_dtype_;
};

// The expansion of one Attention node. Its steps must be called in the order in which they are declared.
struct Attention {
  explicit Attention(Expansion& expansion) : e(expansion) {}

  Expansion& e;
  OpContext& ctx = e.ctx;
  const size_t rank = ctx.rank(0);
  const Window window = {limit("left_window_size"), right_limit()};
  const double softcap = ctx.float_attr("softcap", 0);
  const int64_t mode = ctx.int_attr("qk_matmul_output_mode", 0);
  const int64_t precision = ctx.int_attr("softmax_precision", 0);
  const DType given = ctx.dtype(0), dtype = wide(given);
  ValueId query = e.in(0), key = e.in(1), value = e.in(2);
  ValueId present_key = kNoValue, present_value = kNoValue;
  int64_t offset = 0;  // number of past keys
  Sizes s;
  Bias bias{e, s, dtype, given};
  int64_t shared = 1;    // number of query heads for each head of keys
  bool grouped = false;  // shared > 1
  // If grouped: the shared query heads are the third of five dimensions, which the keys broadcast over.
  // Otherwise they are joined with the dimension of the queries.
  bool five = false;
  Shape scores_shape;
  ValueId scores = kNoValue, probabilities = kNoValue;
  std::vector<ValueId> stages;  // of the scores, by output mode
  ValueId hidden = kNoValue;    // queries for which all keys are masked

  // A negative attribute sets no limit.
  std::optional<int64_t> limit(const char* attribute) const {
    const int64_t keys = ctx.int_attr(attribute, -1);
    return keys < 0 ? std::nullopt : std::optional(std::min(keys, kMaxGeometry));
  }
  std::optional<int64_t> right_limit() const {
    return ctx.int_attr("is_causal", 0) != 0 ? std::optional<int64_t>(0) : limit("right_window_size");
  }

  Status read_inputs() {
    if ((rank != 3 && rank != 4) || ctx.rank(1) != rank || ctx.rank(2) != rank)
      return ctx.invalid("Q, K and V must all have rank 3 or all have rank 4");
    if (mode < 0 || mode > 3) return ctx.invalid("qk_matmul_output_mode is " + std::to_string(mode));
    if (!(softcap >= 0) || !std::isfinite(softcap))
      return ctx.invalid("softcap must be finite and not negative");
    if (rank == 3) {
      TS_ASSIGN_OR_RETURN(query, split_heads(e, query, ctx.int_attr("q_num_heads", 0)));
      TS_ASSIGN_OR_RETURN(key, split_heads(e, key, ctx.int_attr("kv_num_heads", 0)));
      TS_ASSIGN_OR_RETURN(value, split_heads(e, value, ctx.int_attr("kv_num_heads", 0)));
    }
    if (ctx.error()) return *ctx.error();
    TS_RETURN_IF_ERROR(join_past());
    TS_ASSIGN_OR_RETURN(query, e.cast(query, dtype));
    TS_ASSIGN_OR_RETURN(key, e.cast(key, dtype));
    TS_ASSIGN_OR_RETURN(value, e.cast(value, dtype));
    const Shape q = e.shape(query), k = e.shape(key), v = e.shape(value);
    s = {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
    if (k[0] != s.batch || v[0] != s.batch || v[1] != s.kv_heads || k[3] != s.depth || v[2] != s.keys ||
        s.kv_heads < 1 || s.heads % s.kv_heads != 0 || s.depth < 1 || s.keys < 1) {
      return ctx.invalid("Q " + describe(dtype, q) + ", K " + describe(dtype, k) + " and V " +
                         describe(dtype, v) + " do not fit");
    }
    scores_shape = {s.batch, s.heads, s.queries, s.keys};
    if (!is_reasonable(scores_shape)) return ctx.invalid("the scores would be too large");
    return {};
  }

  Status join_past() {
    if (ctx.has(4) != ctx.has(5)) return ctx.invalid("past_key and past_value go together");
    if (ctx.has(4)) {
      if (ctx.has(6)) return ctx.invalid("nonpad_kv_seqlen and past_key exclude each other");
      if (ctx.rank(4) != 4 || ctx.rank(5) != 4)
        return ctx.invalid("past_key and past_value must have rank 4");
      for (size_t d : {size_t{0}, size_t{1}, size_t{3}}) {
        if (ctx.shape(4)[d] != e.shape(key)[d] || ctx.shape(5)[d] != e.shape(value)[d])
          return ctx.invalid("past_key or past_value does not fit K or V");
      }
      offset = ctx.shape(4)[2];
      TS_ASSIGN_OR_RETURN(key, e.op("Concat", {e.in(4), key}, {{"axis", int64_t{2}}}));
      TS_ASSIGN_OR_RETURN(value, e.op("Concat", {e.in(5), value}, {{"axis", int64_t{2}}}));
    }
    present_key = key;
    present_value = value;
    return {};
  }

  Status find_bias() {
    if (ctx.has(3)) TS_RETURN_IF_ERROR(bias.add_mask(e.in(3)));
    if (ctx.has(6)) TS_RETURN_IF_ERROR(bias.add_lengths(e.in(6), window));
    if (!window.limits() || ctx.has(6)) return {};
    constexpr int64_t kMaxMask = int64_t{1} << 28;
    if (s.queries * s.keys > kMaxMask) return ctx.unsupported("a causal mask of more than 2^28 elements");
    const ValueId mask = e.constant(window_mask(s, offset, window, dtype));
    bias.can_hide_rows = bias.can_hide_rows || ctx.has(3) || !bias.shows_each_row(mask);
    TS_RETURN_IF_ERROR(bias.add(mask));
    return {};
  }

  Status compute_scores() {
    shared = s.heads / s.kv_heads;
    grouped = shared > 1;
    const double scale = ctx.float_attr("scale", 1 / std::sqrt(s.depth));
    if (!std::isfinite(scale)) return ctx.invalid("scale is not finite");
    // A mask has four dimensions. Four-dimensional scores would be reshaped before it is added, and a
    // reshape between the scores and their softmax splits the kernel, so the mask is reshaped instead.
    // With few queries, it is better to join them with the shared heads in the rows of one product.
    constexpr int64_t kManyQueries = 16;
    five = grouped && bias.sum != kNoValue && s.queries >= kManyQueries;
    if (grouped) {
      TS_ASSIGN_OR_RETURN(query,
                          e.reshape(query, five ? Shape{s.batch, s.kv_heads, shared, s.queries, s.depth}
                                                : Shape{s.batch, s.kv_heads, shared * s.queries, s.depth}));
    }
    TS_ASSIGN_OR_RETURN(ValueId columns, e.transpose(key, {0, 1, 3, 2}));
    if (five) {
      TS_ASSIGN_OR_RETURN(columns, e.reshape(columns, {s.batch, s.kv_heads, 1, s.depth, s.keys}));
      TS_ASSIGN_OR_RETURN(value, e.reshape(value, {s.batch, s.kv_heads, 1, s.keys, s.width}));
    }
    TS_ASSIGN_OR_RETURN(scores, e.op("MatMul", {query, columns}));
    TS_ASSIGN_OR_RETURN(scores, e.op("Mul", {scores, e.scalar(dtype, scale)}));
    stages.push_back(scores);
    if (softcap > 0) {
      const ValueId cap = e.scalar(dtype, softcap);
      TS_ASSIGN_OR_RETURN(scores, e.op("Div", {scores, cap}));
      TS_ASSIGN_OR_RETURN(scores, e.op("Tanh", {scores}));
      TS_ASSIGN_OR_RETURN(scores, e.op("Mul", {scores, cap}));
    }
    stages.push_back(scores);
    if (bias.sum != kNoValue) {
      ValueId added = bias.sum;
      if (five) {
        Shape own = e.shape(added);
        own.insert(own.begin(), 4 - own.size(), 1);
        own.insert(own.begin() + 2, own[1] == 1 ? 1 : shared);
        own[1] = own[1] == 1 ? 1 : s.kv_heads;
        TS_ASSIGN_OR_RETURN(added, e.reshape(added, own));
      } else if (grouped) {
        TS_ASSIGN_OR_RETURN(scores, e.reshape(scores, scores_shape));
      }
      TS_ASSIGN_OR_RETURN(scores, e.op("Add", {scores, added}));
    }
    stages.push_back(scores);
    return {};
  }

  Status compute_probabilities() {
    DType softmax_dtype = dtype;
    if (precision != 0) {
      const auto wanted = onnx_dtype(precision);
      if (!wanted || !ir::is_float(*wanted)) return ctx.invalid("softmax_precision is not a float dtype");
      if (*wanted == DType::kF64) softmax_dtype = *wanted;  // other types are no wider than the scores
    }
    TS_ASSIGN_OR_RETURN(scores, e.cast(scores, softmax_dtype));
    TS_ASSIGN_OR_RETURN(probabilities, e.op("Softmax", {scores}, {{"axis", int64_t{-1}}}));
    TS_ASSIGN_OR_RETURN(probabilities, e.cast(probabilities, dtype));
    if (bias.can_hide_rows) {
      TS_ASSIGN_OR_RETURN(const ValueId best, e.op("ReduceMax", {bias.sum, e.ints({-1})}));
      TS_ASSIGN_OR_RETURN(hidden, e.op("Equal", {best, e.scalar(dtype, -kInfinity)}));
    }
    if (grouped && !five && e.shape(probabilities) == scores_shape) {
      TS_ASSIGN_OR_RETURN(probabilities,
                          e.reshape(probabilities, {s.batch, s.kv_heads, shared * s.queries, s.keys}));
    }
    return {};
  }

  // A query for which all keys are masked gives 0, not the mean of all values or NaN.
  Result<ValueId> hide(ValueId id) {
    if (hidden == kNoValue) return id;
    return e.op("Where", {hidden, e.scalar(dtype, 0), id});
  }

  Result<std::vector<ValueId>> outputs() {
    TS_ASSIGN_OR_RETURN(ValueId result, e.op("MatMul", {probabilities, value}));
    TS_ASSIGN_OR_RETURN(result, e.reshape(result, {s.batch, s.heads, s.queries, s.width}));
    TS_ASSIGN_OR_RETURN(result, hide(result));
    TS_ASSIGN_OR_RETURN(result, e.cast(result, given));
    if (rank == 3) {
      TS_ASSIGN_OR_RETURN(result, e.transpose(result, {0, 2, 1, 3}));
      TS_ASSIGN_OR_RETURN(result, e.reshape(result, {s.batch, s.queries, s.heads * s.width}));
    }
    std::vector<ValueId> values = {result, present_key, present_value, kNoValue};
    if (ctx.wants_output(3)) {
      ValueId shown = mode == 3 ? probabilities : stages[mode];
      TS_ASSIGN_OR_RETURN(shown, e.reshape(shown, scores_shape));
      if (mode == 3) {
        TS_ASSIGN_OR_RETURN(shown, hide(shown));
      }
      TS_ASSIGN_OR_RETURN(values[3], e.cast(shown, given));
    }
    return values;
  }
};

Result<std::vector<ValueId>> expand_attention(Expansion& e) {
  Attention attention(e);
  TS_RETURN_IF_ERROR(attention.read_inputs());
  TS_RETURN_IF_ERROR(attention.find_bias());
  TS_RETURN_IF_ERROR(attention.compute_scores());
  TS_RETURN_IF_ERROR(attention.compute_probabilities());
  return attention.outputs();
}

// Rotates the first rotary_embedding_dim elements of each head. A pair x1, x2 of them becomes
// x1 cos - x2 sin, x2 cos + x1 sin. Pairs are neighbours if the attribute `interleaved` is set; otherwise
// x1 is in the first half of these elements, and x2 at the same place in the second half.
Result<std::vector<ValueId>> expand_rotary_embedding(Expansion& e) {
  OpContext& ctx = e.ctx;
  const size_t rank = ctx.rank(0);
  if (rank != 3 && rank != 4) return ctx.invalid("the data must have rank 3 or 4");
  const bool interleaved = ctx.int_attr("interleaved", 0) != 0;
  ValueId x = e.in(0);
  const Shape given = ctx.shape(0);
  const DType dtype = wide(ctx.dtype(0));
  TS_ASSIGN_OR_RETURN(x, e.cast(x, dtype));
  // Data of rank 4 are (batch, heads, length, depth). Data of rank 3 are (batch, length, heads * depth);
  // they are reshaped to (batch, length, heads, depth).
  const int64_t heads = rank == 4 ? given[1] : ctx.int_attr("num_heads", 0);
  if (rank == 3) {
    if (heads < 1 || given[2] % heads != 0)
      return ctx.invalid("attribute num_heads " + std::to_string(heads) + " does not divide " +
                         std::to_string(given[2]));
    TS_ASSIGN_OR_RETURN(x, e.reshape(x, {given[0], given[1], heads, given[2] / heads}));
  }
  const Shape shape = e.shape(x);
  const int64_t batch = shape[0];
  const int64_t length = rank == 4 ? shape[2] : shape[1];
  const int64_t depth = shape[3];
  int64_t rotated = ctx.int_attr("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = depth;
  if (rotated < 2 || rotated > depth || rotated % 2 != 0)
    return ctx.invalid("rotary_embedding_dim " + std::to_string(rotated) + " does not fit heads of " +
                       std::to_string(depth));
  const int64_t half = rotated / 2;
  if (ctx.shape(1) != ctx.shape(2)) return ctx.invalid("cos_cache and sin_cache have different shapes");
  ValueId tables[2] = {e.in(1), e.in(2)};
  for (ValueId& table : tables) {
    if (ctx.has(3)) {
      if (ctx.rank(1) != 2 || ctx.shape(3) != Shape{batch, length})
        return ctx.invalid(
            "position_ids must be (batch, length) and the caches (positions, rotary_embedding_dim / 2)");
      TS_ASSIGN_OR_RETURN(table, e.op("Gather", {table, e.in(3)}));
    }
    if (e.shape(table) != Shape{batch, length, half})
      return ctx.invalid("the caches are " + describe(ctx.dtype(1), e.shape(table)) + " instead of " +
                         describe(ctx.dtype(1), {batch, length, half}));
    TS_ASSIGN_OR_RETURN(
        table, e.reshape(table, rank == 4 ? Shape{batch, 1, length, half} : Shape{batch, length, 1, half}));
    TS_ASSIGN_OR_RETURN(table, e.cast(table, dtype));
  }
  Shape pairs = shape;
  pairs[3] = half;
  pairs.insert(pairs.begin() + (interleaved ? 4 : 3), 2);
  const int64_t pair_axis = interleaved ? 4 : 3;
  ValueId rotating = x;
  if (rotated < depth) {
    TS_ASSIGN_OR_RETURN(rotating, e.slice(x, 3, 0, rotated));
  }
  TS_ASSIGN_OR_RETURN(rotating, e.reshape(rotating, pairs));
  ValueId parts[2];
  for (int64_t p = 0; p < 2; ++p) {
    TS_ASSIGN_OR_RETURN(parts[p],
                        e.op("Gather", {rotating, e.scalar(DType::kI64, p)}, {{"axis", pair_axis}}));
  }
  const auto times = [&](int part, int table) { return e.op("Mul", {parts[part], tables[table]}); };
  TS_ASSIGN_OR_RETURN(const ValueId a, times(0, 0));
  TS_ASSIGN_OR_RETURN(const ValueId b, times(1, 1));
  TS_ASSIGN_OR_RETURN(const ValueId c, times(0, 1));
  TS_ASSIGN_OR_RETURN(const ValueId d, times(1, 0));
  TS_ASSIGN_OR_RETURN(ValueId real, e.op("Sub", {a, b}));
  TS_ASSIGN_OR_RETURN(ValueId imaginary, e.op("Add", {c, d}));
  ValueId result = kNoValue;
  if (interleaved) {
    TS_ASSIGN_OR_RETURN(real, e.op("Unsqueeze", {real, e.ints({4})}));
    TS_ASSIGN_OR_RETURN(imaginary, e.op("Unsqueeze", {imaginary, e.ints({4})}));
  }
  TS_ASSIGN_OR_RETURN(result, e.op("Concat", {real, imaginary}, {{"axis", int64_t{interleaved ? 4 : 3}}}));
  Shape together = shape;
  together[3] = rotated;
  TS_ASSIGN_OR_RETURN(result, e.reshape(result, together));
  if (rotated < depth) {
    TS_ASSIGN_OR_RETURN(const ValueId rest, e.slice(x, 3, rotated, depth));
    TS_ASSIGN_OR_RETURN(result, e.op("Concat", {result, rest}, {{"axis", int64_t{3}}}));
  }
  TS_ASSIGN_OR_RETURN(result, e.reshape(result, given));
  TS_ASSIGN_OR_RETURN(result, e.cast(result, ctx.dtype(0)));
  return std::vector<ValueId>{result};
}

}  // namespace

std::span<const ExpandEntry> attention_expansions() {
  static const ExpandEntry kEntries[] = {
      {"Attention", "f:TTTaffl", expand_attention},
      {"RotaryEmbedding", "f:TTTl", expand_rotary_embedding},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
