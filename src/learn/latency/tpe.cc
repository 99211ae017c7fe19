#include "learn/latency/tpe.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json_text.h"
#include "base/rng.h"

namespace tensorsmith::learn {

namespace {

using Json = nlohmann::json;

constexpr size_t kRandomTrials = 10;
constexpr int kDraws = 24;
constexpr double kGoodShare = 0.25;

bool parse_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

bool is_whole(std::string_view text) {
  return text.find_first_not_of("-0123456789") == std::string_view::npos;
}

// Map a value to [0, 1] and back.
double to_unit(const Dimension& d, double value) {
  if (d.high <= d.low) return 0;
  if (d.logarithmic) return std::log(value / d.low) / std::log(d.high / d.low);
  return (value - d.low) / (d.high - d.low);
}
Json from_unit(const Dimension& d, double unit) {
  double value = d.logarithmic ? d.low * std::pow(d.high / d.low, unit) : d.low + unit * (d.high - d.low);
  value = std::clamp(value, d.low, d.high);
  if (d.whole) return static_cast<int64_t>(std::llround(value));
  return value;
}

Json draw_uniform(const Dimension& d, Rng& rng) {
  if (!d.choices.empty()) return d.choices[rng.below(d.choices.size())];
  // Make every integer equally likely.
  if (d.whole && !d.logarithmic)
    return rng.uniform_int(static_cast<int64_t>(d.low), static_cast<int64_t>(d.high));
  return from_unit(d, rng.uniform());
}

// A trial as a point: a number mapped to [0, 1], or the index of a choice.
using Place = std::vector<double>;
Place place_of(std::span<const Dimension> space, const Json& parameters) {
  Place out;
  for (const Dimension& d : space) {
    const Json& value = parameters.at(d.name);
    if (d.choices.empty()) {
      out.push_back(to_unit(d, value.get<double>()));
    } else {
      out.push_back(std::find(d.choices.begin(), d.choices.end(), value) - d.choices.begin());
    }
  }
  return out;
}

// Density of a set of trials over all dimensions together: the mean of a kernel around each trial
// and of the uniform density, with equal weights. A kernel is a product over the dimensions. For a
// number it is a Gaussian of width 0.2 n^(-1/(d + 4)) (Scott's rule), truncated to [0, 1]; for a
// choice, the trial's own value has an additional weight of sqrt(n).
class Density {
 public:
  Density(std::span<const Dimension> space, std::span<const Trial* const> trials) : space_(space) {
    for (const Trial* trial : trials) centers_.push_back(place_of(space, trial->parameters));
    const double n = std::max<double>(1, centers_.size());
    width_ = std::max(0.03, 0.2 * std::pow(n, -1.0 / (space.size() + 4)));
    own_ = std::sqrt(n);
  }
  Place draw(Rng& rng) const {
    const size_t i = rng.below(centers_.size() + 1);
    Place out;
    for (size_t k = 0; k < space_.size(); ++k) {
      const size_t choices = space_[k].choices.size();
      const bool even = i == centers_.size() || (choices > 0 && !near(choices, rng));
      if (choices > 0) {
        out.push_back(even ? rng.below(choices) : centers_[i][k]);
      } else {
        out.push_back(even ? rng.uniform() : around(centers_[i][k], rng));
      }
    }
    return out;
  }
  double at(const Place& x) const {
    double even = 1;
    for (const Dimension& d : space_) even /= std::max<size_t>(d.choices.size(), 1);
    double sum = even;
    for (const Place& center : centers_) {
      double product = 1;
      for (size_t k = 0; k < space_.size(); ++k) {
        const double choices = space_[k].choices.size();
        if (choices > 0) {
          product *= (1 + (center[k] == x[k] ? own_ : 0)) / (choices + own_);
        } else {
          const double z = (x[k] - center[k]) / width_, root = width_ * std::sqrt(2.0);
          // Share of the Gaussian within [0, 1], to normalize the truncated kernel.
          const double inside = 0.5 * (std::erf((1 - center[k]) / root) + std::erf(center[k] / root));
          product *= std::exp(-0.5 * z * z) / (width_ * std::sqrt(2 * 3.14159265358979) * inside);
        }
      }
      sum += product;
    }
    return sum / (centers_.size() + 1);
  }

 private:
  // Whether to take the kernel's own choice rather than a uniformly drawn one, so that the own
  // choice has weight 1 + sqrt(n) out of choices + sqrt(n).
  bool near(size_t choices, Rng& rng) const { return rng.bernoulli(own_ / (choices + own_)); }
  double around(double center, Rng& rng) const {
    while (true) {
      const double x = center + width_ * rng.normal();
      if (x >= 0 && x <= 1) return x;
    }
  }

  std::span<const Dimension> space_;
  std::vector<Place> centers_;
  double width_ = 0, own_ = 0;
};

}  // namespace

Result<Dimension> parse_dimension(const std::string& text) {
  const Error bad{
      ErrorCode::kInvalidArgument, "'" + text + "'",
      "is not a range or a list of choices; write NAME=LOW..HIGH, NAME=LOW..HIGH:log or NAME=A|B|C"};
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return bad;
  Dimension d;
  d.name = text.substr(0, equals);
  std::string value = text.substr(equals + 1);
  const size_t dots = value.find("..");
  if (dots == std::string::npos) {
    for (size_t begin = 0; begin <= value.size();) {
      const size_t end = std::min(value.find('|', begin), value.size());
      const std::string one = value.substr(begin, end - begin);
      if (one.empty()) return bad;
      const Json parsed = parse_json<Json>(one);
      d.choices.push_back(parsed.is_number() || parsed.is_boolean() ? parsed : Json(one));
      begin = end + 1;
    }
    return d;
  }
  if (value.ends_with(":log")) {
    d.logarithmic = true;
    value.resize(value.size() - 4);
  }
  const std::string_view low = std::string_view(value).substr(0, dots);
  const std::string_view high = std::string_view(value).substr(dots + 2);
  if (!parse_number(low, d.low) || !parse_number(high, d.high) || d.low > d.high) return bad;
  // Integers up to this bound are exact in double, and the difference of any two is finite.
  constexpr double kLargest = 1e15;
  if (d.low < -kLargest || d.high > kLargest)
    return Error{ErrorCode::kInvalidArgument, "'" + text + "'",
                 "the ends of a range must be between -1e15 and 1e15"};
  if (d.logarithmic && d.low <= 0)
    return Error{ErrorCode::kInvalidArgument, "'" + text + "'", "a logarithmic range must begin above 0"};
  d.whole = is_whole(low) && is_whole(high);
  return d;
}

Json propose(std::span<const Dimension> space, std::span<const Trial> trials, SearchMethod method,
             uint64_t seed) {
  Rng rng(Hasher().add(seed).add(trials.size()).digest64());
  std::vector<const Trial*> order;
  for (const Trial& trial : trials) order.push_back(&trial);
  std::stable_sort(order.begin(), order.end(),
                   [](const Trial* a, const Trial* b) { return a->loss < b->loss; });
  Json out = Json::object();
  if (method == SearchMethod::kRandom || trials.size() < kRandomTrials) {
    for (const Dimension& d : space) out[d.name] = draw_uniform(d, rng);
    return out;
  }
  const auto count = static_cast<size_t>(std::ceil(kGoodShare * order.size()));
  const std::span<const Trial* const> all(order);
  const Density likely(space, all.first(count)), unlikely(space, all.subspan(count));
  Place best;
  double best_ratio = -1;
  for (int i = 0; i < kDraws; ++i) {
    Place x = likely.draw(rng);
    const double ratio = likely.at(x) / unlikely.at(x);
    if (ratio > best_ratio) {
      best_ratio = ratio;
      best = std::move(x);
    }
  }
  for (size_t k = 0; k < space.size(); ++k) {
    const Dimension& d = space[k];
    out[d.name] = d.choices.empty() ? from_unit(d, best[k]) : d.choices[static_cast<size_t>(best[k])];
  }
  return out;
}

}  // namespace tensorsmith::learn
