// Arrays with one element for each value of an enumeration.
#pragma once

#include <array>
#include <cstddef>

namespace tensorsmith {

// Returns the values of an enumeration that has the N values 0 to N - 1, in order.
template <class E, int N>
constexpr std::array<E, N> enum_values() {
  std::array<E, N> out{};
  for (int i = 0; i < N; ++i) out[i] = static_cast<E>(i);
  return out;
}

// An array of N elements whose index is a value of such an enumeration.
template <class E, class T, int N>
class EnumArray {
 public:
  constexpr T& operator[](E e) { return values_[static_cast<size_t>(e)]; }
  constexpr const T& operator[](E e) const { return values_[static_cast<size_t>(e)]; }
  auto begin() { return values_.begin(); }
  auto begin() const { return values_.begin(); }
  auto end() { return values_.end(); }
  auto end() const { return values_.end(); }

 private:
  std::array<T, N> values_{};
};

}  // namespace tensorsmith
