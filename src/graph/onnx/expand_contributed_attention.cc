// Attentions of ONNX Runtime (com.microsoft) as functions over the standard one: Attention, GroupQueryAttention,
// MultiHeadAttention.
#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;
using Values = std::vector<ValueId>;

// (batch, length, heads * depth) to (batch, heads, length, depth)
Result<ValueId> heads_first(Expansion& e, ValueId id, int64_t heads) {
  const Shape& shape = e.shape(id);
  if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0)
    return e.ctx.invalid("an input of shape " + describe(e.dtype(id), shape) + " does not divide into " +
                         std::to_string(heads) + " heads");
  TS_ASSIGN_OR_RETURN(const ValueId split, e.reshape(id, {shape[0], shape[1], heads, shape[2] / heads}));
  return e.transpose(split, {0, 2, 1, 3});
}

// The inverse of heads_first().
Result<ValueId> heads_last(Expansion& e, ValueId id) {
  const Shape shape = e.shape(id);
  TS_ASSIGN_OR_RETURN(const ValueId moved, e.transpose(id, {0, 2, 1, 3}));
  return e.reshape(moved, {shape[0], shape[2], shape[1] * shape[3]});
}

ValueId numbers(Expansion& e, const Shape& shape, int64_t first = 0) {
  lower::Tensor tensor = lower::Tensor::zeros(DType::kI64, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, ir::scalar_int(DType::kI64, first + i));
  return e.constant(std::move(tensor));
}

// The attributes of an attention that mean the same in the standard one.
std::map<std::string, Attribute> attention_attributes(OpContext& ctx) {
  std::map<std::string, Attribute> attributes;
  if (const double scale = ctx.float_attr("scale", 0); scale != 0) attributes["scale"] = scale;
  if (const double softcap = ctx.float_attr("softcap", 0); softcap != 0) attributes["softcap"] = softcap;
  return attributes;
}

// The keys or values of a GroupQueryAttention: `past` elements of the cache, then the new ones; the caches have
// `total` places. All have the shape (batch, heads, places, depth), `past` the shape (batch, 1, 1, 1).
struct CacheUpdate {
  ValueId cache = kNoValue, fresh = kNoValue, past = kNoValue;
  int64_t total = 0;
};
Result<ValueId> updated(Expansion& e, const CacheUpdate& u) {
  const Shape fresh = e.shape(u.fresh);
  const Shape all = {fresh[0], fresh[1], u.total, fresh[3]};
  ValueId old = u.cache;
  if (old == kNoValue) {
    old = e.constant(lower::Tensor::zeros(e.dtype(u.fresh), {1, 1, 1, 1}));
  } else if (e.shape(old)[2] < u.total) {
    TS_ASSIGN_OR_RETURN(old, e.op("Pad", {old, e.ints({0, 0, 0, 0, 0, 0, u.total - e.shape(old)[2], 0})}));
  }
  // Place p is the new element p - past, if there is one.
  TS_ASSIGN_OR_RETURN(const ValueId place, e.op("Sub", {numbers(e, {1, 1, u.total, 1}), u.past}));
  TS_ASSIGN_OR_RETURN(const ValueId last, e.op("Min", {place, e.scalar(DType::kI64, fresh[2] - 1)}));
  TS_ASSIGN_OR_RETURN(ValueId source, e.op("Max", {last, e.scalar(DType::kI64, 0)}));
  TS_ASSIGN_OR_RETURN(const ValueId is_new, e.op("Equal", {source, place}));
  TS_ASSIGN_OR_RETURN(source, e.op("Expand", {source, e.ints(all)}));
  TS_ASSIGN_OR_RETURN(const ValueId moved, e.op("GatherElements", {u.fresh, source}, {{"axis", int64_t{2}}}));
  // The places after the new elements are 0.
  TS_ASSIGN_OR_RETURN(const ValueId is_old, e.op("Less", {place, e.scalar(DType::kI64, 0)}));
  TS_ASSIGN_OR_RETURN(const ValueId kept, e.op("Where", {is_old, old, e.scalar(e.dtype(u.fresh), 0)}));
  return e.op("Where", {is_new, moved, kept});
}

// Inputs: query, key, value, past_key, past_value, seqlens_k (length of each sequence - 1), total_sequence_length,
// cos_cache, sin_cache, position_ids, attention_bias.
struct GroupQuery {
  explicit GroupQuery(Expansion& expansion) : e(expansion) {}

  Expansion& e;
  OpContext& ctx = e.ctx;
  const int64_t heads = ctx.int_attr("num_heads", 0), kv_heads = ctx.int_attr("kv_num_heads", 0);
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;
  ValueId past = kNoValue;  // elements of the cache that count, (batch, 1, 1, 1)
  int64_t batch = 0, length = 0, total = 0;

  Status read_inputs() {
    if (ctx.int_attr("smooth_softmax", 0) > 0 || ctx.has(11))
      return ctx.unsupported("smooth_softmax and head_sink");
    for (const char* name : {"k_quant_type", "v_quant_type"})
      if (ctx.string_attr(name, "NONE") != "NONE") return ctx.unsupported("quantized caches");
    if (ctx.rank(0) != 3 || heads < 1 || kv_heads < 1) return ctx.invalid("the query must have rank 3");
    query = e.in(0);
    key = e.in(1);
    value = e.in(2);
    if (!ctx.has(1)) {  // the three are packed
      const int64_t depth = ctx.shape(0)[2] / (heads + 2 * kv_heads);
      const int64_t q = heads * depth, k = q + kv_heads * depth;
      TS_ASSIGN_OR_RETURN(key, e.slice(query, 2, q, k));
      TS_ASSIGN_OR_RETURN(value, e.slice(query, 2, k, k + kv_heads * depth));
      TS_ASSIGN_OR_RETURN(query, e.slice(query, 2, 0, q));
    }
    TS_ASSIGN_OR_RETURN(query, heads_first(e, query, heads));
    TS_ASSIGN_OR_RETURN(key, heads_first(e, key, kv_heads));
    TS_ASSIGN_OR_RETURN(value, heads_first(e, value, kv_heads));
    batch = e.shape(query)[0];
    length = e.shape(query)[2];
    TS_ASSIGN_OR_RETURN(const auto totals, ctx.constant_ints(6, "total_sequence_length"));
    if (totals.size() != 1 || totals[0] < length) return ctx.invalid("total_sequence_length is too small");
    total = totals[0];
    if (ctx.has(3)) total = std::max(total, ctx.rank(3) == 4 ? ctx.shape(3)[2] : 0);
    if (product(ctx.shape(5)) != batch) return ctx.invalid("seqlens_k must have one number per batch");
    // A first prompt has no past, whatever its padding.
    if (totals[0] == length) {
      past = e.constant(lower::Tensor::zeros(DType::kI64, {1, 1, 1, 1}));
      return {};
    }
    TS_ASSIGN_OR_RETURN(past, e.cast(e.in(5), DType::kI64));
    TS_ASSIGN_OR_RETURN(past, e.reshape(past, {batch, 1, 1, 1}));
    TS_ASSIGN_OR_RETURN(past, e.op("Add", {past, e.scalar(DType::kI64, 1 - length)}));
    return {};
  }

  Status rotate() {
    if (ctx.int_attr("do_rotary", 0) == 0) return {};
    if (!ctx.has(7) || !ctx.has(8)) return ctx.invalid("do_rotary needs cos_cache and sin_cache");
    ValueId positions = e.in(9);
    if (!ctx.has(9)) {
      TS_ASSIGN_OR_RETURN(positions, e.reshape(past, {e.shape(past)[0], 1}));
      TS_ASSIGN_OR_RETURN(positions, e.op("Add", {positions, numbers(e, {1, length})}));
      TS_ASSIGN_OR_RETURN(positions, e.op("Expand", {positions, e.ints({batch, length})}));
    }
    std::map<std::string, Attribute> attributes = {{"interleaved", ctx.int_attr("rotary_interleaved", 0)}};
    if (const int64_t rotated = 2 * ctx.shape(7).back(); rotated != e.shape(query)[3])
      attributes["rotary_embedding_dim"] = rotated;
    for (ValueId* id : {&query, &key}) {
      TS_ASSIGN_OR_RETURN(*id, e.op("RotaryEmbedding", {*id, e.in(7), e.in(8), positions}, attributes));
    }
    return {};
  }

  // Query i is at position past + i and sees the keys up to there, of those at most local_window_size.
  Result<ValueId> mask() {
    TS_ASSIGN_OR_RETURN(const ValueId position, e.op("Add", {past, numbers(e, {1, 1, length, 1})}));
    const ValueId places = numbers(e, {1, 1, 1, total});
    TS_ASSIGN_OR_RETURN(ValueId seen, e.op("LessOrEqual", {places, position}));
    if (const int64_t window = ctx.int_attr("local_window_size", -1); window > 0) {
      TS_ASSIGN_OR_RETURN(const ValueId first, e.op("Sub", {position, e.scalar(DType::kI64, window)}));
      TS_ASSIGN_OR_RETURN(const ValueId near, e.op("Greater", {places, first}));
      TS_ASSIGN_OR_RETURN(seen, e.op("And", {seen, near}));
    }
    if (!ctx.has(10)) return seen;
    const DType dtype = ctx.dtype(10);
    TS_ASSIGN_OR_RETURN(
        const ValueId hidden,
        e.op("Where", {seen, e.scalar(dtype, 0), e.scalar(dtype, -std::numeric_limits<float>::infinity())}));
    return e.op("Add", {e.in(10), hidden});
  }
};

Result<Values> expand_group_query(Expansion& e) {
  GroupQuery g(e);
  TS_RETURN_IF_ERROR(g.read_inputs());
  TS_RETURN_IF_ERROR(g.rotate());
  TS_ASSIGN_OR_RETURN(const ValueId keys, updated(e, {e.in(3), g.key, g.past, g.total}));
  TS_ASSIGN_OR_RETURN(const ValueId values, updated(e, {e.in(4), g.value, g.past, g.total}));
  TS_ASSIGN_OR_RETURN(const ValueId mask, g.mask());
  TS_ASSIGN_OR_RETURN(ValueId result,
                      e.op("Attention", {g.query, keys, values, mask}, attention_attributes(e.ctx)));
  TS_ASSIGN_OR_RETURN(result, heads_last(e, result));
  return Values{result, keys, values};
}

// Returns what is added to the scores for a mask that is 0 for hidden keys; it broadcasts to (batch, heads, queries,
// keys). A mask of rank 1 has the number of keys that each batch shows.
Result<ValueId> added_mask(Expansion& e, ValueId mask, int64_t batch, int64_t keys) {
  const Shape shape = e.shape(mask);
  if (shape == Shape{batch}) {
    TS_ASSIGN_OR_RETURN(const ValueId shown, e.reshape(mask, {batch, 1, 1, 1}));
    TS_ASSIGN_OR_RETURN(const ValueId wide_count, e.cast(shown, DType::kI64));
    TS_ASSIGN_OR_RETURN(mask, e.op("Less", {numbers(e, {1, 1, 1, keys}), wide_count}));
  } else if (shape.size() == 2 && shape[0] == batch) {
    TS_ASSIGN_OR_RETURN(mask, e.reshape(mask, {batch, 1, 1, shape[1]}));
  } else if (shape.size() == 3 && shape[0] == batch) {
    TS_ASSIGN_OR_RETURN(mask, e.reshape(mask, {batch, 1, shape[1], shape[2]}));
  } else {
    return e.ctx.unsupported("a mask of shape " + describe(e.dtype(mask), shape));
  }
  TS_ASSIGN_OR_RETURN(const ValueId kept, e.cast(mask, DType::kBool));
  const DType dtype = e.ctx.dtype(0);
  return e.op("Where",
              {kept, e.scalar(dtype, 0), e.scalar(dtype, e.ctx.float_attr("mask_filter_value", -10000))});
}

// Inputs: query, key, value (batch, length, heads * depth), bias, key_padding_mask, attention_bias, past_key, past_value.
Result<Values> expand_multi_head(Expansion& e) {
  OpContext& ctx = e.ctx;
  const int64_t heads = ctx.int_attr("num_heads", 0);
  if (!ctx.has(1) || !ctx.has(2) || ctx.rank(0) != 3)
    return ctx.unsupported("packed queries, keys and values");
  Values parts = {e.in(0), e.in(1), e.in(2)};
  if (ctx.has(3)) {
    int64_t begin = 0;
    for (ValueId& part : parts) {
      if (e.shape(part).size() != 3) return ctx.unsupported("a bias with keys of rank 4");
      const int64_t width = e.shape(part)[2];
      TS_ASSIGN_OR_RETURN(const ValueId bias, e.slice(e.in(3), 0, begin, begin + width));
      TS_ASSIGN_OR_RETURN(part, e.op("Add", {part, bias}));
      begin += width;
    }
  }
  for (ValueId& part : parts) {
    if (e.shape(part).size() == 4) continue;  // keys and values of a cross attention have their heads first
    TS_ASSIGN_OR_RETURN(part, heads_first(e, part, heads));
  }
  Values inputs = parts;
  ValueId mask = e.in(5);
  if (ctx.has(4)) {
    const int64_t keys = e.shape(parts[1])[2] + (ctx.has(6) && ctx.rank(6) == 4 ? ctx.shape(6)[2] : 0);
    TS_ASSIGN_OR_RETURN(const ValueId added, added_mask(e, e.in(4), e.shape(parts[0])[0], keys));
    if (mask == kNoValue) {
      mask = added;
    } else {
      TS_ASSIGN_OR_RETURN(mask, e.op("Add", {mask, added}));
    }
  }
  inputs.push_back(mask);
  if (ctx.has(6)) {
    inputs.push_back(e.in(6));
    inputs.push_back(e.in(7));
  }
  while (inputs.back() == kNoValue) inputs.pop_back();
  auto attributes = attention_attributes(ctx);
  if (ctx.int_attr("unidirectional", 0) != 0) attributes["is_causal"] = int64_t{1};
  TS_ASSIGN_OR_RETURN(const Values results, e.ops("Attention", inputs, 3, attributes));
  TS_ASSIGN_OR_RETURN(const ValueId result, heads_last(e, results[0]));
  return Values{result, results[1], results[2]};
}

// Inputs: data (batch, length, width), weights of queries, keys and values side by side, their bias, mask_index, past
// keys and values (2, batch, heads, length, depth), attention_bias.
Result<Values> expand_packed_attention(Expansion& e) {
  OpContext& ctx = e.ctx;
  const int64_t heads = ctx.int_attr("num_heads", 0);
  if (ctx.int_attr("do_rotary", 0) != 0 || ctx.int_attr("past_present_share_buffer", 0) != 0)
    return ctx.unsupported("do_rotary and past_present_share_buffer");
  if (ctx.rank(0) != 3 || ctx.rank(1) != 2 || ctx.shape(1)[0] != ctx.shape(0)[2])
    return ctx.invalid("the data must be (batch, length, width) and the weights (width, all heads)");
  std::vector<int64_t> sizes =
      ctx.ints_attr("qkv_hidden_sizes").value_or(std::vector<int64_t>(3, ctx.shape(1)[1] / 3));
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[0] + sizes[1] + sizes[2] != ctx.shape(1)[1])
    return ctx.invalid("qkv_hidden_sizes do not fit the weights");
  TS_ASSIGN_OR_RETURN(ValueId all, e.op("MatMul", {e.in(0), e.in(1)}));
  if (ctx.has(2)) {
    TS_ASSIGN_OR_RETURN(all, e.op("Add", {all, e.in(2)}));
  }
  Values inputs;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    TS_ASSIGN_OR_RETURN(const ValueId part, e.slice(all, 2, begin, begin + size));
    TS_ASSIGN_OR_RETURN(inputs.emplace_back(), heads_first(e, part, heads));
    begin += size;
  }
  const int64_t batch = ctx.shape(0)[0], length = ctx.shape(0)[1];
  Values past;
  if (ctx.has(4)) {
    if (ctx.rank(4) != 5 || ctx.shape(4)[0] != 2) return ctx.invalid("past must have rank 5");
    for (const int64_t i : {0, 1}) {
      TS_ASSIGN_OR_RETURN(const ValueId one, e.slice(e.in(4), 0, i, i + 1));
      TS_ASSIGN_OR_RETURN(past.emplace_back(),
                          e.reshape(one, Shape(ctx.shape(4).begin() + 1, ctx.shape(4).end())));
    }
  }
  const int64_t keys = length + (ctx.has(4) ? ctx.shape(4)[3] : 0);
  ValueId mask = e.in(5);
  if (ctx.has(3)) {
    TS_ASSIGN_OR_RETURN(const ValueId added, added_mask(e, e.in(3), batch, keys));
    mask = added;
    if (ctx.has(5)) {
      TS_ASSIGN_OR_RETURN(mask, e.op("Add", {e.in(5), added}));
    }
  }
  inputs.push_back(mask);
  inputs.insert(inputs.end(), past.begin(), past.end());
  while (inputs.back() == kNoValue) inputs.pop_back();
  auto attributes = attention_attributes(ctx);
  if (ctx.int_attr("unidirectional", 0) != 0) attributes["is_causal"] = int64_t{1};
  TS_ASSIGN_OR_RETURN(const Values results, e.ops("Attention", inputs, 3, attributes));
  TS_ASSIGN_OR_RETURN(const ValueId result, heads_last(e, results[0]));
  if (!ctx.wants_output(1)) return Values{result};
  Values present;
  for (const size_t i : {size_t{1}, size_t{2}}) {
    TS_ASSIGN_OR_RETURN(present.emplace_back(), e.op("Unsqueeze", {results[i], e.ints({0})}));
  }
  TS_ASSIGN_OR_RETURN(const ValueId both, e.op("Concat", present, {{"axis", int64_t{0}}}));
  return Values{result, both};
}

}  // namespace

std::span<const ExpandEntry> contributed_attention_expansions() {
  static const ExpandEntry kEntries[] = {
      {"com.microsoft.Attention", "f:TTtitti", expand_packed_attention,
       "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
       "rotary_embedding_dim scale "
       "unidirectional"},
      {"com.microsoft.GroupQueryAttention", "f:TttttIIttltt", expand_group_query,
       "do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads qk_output "
       "rotary_interleaved "
       "scale smooth_softmax softcap v_quant_type"},
      {"com.microsoft.MultiHeadAttention", "f:Ttttittt", expand_multi_head,
       "mask_filter_value num_heads scale unidirectional"},
  };
  return kEntries;
}

}  // namespace tensorsmith::graph
