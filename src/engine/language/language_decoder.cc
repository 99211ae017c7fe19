#include "engine/language/language_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "engine/language/beam_search.h"
#include "graph/graph.h"
#include "graph/zoo/builder.h"
#include "graph/zoo/write.h"
#include "learn/lm/sentences.h"

namespace tensorsmith::engine {

namespace {

using graph::zoo::NetworkBuilder;
using graph::zoo::Shape;
using graph::zoo::Tensor;
using learn::lm::kOutputs;
using learn::lm::LanguageModel;
using learn::lm::Positions;

constexpr float kNever = -1e9F;  // added to the attention scores of unused positions
constexpr float kNormEpsilon = 1e-5F;
// Most draws per requested candidate.
constexpr size_t kDraws = 4;

// Builds the layers of the network with the model's weights.
class Layers {
 public:
  Layers(const LanguageModel& model, NetworkBuilder& builder) : model_(model), builder_(builder) {}

  Tensor norm(const std::string& name, const Tensor& x) {
    return builder_.apply("LayerNormalization", {x, weight(name + ".weight"), weight(name + ".bias")},
                          x.shape, 1, {{"axis", int64_t{-1}}, {"epsilon", kNormEpsilon}});
  }
  Tensor linear(const std::string& name, const Tensor& x) {
    const LanguageModel::Weight& w = model_.weights.at(name + ".weight");
    const int64_t outputs = w.shape[0], inputs = w.shape[1];
    std::vector<float> transposed(w.values.size());
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t i = 0; i < inputs; ++i) transposed[i * outputs + o] = w.values[o * inputs + i];
    const Tensor weights = builder_.table(name + ".weight", {inputs, outputs}, std::move(transposed));
    return builder_.add(builder_.matmul(x, weights), weight(name + ".bias"));
  }
  Tensor feed_forward(const std::string& layer, const Tensor& x) {
    const Tensor up =
        builder_.activate(linear(layer + "up", norm(layer + "norm2", x)), graph::zoo::Activation::kRelu);
    return builder_.add(x, linear(layer + "down", up));
  }

 private:
  Tensor weight(const std::string& name) {
    const LanguageModel::Weight& w = model_.weights.at(name);
    return builder_.table(name, w.shape, w.values);
  }

  const LanguageModel& model_;
  NetworkBuilder& builder_;
};

std::string layer_name(int layer) { return "layer." + std::to_string(layer) + "."; }
std::string port(const char* what, int layer) { return what + std::to_string(layer); }

// Builds x [positions, width], mask [1, 1, positions] -> by layer keys [heads, size, positions] and
// values [heads, positions, size].
Result<graph::zoo::Network> prompt_network(const LanguageModel& model, int64_t positions) {
  NetworkBuilder b("language_model_prompt");
  Layers layers(model, b);
  const int64_t width = model.sizes.width, heads = model.sizes.heads, size = width / heads;
  Tensor x = b.input("x", {positions, width});
  const Tensor mask = b.input("mask", {1, 1, positions});
  const Tensor scale = b.scalar(static_cast<float>(1 / std::sqrt(static_cast<double>(size))));
  for (int l = 0; l < model.sizes.layers; ++l) {
    const std::string layer = layer_name(l);
    const Tensor qkv = layers.linear(layer + "qkv", layers.norm(layer + "norm1", x));
    const auto part = [&](int64_t i, const Shape& order) {
      return b.transpose(b.reshape(b.slice(qkv, 1, i * width, (i + 1) * width), {positions, heads, size}),
                         order);
    };
    const Tensor q = b.multiply(part(0, {1, 0, 2}), scale);
    const Tensor k = part(1, {1, 2, 0}), v = part(2, {1, 0, 2});
    b.output(port("k", l), k);
    b.output(port("v", l), v);
    if (l + 1 == model.sizes.layers) break;  // the last layer's output for the prompt is not used
    const Tensor weights = b.softmax(b.add(b.matmul(q, k), mask));
    const Tensor mixed = b.reshape(b.transpose(b.matmul(weights, v), {1, 0, 2}), {positions, width});
    x = layers.feed_forward(layer, b.add(x, layers.linear(layer + "out", mixed)));
  }
  return std::move(b).finish();
}

// Builds the network for one token of each answer: x [answers, width]; mask [1, 1, prompt + before
// + 1]; by layer the keys and values of the prompt and of earlier tokens: [answers, heads, size,
// before], [answers, heads, before, size] -> scores [answers, kOutputs], and by layer the keys and
// values of this token [answers, heads, size].
Result<graph::zoo::Network> step_network(const LanguageModel& model, int64_t answers, int64_t prompt,
                                         int64_t before) {
  NetworkBuilder b("language_model_step");
  Layers layers(model, b);
  const int64_t width = model.sizes.width, heads = model.sizes.heads, size = width / heads;
  Tensor x = b.input("x", {answers, width});
  const Tensor mask = b.input("mask", {1, 1, prompt + before + 1});
  const Tensor scale = b.scalar(static_cast<float>(1 / std::sqrt(static_cast<double>(size))));
  const Tensor length = b.scalar(size);
  for (int l = 0; l < model.sizes.layers; ++l) {
    const std::string layer = layer_name(l);
    const Tensor prompt_k = b.input(port("prompt_k", l), {heads, size, prompt});
    const Tensor prompt_v = b.input(port("prompt_v", l), {heads, prompt, size});
    const Tensor before_k = b.input(port("before_k", l), {answers, heads, size, before});
    const Tensor before_v = b.input(port("before_v", l), {answers, heads, before, size});
    const Tensor qkv = layers.linear(layer + "qkv", layers.norm(layer + "norm1", x));
    const auto part = [&](int64_t i) {
      return b.reshape(b.slice(qkv, 1, i * width, (i + 1) * width), {answers, heads, size});
    };
    const Tensor q = b.multiply(part(0), scale), k = part(1), v = part(2);
    b.output(port("k", l), k);
    b.output(port("v", l), v);
    const Tensor to_prompt = b.transpose(b.matmul(b.transpose(q, {1, 0, 2}), prompt_k), {1, 0, 2});
    const Tensor to_before =
        b.reshape(b.matmul(b.reshape(q, {answers, heads, 1, size}), before_k), {answers, heads, before});
    const Tensor to_self = b.multiply(b.mean(b.multiply(q, k)), length);
    const Tensor weights = b.softmax(b.add(b.concat({to_prompt, to_before, to_self}, 2), mask));
    const Tensor of_prompt =
        b.transpose(b.matmul(b.transpose(b.slice(weights, 2, 0, prompt), {1, 0, 2}), prompt_v), {1, 0, 2});
    const Tensor of_before = b.reshape(
        b.matmul(b.reshape(b.slice(weights, 2, prompt, prompt + before), {answers, heads, 1, before}),
                 before_v),
        {answers, heads, size});
    const Tensor of_self = b.multiply(b.slice(weights, 2, prompt + before, prompt + before + 1), v);
    const Tensor mixed = b.reshape(b.add(b.add(of_prompt, of_before), of_self), {answers, width});
    x = layers.feed_forward(layer, b.add(x, layers.linear(layer + "out", mixed)));
  }
  b.output("scores", layers.linear("output", layers.norm("norm", x)));
  return std::move(b).finish();
}

// A compiled network with a buffer for each input and output.
class CompiledNetwork {
 public:
  static Result<std::unique_ptr<CompiledNetwork>> create(Result<graph::zoo::Network> network,
                                                         const target::Device& device, int threads) {
    if (!network.ok()) return network.error();
    TS_ASSIGN_OR_RETURN(const std::string bytes, graph::zoo::serialize(*network, 0));
    TS_ASSIGN_OR_RETURN(auto imported, graph::import_onnx_bytes(bytes, {}, network->name));
    auto out = std::make_unique<CompiledNetwork>();
    TS_ASSIGN_OR_RETURN(out->model_, prepare_model(std::move(imported)));
    TS_ASSIGN_OR_RETURN(const auto schedules, default_schedules(out->model_.partition, device));
    CompileOptions options;
    options.cache = &out->cache_;
    options.jobs = threads;
    options.model_name = network->name;
    runtime::LoadOptions load;
    load.threads = threads;
    TS_ASSIGN_OR_RETURN(out->compiled_, compile_in_memory(out->model_, device, schedules, options, load));
    const auto make = [&](std::span<const runtime::TensorInfo> infos, auto& pointers) {
      for (const auto& info : infos) {
        auto& buffer = out->buffers_[info.name];
        buffer.assign(info.bytes() / sizeof(float), 0.0F);
        pointers.push_back(buffer.data());
      }
    };
    make(out->compiled_.model->inputs(), out->inputs_);
    make(out->compiled_.model->outputs(), out->outputs_);
    return out;
  }

  std::vector<float>& buffer(const std::string& name) { return buffers_.at(name); }
  Status run() { return compiled_.model->run(inputs_, outputs_); }

 private:
  LoadedModel model_;
  BuildCache cache_;
  ModelInMemory compiled_;
  std::map<std::string, std::vector<float>> buffers_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

class CompiledDecoder final : public LanguageDecoder {
 public:
  CompiledDecoder(const LanguageModel& model, const DecoderOptions& options)
      : sizes_(model.sizes), embedding_(model.weights.at("embedding").values), options_(options) {}

  Status compile(const LanguageModel& model, const target::Device& device) {
    TS_ASSIGN_OR_RETURN(prompt_, CompiledNetwork::create(prompt_network(model, options_.longest_prompt),
                                                         device, options_.threads));
    TS_ASSIGN_OR_RETURN(
        step_, CompiledNetwork::create(
                   step_network(model, options_.batch, options_.longest_prompt, options_.longest_answer),
                   device, options_.threads));
    return {};
  }

  const DecoderOptions& options() const override { return options_; }

  Status read(const Positions& prompt) override {
    const size_t most = options_.longest_prompt;
    const size_t count = std::min(prompt.size(), most);
    auto& x = prompt_->buffer("x");
    std::fill(x.begin(), x.end(), 0.0F);
    for (size_t i = 0; i < count; ++i) embed(prompt, i, x.data() + i * width());
    auto& mask = prompt_->buffer("mask");
    auto& step_mask = step_->buffer("mask");
    for (size_t i = 0; i < most; ++i) mask[i] = step_mask[i] = i < count ? 0.0F : kNever;
    TS_RETURN_IF_ERROR(prompt_->run());
    for (int l = 0; l < sizes_.layers; ++l) {
      step_->buffer(port("prompt_k", l)) = prompt_->buffer(port("k", l));
      step_->buffer(port("prompt_v", l)) = prompt_->buffer(port("v", l));
    }
    return {};
  }

  void begin() override { at_ = 0; }

  Result<std::span<const float>> next(const Positions& positions) override {
    TS_CHECK(std::cmp_less_equal(positions.size(), options_.batch),
             "more answers than the decoder has room for");
    TS_CHECK(at_ < options_.longest_answer, "an answer is longer than the decoder has room for");
    auto& x = step_->buffer("x");
    for (size_t i = 0; i < positions.size(); ++i) embed(positions, i, x.data() + i * width());
    auto& mask = step_->buffer("mask");
    const size_t first = options_.longest_prompt;
    for (int t = 0; t < options_.longest_answer; ++t) mask[first + t] = t < at_ ? 0.0F : kNever;
    mask[first + options_.longest_answer] = 0;
    TS_RETURN_IF_ERROR(step_->run());
    keep();
    ++at_;
    return std::span<const float>(step_->buffer("scores")).first(positions.size() * kOutputs);
  }

  void reorder(std::span<const size_t> sources) override {
    TS_CHECK(std::cmp_less_equal(sources.size(), options_.batch),
             "more answers than the decoder has room for");
    const size_t one = width() * options_.longest_answer;
    std::vector<float> moved(sources.size() * one);
    for (int l = 0; l < sizes_.layers; ++l)
      for (const char* what : {"before_k", "before_v"}) {
        auto& all = step_->buffer(port(what, l));
        for (size_t i = 0; i < sources.size(); ++i)
          std::copy_n(all.begin() + sources[i] * one, one, moved.begin() + i * one);
        std::copy(moved.begin(), moved.end(), all.begin());
      }
  }

 private:
  size_t width() const { return sizes_.width; }

  // Computes the embedding of a position: the weighted sum of its features.
  void embed(const Positions& positions, size_t number, float* out) const {
    std::fill(out, out + width(), 0.0F);
    for (int32_t f = positions.begin[number]; f < positions.begin[number + 1]; ++f) {
      const learn::lm::Feature& feature = positions.features[f];
      const float* row = embedding_.data() + feature.entry * width();
      for (size_t i = 0; i < width(); ++i) out[i] += feature.weight * row[i];
    }
  }

  // Appends this token's keys and values to the cache.
  void keep() {
    const auto heads = static_cast<size_t>(sizes_.heads), size = width() / heads;
    const auto before = static_cast<size_t>(options_.longest_answer), at = static_cast<size_t>(at_);
    for (int l = 0; l < sizes_.layers; ++l) {
      const auto &k = step_->buffer(port("k", l)), &v = step_->buffer(port("v", l));
      auto &all_k = step_->buffer(port("before_k", l)), &all_v = step_->buffer(port("before_v", l));
      for (size_t row = 0; row < options_.batch * heads; ++row) {
        for (size_t i = 0; i < size; ++i) all_k[(row * size + i) * before + at] = k[row * size + i];
        std::copy_n(v.begin() + row * size, size, all_v.begin() + (row * before + at) * size);
      }
    }
  }

  learn::lm::LanguageModelSizes sizes_;
  std::vector<float> embedding_;
  DecoderOptions options_;
  std::unique_ptr<CompiledNetwork> prompt_, step_;
  int at_ = 0;
};

// Samples a token or takes the likeliest one. A forbidden token is struck out and the draw
// repeated. Returns nullopt if all tokens are forbidden.
std::optional<uint8_t> draw_token(std::span<const float> scores, const learn::lm::TokenWalk& walk,
                                  const SamplingOptions& sampling, Rng& rng, double& log_likelihood,
                                  DecodingReport& report) {
  std::array<uint8_t, kOutputs> order;
  std::iota(order.begin(), order.end(), uint8_t{0});
  std::stable_sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) { return scores[a] > scores[b]; });
  std::array<double, kOutputs> weight{};
  const double temperature = std::max(sampling.temperature, 1e-3), most = scores[order[0]];
  double all = 0;
  for (size_t i = 0; i < order.size(); ++i)
    all += weight[i] = std::exp((scores[order[i]] - most) / temperature);
  std::array<bool, kOutputs> struck{};
  // top_k and top_p refer to allowed tokens, so forbidden ones are struck out first.
  if (sampling.top_k > 0 || sampling.top_p < 1)
    for (size_t i = 0; i < order.size(); ++i) struck[i] = !walk.allows(order[i]);
  while (true) {
    // The candidates of this draw: the likeliest of the remaining tokens.
    double kept = 0, left = 0;
    int count = 0;
    size_t end = 0;
    for (size_t i = 0; i < order.size(); ++i)
      if (!struck[i]) left += weight[i];
    if (left <= 0) break;
    for (; end < order.size(); ++end) {
      if (struck[end]) continue;
      if ((sampling.top_k > 0 && count == sampling.top_k) || (count > 0 && kept >= sampling.top_p * left))
        break;
      kept += weight[end];
      ++count;
    }
    size_t chosen = order.size();
    if (sampling.temperature <= 0) {
      chosen = std::find(struck.begin(), struck.end(), false) - struck.begin();
    } else {
      double at = rng.uniform() * kept;
      for (size_t i = 0; i < end; ++i) {
        if (struck[i]) continue;
        chosen = i;
        if ((at -= weight[i]) < 0) break;
      }
    }
    if (walk.allows(order[chosen])) {
      log_likelihood += std::log(std::max(weight[chosen] / left, 1e-300));
      return order[chosen];
    }
    struck[chosen] = true;
    ++report.forbidden;
  }
  // Only tokens to which the scores give no probability may be left.
  for (size_t i = 0; i < order.size(); ++i)
    if (!struck[i] && walk.allows(order[i])) return order[i];
  return std::nullopt;
}

struct Writing {
  explicit Writing(std::unique_ptr<learn::lm::Answer> a) : answer(std::move(a)), walk(*answer) {}

  std::unique_ptr<learn::lm::Answer> answer;
  learn::lm::TokenWalk walk;
  std::vector<uint8_t> given;  // tokens that the answer must begin with
  size_t taken = 0;            // number of tokens of `given` that were taken
  double log_likelihood = 0;
  bool lost = false;
};

// Writes the answers to their ends. choose(writing, scores) returns the next token, or nullopt if
// there is none.
template <class Choose>
Status write_all(LanguageDecoder& decoder, std::vector<Writing>& writings, learn::lm::Quality quality,
                 const Choose& choose, DecodingReport& report) {
  decoder.begin();
  for (int t = 0;; ++t) {
    const bool done = std::all_of(writings.begin(), writings.end(),
                                  [](const Writing& w) { return w.lost || w.walk.done(); });
    if (done) return {};
    if (t == decoder.options().longest_answer) {
      for (auto& w : writings)
        if (!w.lost && !w.walk.done()) {
          w.lost = true;
          ++report.too_long;
        }
      return {};
    }
    Positions positions;
    for (const auto& w : writings) {
      if (w.lost || w.walk.done())
        positions.end_position();
      else
        w.walk.describe(quality, positions);
    }
    TS_ASSIGN_OR_RETURN(const auto scores, decoder.next(positions));
    for (size_t i = 0; i < writings.size(); ++i) {
      Writing& w = writings[i];
      if (w.lost || w.walk.done()) continue;
      const std::optional<uint8_t> token = choose(w, scores.subspan(i * kOutputs, kOutputs));
      if (!token || !w.walk.take(*token)) {
        w.lost = true;
        ++report.dead_ends;
        continue;
      }
      ++report.tokens;
    }
  }
}

// Samples all tokens after the given ones.
Status draw_all(LanguageDecoder& decoder, std::vector<Writing>& writings, const SamplingOptions& sampling,
                Rng& rng, DecodingReport& report) {
  const auto choose = [&](Writing& w, std::span<const float> scores) {
    return w.taken < w.given.size() ? std::optional(w.given[w.taken++])
                                    : draw_token(scores, w.walk, sampling, rng, w.log_likelihood, report);
  };
  return write_all(decoder, writings, sampling.quality, choose, report);
}

// Returns the natural logarithm of a token's probability among the allowed tokens.
double log_probability(std::span<const float> scores, const learn::lm::TokenMask& allowed, uint8_t token) {
  double most = scores[token], sum = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    if (allowed[i]) most = std::max<double>(most, scores[i]);
  for (size_t i = 0; i < scores.size(); ++i)
    if (allowed[i]) sum += std::exp(scores[i] - most);
  return scores[token] - most - std::log(sum);
}

}  // namespace

Result<std::unique_ptr<LanguageDecoder>> LanguageDecoder::create(const LanguageModel& model,
                                                                 const target::Device& device,
                                                                 const DecoderOptions& options) {
  auto decoder = std::make_unique<CompiledDecoder>(model, options);
  TS_RETURN_IF_ERROR(decoder->compile(model, device));
  return std::unique_ptr<LanguageDecoder>(std::move(decoder));
}

namespace {

Result<std::vector<GeneratedCandidate>> likeliest(LanguageDecoder& decoder,
                                                  const search::SketchContext& context,
                                                  const GenerateRequest& request, DecodingReport& report) {
  TS_CHECK(request.prefixes.empty(), "a beam search cannot continue given prefixes");
  BeamRequest<search::SpaceAnswer> of_answers{request.count, request.sampling, {}};
  if (request.excluded)
    of_answers.excluded = [&](const search::SpaceAnswer& a) { return request.excluded(a.candidate()); };
  TS_ASSIGN_OR_RETURN(const auto found,
                      beam_search(decoder, search::SpaceAnswer(context), of_answers, report));
  std::vector<GeneratedCandidate> result;
  for (const auto& one : found) result.push_back({one.answer->candidate(), one.log_likelihood});
  return result;
}

GeneratedRecord record_of(const search::AnsorAnswer& answer, double log_likelihood) {
  return {answer.parts(), answer.split_extents(), log_likelihood};
}

Result<std::vector<GeneratedRecord>> likeliest_records(LanguageDecoder& decoder,
                                                       const search::AnsorContext& context,
                                                       const RecordRequest& request, DecodingReport& report) {
  BeamRequest<search::AnsorAnswer> of_answers{request.count, request.sampling, {}};
  if (request.excluded)
    of_answers.excluded = [&](const search::AnsorAnswer& a) { return request.excluded(a.parts()); };
  TS_ASSIGN_OR_RETURN(const auto found,
                      beam_search(decoder, search::AnsorAnswer(context), of_answers, report));
  std::vector<GeneratedRecord> result;
  for (const auto& one : found) result.push_back(record_of(*one.answer, one.log_likelihood));
  return result;
}

}  // namespace

Result<std::vector<GeneratedCandidate>> generate(LanguageDecoder& decoder, const Positions& prompt,
                                                 const search::SketchContext& context,
                                                 const GenerateRequest& request, Rng& rng,
                                                 DecodingReport& report) {
  TS_RETURN_IF_ERROR(decoder.read(prompt));
  const size_t count = request.count;
  const SamplingOptions& sampling = request.sampling;
  if (sampling.beam > 0) return likeliest(decoder, context, request, report);
  std::set<uint64_t> seen;
  std::vector<GeneratedCandidate> result;
  size_t draws = 0;
  const size_t batch = decoder.options().batch;
  // A prefix gets about one answer.
  const size_t most = request.prefixes.empty() ? kDraws * count : count;
  while (result.size() < count && draws < std::max(most, batch)) {
    std::vector<Writing> writings;
    std::vector<const search::SpaceAnswer*> answers;
    for (size_t i = 0; i < batch; ++i) {
      const auto& begin = request.prefixes;
      const AnswerPrefix* const prefix = begin.empty() ? nullptr : &begin[(draws + i) % begin.size()];
      auto answer =
          std::make_unique<search::SpaceAnswer>(context, prefix != nullptr ? prefix->candidate : nullptr);
      answers.push_back(answer.get());
      Writing& w = writings.emplace_back(std::move(answer));
      if (prefix == nullptr) continue;
      const auto decisions = search::decisions_in_order(context.grammar, *prefix->candidate);
      for (size_t d = 0; d < std::min(prefix->kept, decisions.size()); ++d)
        learn::lm::append_tokens(decisions[d], w.given);
    }
    draws += batch;
    TS_RETURN_IF_ERROR(draw_all(decoder, writings, sampling, rng, report));
    for (size_t i = 0; i < batch; ++i) {
      if (writings[i].lost) continue;
      ++report.answers;
      const space::Candidate& candidate = answers[i]->candidate();
      if (result.size() < count && seen.insert(candidate.hash()).second &&
          !(request.excluded && request.excluded(candidate)))
        result.push_back({candidate, writings[i].log_likelihood});
    }
    if (sampling.temperature <= 0) break;  // further draws would be the same
  }
  return result;
}

Result<std::vector<GeneratedRecord>> generate_records(LanguageDecoder& decoder, const Positions& prompt,
                                                      const search::AnsorContext& context,
                                                      const RecordRequest& request, Rng& rng,
                                                      DecodingReport& report) {
  TS_RETURN_IF_ERROR(decoder.read(prompt));
  if (request.sampling.beam > 0) return likeliest_records(decoder, context, request, report);
  const size_t batch = decoder.options().batch;
  const size_t most = std::max(kDraws * request.count, batch);
  std::set<std::vector<int64_t>> seen;
  std::vector<GeneratedRecord> result;
  for (size_t draws = 0; result.size() < request.count && draws < most; draws += batch) {
    std::vector<Writing> writings;
    std::vector<const search::AnsorAnswer*> answers;
    for (size_t i = 0; i < batch; ++i) {
      auto answer = std::make_unique<search::AnsorAnswer>(context);
      answers.push_back(answer.get());
      writings.emplace_back(std::move(answer));
    }
    TS_RETURN_IF_ERROR(draw_all(decoder, writings, request.sampling, rng, report));
    for (size_t i = 0; i < batch; ++i) {
      if (writings[i].lost) continue;
      ++report.answers;
      GeneratedRecord record = record_of(*answers[i], writings[i].log_likelihood);
      const auto decisions = search::decisions_in_order(context, record.parts);
      TS_CHECK(decisions.has_value(), "an answer does not belong to its sketch");
      if (result.size() < request.count && seen.insert(*decisions).second &&
          !(request.excluded && request.excluded(record.parts)))
        result.push_back(std::move(record));
    }
    if (request.sampling.temperature <= 0) break;  // further draws would be the same
  }
  return result;
}

Result<std::vector<double>> log_likelihoods(LanguageDecoder& decoder, const Positions& prompt,
                                            const search::AnsorContext& context,
                                            std::span<const record::AnsorParts> programs,
                                            learn::lm::Quality quality, DecodingReport& report) {
  TS_RETURN_IF_ERROR(decoder.read(prompt));
  const size_t batch = decoder.options().batch;
  const auto choose = [](Writing& w, std::span<const float> scores) {
    const uint8_t token = w.given[w.taken++];
    w.log_likelihood += log_probability(scores, w.walk.allowed(), token);
    return std::optional(token);
  };
  std::vector<double> result;
  for (size_t begin = 0; begin < programs.size(); begin += batch) {
    std::vector<Writing> writings;
    for (size_t i = begin; i < std::min(begin + batch, programs.size()); ++i) {
      Writing& w = writings.emplace_back(std::make_unique<search::AnsorAnswer>(context, &programs[i]));
      const auto decisions = search::decisions_in_order(context, programs[i]);
      TS_CHECK(decisions.has_value(), "a program to rank does not belong to the sketch");
      for (const int64_t decision : *decisions) learn::lm::append_tokens(decision, w.given);
    }
    TS_RETURN_IF_ERROR(write_all(decoder, writings, quality, choose, report));
    for (const Writing& w : writings)
      result.push_back(w.lost ? -std::numeric_limits<double>::infinity() : w.log_likelihood);
    report.answers += std::ssize(writings);
  }
  return result;
}

}  // namespace tensorsmith::engine
