#include "space/tile_lengths.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::space {

namespace {

// Counts the tuples of `parts` positive lengths with product <= n. Equal quotients n / l are summed
// as blocks, so the cost is O(sqrt(n)) per level.
double count_products(int64_t n, size_t parts) {
  if (parts == 0) return 1;
  if (parts == 1) return n;
  double total = 0;
  for (int64_t low = 1; low <= n;) {
    const int64_t quotient = n / low;
    const int64_t high = n / quotient;
    total += (high - low + 1) * count_products(quotient, parts - 1);
    low = high + 1;
  }
  return total;
}

// Counts the tuples of `parts` lengths whose product divides n.
double count_divisions(int64_t n, size_t parts) {
  if (parts == 0) return 1;
  double total = 0;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) total += count_divisions(n / d, parts - 1);
  return total;
}

}  // namespace

TileLengths::TileLengths(int64_t extent, size_t parts, int64_t max_innermost, bool divide)
    : extent_(extent), parts_(parts), max_innermost_(max_innermost), divide_(divide) {
  TS_CHECK(extent >= 1 && parts >= 1 && max_innermost >= 0, "TileLengths: bad arguments");
  for (int64_t d = 1; d * d <= extent; ++d) {
    if (extent % d != 0) continue;
    divisors_.push_back(d);
    if (d != extent / d) divisors_.push_back(extent / d);
  }
  std::sort(divisors_.begin(), divisors_.end());
}

double TileLengths::count() const {
  const int64_t last = std::min(cap(parts_ - 1), extent_);
  if (divide_) {
    double total = 0;
    for (int64_t d : divisors_)
      if (d <= last) total += count_divisions(extent_ / d, parts_ - 1);
    return total;
  }
  if (last == extent_) return count_products(extent_, parts_);
  double total = 0;
  for (int64_t l = 1; l <= last; ++l) total += count_products(extent_ / l, parts_ - 1);
  return total;
}

bool TileLengths::contains(std::span<const int64_t> lengths) const {
  if (lengths.size() != parts_) return false;
  int64_t rest = extent_;
  for (size_t p = parts_; p-- > 0;) {
    const int64_t l = lengths[p];
    if (l < 1 || l > rest || l > cap(p) || (divide_ && rest % l != 0)) return false;
    rest /= l;  // floor: product <= extent  <=>  each length <= the remaining floor quotient
  }
  return true;
}

bool TileLengths::advance(std::span<int64_t> lengths) const {
  for (size_t p = parts_; p-- > 0;) {
    auto& l = lengths[p];
    do {
      ++l;
      if (contains(lengths)) return true;
    } while (divide_ && l < extent_);
    l = 1;
  }
  return false;
}

int64_t TileLengths::fitting(size_t part, int64_t wanted, int64_t rest) const {
  int64_t l = std::clamp<int64_t>(wanted, 1, std::min(rest, cap(part)));
  while (divide_ && rest % l != 0) --l;
  return l;
}

int64_t TileLengths::draw(Rng& rng, int64_t unit, int64_t limit) const {
  if (limit <= 1) return 1;
  const double kind = rng.uniform();
  if (kind < 0.45) {
    const std::span fitting(divisors_.begin(), std::upper_bound(divisors_.begin(), divisors_.end(), limit));
    return fitting[rng.below(fitting.size())];
  }
  if (kind < 0.75 && unit > 1 && limit >= unit) {
    const int64_t most = std::min<int64_t>(limit / unit, 8);
    return unit * rng.uniform_int(1, most);
  }
  // Log-uniform over all lengths: small ones often, large ones possible.
  const double x = std::exp(rng.uniform() * std::log(limit + 1.0));
  return std::clamp<int64_t>(static_cast<int64_t>(x), 1, limit);
}

void TileLengths::sample(Rng& rng, int64_t unit, std::span<int64_t> lengths) const {
  int64_t rest = extent_;
  for (size_t p = parts_; p-- > 0;) {
    const int64_t l = fitting(p, draw(rng, p + 1 == parts_ ? unit : 1, std::min(rest, cap(p))), rest);
    lengths[p] = l;
    rest /= l;
  }
}

void TileLengths::mutate(Rng& rng, int64_t unit, std::span<int64_t> lengths) const {
  const std::vector<int64_t> before(lengths.begin(), lengths.end());
  const size_t part = rng.below(parts_);
  int64_t others = 1;
  for (size_t q = 0; q < lengths.size(); ++q)
    if (q != part) others *= lengths[q];
  const int64_t limit = std::min(extent_ / others, cap(part));
  const double kind = rng.uniform();
  if (kind < 0.35) {
    lengths[part] = draw(rng, part + 1 == lengths.size() ? unit : 1, limit);
  } else if (kind < 0.55) {
    const int64_t step = part + 1 == lengths.size() && rng.bernoulli(0.6) ? unit : 1;
    lengths[part] = std::clamp<int64_t>(lengths[part] + (rng.bernoulli(0.5) ? step : -step), 1,
                                        std::max<int64_t>(limit, 1));
  } else if (kind < 0.75 || parts_ == 1) {
    lengths[part] = std::clamp<int64_t>(rng.bernoulli(0.5) ? lengths[part] * 2 : (lengths[part] + 1) / 2, 1,
                                        std::max<int64_t>(limit, 1));
  } else {
    // Moves a factor to another part.
    size_t other = rng.below(parts_ - 1);
    if (other >= part) ++other;
    const int64_t factor = rng.bernoulli(0.7) ? 2 : 3;
    if (lengths[part] >= factor) {
      lengths[part] /= factor;
      lengths[other] *= factor;
    }
  }
  if (divide_) lengths[part] = fitting(part, lengths[part], extent_ / others);
  if (!contains(lengths)) std::copy(before.begin(), before.end(), lengths.begin());
}

std::vector<std::vector<int64_t>> TileLengths::neighbours(int64_t unit,
                                                          std::span<const int64_t> lengths) const {
  const std::vector<int64_t> own(lengths.begin(), lengths.end());
  std::vector<std::vector<int64_t>> result;
  const auto offer = [&](const std::vector<int64_t>& tuple) {
    if (tuple != own && contains(tuple) && std::find(result.begin(), result.end(), tuple) == result.end())
      result.push_back(tuple);
  };
  for (size_t p = 0; p < own.size(); ++p) {
    const int64_t l = own[p];
    std::vector<int64_t> values{l - 1, l + 1, 2 * l, (l + 1) / 2};
    if (p + 1 == own.size()) values.insert(values.end(), {(l - 1) / unit * unit, (l / unit + 1) * unit});
    const auto above = std::upper_bound(divisors_.begin(), divisors_.end(), l);
    const auto below = std::lower_bound(divisors_.begin(), divisors_.end(), l);
    if (above != divisors_.end()) values.push_back(*above);
    if (below != divisors_.begin()) values.push_back(*std::prev(below));
    for (const int64_t value : values) {
      auto tuple = own;
      tuple[p] = value;
      offer(tuple);
    }
    for (size_t q = 0; q < own.size(); ++q) {
      if (q == p || l < 2) continue;
      auto tuple = own;
      tuple[p] /= 2;
      tuple[q] *= 2;
      offer(tuple);
    }
  }
  return result;
}

void TileLengths::fit(std::span<const int64_t> source, std::span<int64_t> lengths) const {
  int64_t rest = extent_;
  for (size_t p = parts_; p-- > 0;) {
    const int64_t wanted = p < source.size() ? source[p] : 1;
    lengths[p] = fitting(p, wanted, rest);
    rest /= lengths[p];
  }
}

}  // namespace tensorsmith::space
