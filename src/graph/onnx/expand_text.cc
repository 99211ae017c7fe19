// TfIdfVectorizer on integers.
#include <algorithm>

#include "graph/onnx/expand.h"

namespace tensorsmith::graph {

namespace {

using ir::DType;

// Counts the n-grams of a pool, with one matrix per n-gram length, and then moves each count to its
// column.
Result<std::vector<ValueId>> expand_tf_idf(Expansion& e) {
  OpContext& ctx = e.ctx;
  const std::string mode = ctx.string_attr("mode", "");
  const auto pool = ctx.ints_attr("pool_int64s");
  const auto starts = ctx.ints_attr("ngram_counts");
  const auto columns = ctx.ints_attr("ngram_indexes");
  const auto weights = ctx.floats_attr("weights");
  const int64_t shortest = ctx.int_attr("min_gram_length", 1);
  const int64_t longest = ctx.int_attr("max_gram_length", 1);
  const int64_t skips = ctx.int_attr("max_skip_count", 0);
  if (ctx.error()) return *ctx.error();
  if (!pool) return ctx.unsupported("strings; only pool_int64s is supported");
  if (!starts || !columns || starts->empty() || columns->empty())
    return ctx.invalid("ngram_counts or ngram_indexes is missing");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return ctx.invalid("unknown mode '" + mode + "'");
  constexpr int64_t kMaxColumns = 1 << 24;
  if (skips < 0 || skips > 1 << 16 || shortest < 1 || longest < shortest)
    return ctx.invalid("max_skip_count or the lengths of n-grams are out of range");
  const int64_t width = *std::max_element(columns->begin(), columns->end()) + 1;
  if (*std::min_element(columns->begin(), columns->end()) < 0 || width > kMaxColumns)
    return ctx.invalid("ngram_indexes are out of range");
  if (weights && std::ssize(*weights) != width) return ctx.invalid("there must be one weight per column");
  Shape shape = ctx.shape(0);
  if (shape.size() != 1 && shape.size() != 2) return ctx.invalid("the data must have rank 1 or 2");
  const bool single = shape.size() == 1;
  ValueId x = e.in(0);
  if (single) {
    shape.insert(shape.begin(), 1);
    TS_ASSIGN_OR_RETURN(x, e.reshape(x, shape));
  }
  TS_ASSIGN_OR_RETURN(x, e.cast(x, DType::kI64));

  std::vector<ValueId> counts;
  std::vector<int64_t> source(width, -1);  // for each column: its position among the counts
  int64_t counted = 0;
  int64_t gram = 0;  // index in the whole pool
  for (int64_t length = 1; length <= std::ssize(*starts); ++length) {
    const int64_t begin = (*starts)[length - 1];
    const int64_t end = length < std::ssize(*starts) ? (*starts)[length] : std::ssize(*pool);
    if (begin < 0 || begin > end || end > std::ssize(*pool) || (end - begin) % length != 0)
      return ctx.invalid("ngram_counts do not fit the pool");
    const int64_t grams = (end - begin) / length;
    if (gram + grams > std::ssize(*columns))
      return ctx.invalid("ngram_indexes has fewer entries than the pool");
    if (grams > 0 && length >= shortest && length <= longest) {
      lower::Tensor table = lower::Tensor::zeros(DType::kI64, {grams, length});
      for (int64_t i = 0; i < grams * length; ++i)
        table.set(i, ir::scalar_int(DType::kI64, (*pool)[begin + i]));
      TS_ASSIGN_OR_RETURN(const ValueId made, e.op("Bounded.NgramCount", {x, e.constant(std::move(table))},
                                                   {{"skips", length == 1 ? int64_t{0} : skips}}));
      counts.push_back(made);
      for (int64_t i = 0; i < grams; ++i) {
        int64_t& place = source[(*columns)[gram + i]];
        if (place >= 0) return ctx.unsupported("two n-grams with the same index");
        place = counted + i;
      }
      counted += grams;
    }
    gram += grams;
  }
  if (counts.empty()) return ctx.invalid("the pool has no n-gram of the wanted lengths");
  ValueId all = counts[0];
  if (counts.size() > 1) {
    TS_ASSIGN_OR_RETURN(all, e.op("Concat", counts, {{"axis", int64_t{1}}}));
  }
  std::vector<double> factor(width, 1);
  for (size_t c = 0; c < factor.size(); ++c) {
    if (weights && mode != "TF") factor[c] = (*weights)[c];
    if (source[c] < 0) factor[c] = 0;
    source[c] = std::max<int64_t>(source[c], 0);
  }
  TS_ASSIGN_OR_RETURN(ValueId result, e.op("Gather", {all, e.ints(source)}, {{"axis", int64_t{1}}}));
  if (mode == "IDF") {
    TS_ASSIGN_OR_RETURN(result, e.op("Min", {result, e.scalar(DType::kF32, 1)}));
  }
  TS_ASSIGN_OR_RETURN(result, e.op("Mul", {result, e.constant(vector_of(DType::kF32, factor))}));
  if (single) {
    TS_ASSIGN_OR_RETURN(result, e.reshape(result, {width}));
  }
  return std::vector<ValueId>{result};
}

}  // namespace

std::span<const ExpandEntry> text_expansions() {
  static const ExpandEntry kEntries[] = {{"TfIdfVectorizer", "i:T", expand_tf_idf}};
  return kEntries;
}

}  // namespace tensorsmith::graph
