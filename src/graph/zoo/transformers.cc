// BERT, MobileBERT, GPT-2, Llama, ViT.
#include <cmath>
#include <numeric>

#include "graph/zoo/networks.h"

namespace tensorsmith::graph::zoo {
namespace {

// Value that masks add to the scores of hidden positions.
constexpr float kHidden = -1e9F;

// [batch, positions, width] -> [batch, heads, positions, width / heads].
Tensor split_heads(NetworkBuilder& b, const Tensor& x, int64_t heads) {
  return b.transpose(b.reshape(x, {x.shape[0], x.shape[1], heads, x.shape[2] / heads}), {0, 2, 1, 3});
}
Tensor join_heads(NetworkBuilder& b, const Tensor& x) {
  return b.reshape(b.transpose(x, {0, 2, 1, 3}), {x.shape[0], x.shape[2], x.shape[1] * x.shape[3]});
}

// Scaled dot-product attention over split heads; the mask, if any, is added to the scores.
Tensor attend(NetworkBuilder& b, const Tensor& query, const Tensor& key, const Tensor& value,
              const Tensor* mask) {
  Tensor scores = b.matmul(query, b.transpose(key, {0, 1, 3, 2}));
  scores = b.divide(scores, b.scalar(std::sqrt(static_cast<float>(query.shape[3]))));
  if (mask != nullptr) scores = b.add(scores, *mask);
  return join_heads(b, b.matmul(b.softmax(scores), value));
}

// Computes queries, keys and values of x with one linear layer each.
Tensor self_attention(NetworkBuilder& b, const Tensor& x, int64_t heads, const Tensor* mask) {
  const Tensor query = split_heads(b, b.linear(x, x.shape[2]), heads);
  const Tensor key = split_heads(b, b.linear(x, x.shape[2]), heads);
  const Tensor value = split_heads(b, b.linear(x, x.shape[2]), heads);
  return b.linear(attend(b, query, key, value, mask), x.shape[2]);
}

Tensor feed_forward(NetworkBuilder& b, const Tensor& x, int64_t inner, Activation activation) {
  return b.linear(b.activate(b.linear(x, inner), activation), x.shape[2]);
}

// [1, 1, n, n]: each position sees itself and the preceding ones.
Tensor causal_mask(NetworkBuilder& b, int64_t n) {
  std::vector<float> values(n * n, 0.0F);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) values[i * n + j] = kHidden;
  return b.table("causal_mask", {1, 1, n, n}, std::move(values));
}

// Converts [batch, n] of 1 (visible) and 0 to the mask that is added to scores, [batch, 1, 1, n].
Tensor padding_mask(NetworkBuilder& b, const Tensor& attention_mask) {
  constexpr int64_t kOnnxFloat = 1;
  const Tensor seen = b.apply("Cast", {attention_mask}, attention_mask.shape, 1, {{"to", kOnnxFloat}});
  const Tensor hidden = b.apply("Sub", {b.scalar(1), seen}, seen.shape, 1);
  return b.reshape(b.multiply(hidden, b.scalar(kHidden)), {seen.shape[0], 1, 1, seen.shape[1]});
}

struct BertInputs {
  Tensor tokens, mask, types;
};
BertInputs bert_inputs(NetworkBuilder& b, int64_t batch, int64_t sequence) {
  BertInputs in;
  in.tokens = b.input("input_ids", {batch, sequence}, true);
  in.mask = b.input("attention_mask", {batch, sequence}, true);
  in.types = b.input("token_type_ids", {batch, sequence}, true);
  return in;
}

constexpr int64_t kBertVocabulary = 30522;
constexpr int64_t kBertPositions = 512;
constexpr double kEmbeddingDeviation = 0.5;

Tensor bert_positions(NetworkBuilder& b, int64_t sequence, int64_t width) {
  return b.slice(b.weight("position_embeddings", {kBertPositions, width}, 0, kEmbeddingDeviation), 0, 0,
                 sequence);
}

// MobileBERT's NoNorm: a scale and a shift.
Tensor affine(NetworkBuilder& b, const Tensor& x, const std::string& name) {
  const Shape width = {x.shape.back()};
  // The scale gives the sum of two equally large values a mean square of 1.
  const double scale = 1 / std::sqrt(x.power);
  return b.add(b.multiply(x, b.weight(name + ".weight", width, scale, 0.1 * scale)),
               b.weight(name + ".bias", width, 0, 0.1));
}

Tensor mobilebert_layer(NetworkBuilder& b, const Tensor& x, const Tensor& mask, const std::string& name) {
  constexpr int64_t kInner = 128;
  constexpr int64_t kHeads = 4;
  const auto residual = [&](const Tensor& y, const Tensor& shortcut, const std::string& what) {
    return affine(b, b.add(y, shortcut), name + "." + what);
  };
  const Tensor narrow = affine(b, b.linear(x, kInner), name + ".bottleneck.input");
  const Tensor shared = affine(b, b.linear(x, kInner), name + ".bottleneck.attention");
  const Tensor query = split_heads(b, b.linear(shared, kInner), kHeads);
  const Tensor key = split_heads(b, b.linear(shared, kInner), kHeads);
  const Tensor value = split_heads(b, b.linear(x, kInner), kHeads);
  Tensor y = residual(b.linear(attend(b, query, key, value, &mask), kInner), narrow, "attention");
  for (int i = 0; i < 4; ++i)
    y = residual(feed_forward(b, y, 4 * kInner, Activation::kRelu), y, "ffn." + std::to_string(i));
  return residual(b.linear(y, x.shape[2]), x, "output");
}

// RMS normalization (Zhang and Sennrich 2019): x / root(mean(x^2) + epsilon) * weight.
Tensor rms_norm(NetworkBuilder& b, const Tensor& x, const std::string& name) {
  Tensor mean = b.mean(b.multiply(x, x));
  mean.power = x.power * x.power;
  const Tensor root = b.apply("Sqrt", {b.add(mean, b.scalar(1e-5F))}, mean.shape, x.power);
  return b.multiply(b.divide(x, root), b.weight(name, {x.shape.back()}, 1, 0.1));
}

// Rotary embedding (Su et al. 2021): the halves of each head rotate by angles that grow with the
// position.
struct Rotary {
  Tensor cosine, sine;  // [1, 1, n, head]
};
Rotary rotary_tables(NetworkBuilder& b, int64_t n, int64_t head) {
  std::vector<float> cosine;
  std::vector<float> sine;
  for (int64_t position = 0; position < n; ++position) {
    for (int64_t i = 0; i < head; ++i) {
      const double frequency = std::pow(10000.0, -2.0 * (i % (head / 2)) / head);
      const double angle = position * frequency;
      cosine.push_back(std::cos(angle));
      sine.push_back(std::sin(angle));
    }
  }
  return {b.table("rotary_cosine", {1, 1, n, head}, std::move(cosine)),
          b.table("rotary_sine", {1, 1, n, head}, std::move(sine))};
}
Tensor rotate(NetworkBuilder& b, const Tensor& x, const Rotary& tables) {
  const int64_t half = x.shape[3] / 2;
  const Tensor low = b.slice(x, 3, 0, half);
  const Tensor high = b.slice(x, 3, half, 2 * half);
  const Tensor turned = b.concat({b.apply("Neg", {high}, high.shape, high.power), low}, 3);
  Tensor out = b.add(b.multiply(x, tables.cosine), b.multiply(turned, tables.sine));
  out.power = x.power;
  return out;
}

// Logits of a language model whose input embeddings are also its output weights.
void output_tied_logits(NetworkBuilder& b, const Tensor& x, const Tensor& embeddings) {
  const Tensor rows = b.reshape(x, {x.shape[0] * x.shape[1], x.shape[2]});
  b.output("logits",
           b.reshape(b.linear_shared(rows, embeddings), {x.shape[0], x.shape[1], embeddings.shape[0]}));
}

}  // namespace

void add_bert(NetworkBuilder& b, int64_t batch, int64_t sequence, int64_t layers, int64_t width) {
  constexpr double kEpsilon = 1e-12;
  const BertInputs in = bert_inputs(b, batch, sequence);
  const Tensor mask = padding_mask(b, in.mask);
  Tensor x =
      b.gather(b.weight("word_embeddings", {kBertVocabulary, width}, 0, kEmbeddingDeviation), in.tokens);
  x = b.add(x, b.gather(b.weight("token_type_embeddings", {2, width}, 0, kEmbeddingDeviation), in.types));
  x = b.layer_norm(b.add(x, bert_positions(b, sequence, width)), kEpsilon);
  for (int64_t i = 0; i < layers; ++i) {
    x = b.layer_norm(b.add(self_attention(b, x, width / 64, &mask), x), kEpsilon);
    x = b.layer_norm(b.add(feed_forward(b, x, 4 * width, Activation::kGelu), x), kEpsilon);
  }
  b.output("last_hidden_state", x);
  const Tensor first = b.gather(x, b.integers({}, {0}), 1);
  b.output("pooler_output", b.activate(b.linear(first, width), Activation::kTanh));
}

void add_mobilebert(NetworkBuilder& b, int64_t batch, int64_t sequence) {
  constexpr int64_t kEmbedded = 128;
  constexpr int64_t kWidth = 512;
  const BertInputs in = bert_inputs(b, batch, sequence);
  const Tensor mask = padding_mask(b, in.mask);
  const Tensor words =
      b.gather(b.weight("word_embeddings", {kBertVocabulary, kEmbedded}, 0, kEmbeddingDeviation), in.tokens);
  // Concatenates each token with its neighbours, with zeros beyond the ends.
  const Tensor edge = b.table("zeros", {batch, 1, kEmbedded}, std::vector<float>(batch * kEmbedded));
  const Tensor next = sequence > 1 ? b.concat({b.slice(words, 1, 1, sequence), edge}, 1) : edge;
  const Tensor before = sequence > 1 ? b.concat({edge, b.slice(words, 1, 0, sequence - 1)}, 1) : edge;
  Tensor x = b.linear(b.concat({next, words, before}, 2), kWidth);
  x = b.add(x, bert_positions(b, sequence, kWidth));
  x = b.add(x, b.gather(b.weight("token_type_embeddings", {2, kWidth}, 0, kEmbeddingDeviation), in.types));
  x = affine(b, x, "embeddings");
  for (int i = 0; i < 24; ++i) x = mobilebert_layer(b, x, mask, "layer." + std::to_string(i));
  b.output("last_hidden_state", x);
  b.output("pooler_output", b.gather(x, b.integers({}, {0}), 1));
}

void add_gpt2(NetworkBuilder& b, int64_t batch, int64_t sequence) {
  constexpr int64_t kWidth = 768;
  constexpr double kEpsilon = 1e-5;
  const Tensor tokens = b.input("input_ids", {batch, sequence}, true);
  const Tensor mask = causal_mask(b, sequence);
  const Tensor embeddings = b.weight("wte", {50257, kWidth}, 0, 1 / std::sqrt(double{kWidth}));
  const Tensor positions = b.weight("wpe", {1024, kWidth}, 0, 1 / std::sqrt(double{kWidth}));
  Tensor x = b.add(b.gather(embeddings, tokens), b.slice(positions, 0, 0, sequence));
  for (int i = 0; i < 12; ++i) {
    const Tensor joint = b.linear(b.layer_norm(x, kEpsilon), 3 * kWidth);
    const auto part = [&](int64_t k) {
      return split_heads(b, b.slice(joint, 2, k * kWidth, (k + 1) * kWidth), 12);
    };
    x = b.add(x, b.linear(attend(b, part(0), part(1), part(2), &mask), kWidth));
    x = b.add(x, feed_forward(b, b.layer_norm(x, kEpsilon), 4 * kWidth, Activation::kGeluTanh));
  }
  output_tied_logits(b, b.layer_norm(x, kEpsilon), embeddings);
}

void add_llama(NetworkBuilder& b, int64_t batch, int64_t sequence, const Llama& net) {
  const Tensor tokens = b.input("input_ids", {batch, sequence}, true);
  const Tensor mask = causal_mask(b, sequence);
  const Rotary rotary = rotary_tables(b, sequence, net.width / net.heads);
  const Tensor embeddings = b.weight("embeddings", {32000, net.width}, 0, 1 / std::sqrt(net.width));
  Tensor x = b.gather(embeddings, tokens);
  for (int64_t i = 0; i < net.layers; ++i) {
    const std::string name = "layer." + std::to_string(i);
    const Tensor attended = rms_norm(b, x, name + ".attention_norm");
    const Tensor query = rotate(b, split_heads(b, b.linear(attended, net.width, false), net.heads), rotary);
    const Tensor key = rotate(b, split_heads(b, b.linear(attended, net.width, false), net.heads), rotary);
    const Tensor value = split_heads(b, b.linear(attended, net.width, false), net.heads);
    x = b.add(x, b.linear(attend(b, query, key, value, &mask), net.width, false));
    const Tensor fed = rms_norm(b, x, name + ".ffn_norm");
    const Tensor gate = b.activate(b.linear(fed, net.inner, false), Activation::kSwish);
    x = b.add(x, b.linear(b.multiply(gate, b.linear(fed, net.inner, false)), net.width, false));
  }
  output_tied_logits(b, rms_norm(b, x, "norm"), embeddings);
}

void add_vit_b16(NetworkBuilder& b, int64_t batch, int64_t size) {
  constexpr int64_t kWidth = 768;
  constexpr int64_t kPatch = 16;
  constexpr double kEpsilon = 1e-6;
  const int64_t patches = (size / kPatch) * (size / kPatch);
  Tensor x = b.conv(b.input("image", {batch, 3, size, size}), kWidth, square(kPatch, kPatch), 1, true);
  x = b.transpose(b.reshape(x, {batch, kWidth, patches}), {0, 2, 1});
  // The class token, repeated for each image.
  const Tensor token =
      b.apply("Expand", {b.weight("class_token", {1, 1, kWidth}, 0, 1), b.integers({3}, {batch, 1, 1})},
              {batch, 1, kWidth}, 1);
  x = b.add(b.concat({token, x}, 1), b.weight("position_embeddings", {1, patches + 1, kWidth}, 0, 0.02));
  for (int i = 0; i < 12; ++i) {
    x = b.add(x, self_attention(b, b.layer_norm(x, kEpsilon), 12, nullptr));
    x = b.add(x, feed_forward(b, b.layer_norm(x, kEpsilon), 4 * kWidth, Activation::kGelu));
  }
  const Tensor first = b.gather(b.layer_norm(x, kEpsilon), b.integers({}, {0}), 1);
  b.output("logits", b.linear(first, 1000));
}

}  // namespace tensorsmith::graph::zoo
