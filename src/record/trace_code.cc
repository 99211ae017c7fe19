// A trace is encoded as the number of its steps, then each step's code and its fields in order.
// Integers are base-128 varints in zigzag form; lists are their length and elements.
#include "record/trace_code.h"

namespace tensorsmith::record {

namespace {

using namespace sched;  // NOLINT: uses the steps' unqualified names

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}
  void number(int64_t value) {
    uint64_t bits = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
    for (; bits >= 128; bits >>= 7) out_ += static_cast<char>(bits | 128);
    out_ += static_cast<char>(bits);
  }
  void operator()(const int& v) { number(v); }
  void operator()(const int64_t& v) { number(v); }
  void operator()(const bool& v) { number(v ? 1 : 0); }
  void operator()(const TailPolicy& v) { number(static_cast<int64_t>(v)); }
  void operator()(const Annotation& v) { number(static_cast<int64_t>(v)); }
  void operator()(const ir::MemoryScope& v) { number(static_cast<int64_t>(v)); }
  void operator()(const LayoutDim& v) { number(v.dim), number(v.divisor), number(v.extent); }
  template <class T>
  void operator()(const std::vector<T>& list) {
    number(std::ssize(list));
    for (const T& v : list) (*this)(v);
  }

 private:
  std::string& out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }
  bool at_end() const { return bytes_.empty(); }

  int64_t number() {
    uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      const unsigned char byte = bytes_.front();
      bytes_.remove_prefix(1);
      bits |= static_cast<uint64_t>(byte & 127U) << shift;
      if (byte < 128) return static_cast<int64_t>(bits >> 1) ^ -static_cast<int64_t>(bits & 1);
    }
    failed_ = true;
    return 0;
  }
  void operator()(int& v) { v = in_range(INT32_MIN, INT32_MAX); }
  void operator()(int64_t& v) { v = number(); }
  void operator()(bool& v) { v = in_range(0, 1) != 0; }
  void operator()(TailPolicy& v) { v = static_cast<TailPolicy>(in_range(0, 3)); }
  void operator()(Annotation& v) {
    v = static_cast<Annotation>(in_range(0, static_cast<int64_t>(Annotation::kThreadZ)));
  }
  void operator()(ir::MemoryScope& v) {
    v = static_cast<ir::MemoryScope>(in_range(0, static_cast<int64_t>(ir::MemoryScope::kLocal)));
  }
  void operator()(LayoutDim& v) { (*this)(v.dim), (*this)(v.divisor), (*this)(v.extent); }
  template <class T>
  void operator()(std::vector<T>& list) {
    // Every element takes at least one byte.
    list.resize(in_range(0, std::ssize(bytes_)));
    for (T& v : list) {
      if (!failed_) (*this)(v);
    }
  }
  int64_t in_range(int64_t low, int64_t high) {
    const int64_t value = number();
    if (value >= low && value <= high) return value;
    failed_ = true;
    return std::max<int64_t>(low, 0);
  }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

template <size_t I = 0>
Step empty_step(size_t code) {
  if constexpr (I + 1 < std::variant_size_v<Step>) {
    if (code != I) return empty_step<I + 1>(code);
  }
  return std::variant_alternative_t<I, Step>{};
}

}  // namespace

void encode_trace(const Trace& trace, std::string& out) {
  Encoder encoder(out);
  encoder.number(std::ssize(trace.steps));
  for (const Step& step : trace.steps) {
    encoder.number(step.index());
    std::visit(
        [&](const auto& s) {
          for_each_field(s, [&](std::string_view, const auto& value) { encoder(value); });
        },
        step);
  }
}

Result<Trace> decode_trace(std::string_view bytes) {
  Decoder decoder(bytes);
  Trace trace;
  const int64_t count = decoder.in_range(0, std::ssize(bytes));
  for (int64_t i = 0; i < count && !decoder.failed(); ++i) {
    trace.steps.push_back(empty_step(decoder.in_range(0, std::variant_size_v<Step> - 1)));
    std::visit([&](auto& s) { for_each_field(s, [&](std::string_view, auto& value) { decoder(value); }); },
               trace.steps.back());
  }
  if (decoder.failed() || !decoder.at_end())
    return Error{ErrorCode::kCorrupt, "", "the bytes are not an encoded trace"};
  return trace;
}

}  // namespace tensorsmith::record
