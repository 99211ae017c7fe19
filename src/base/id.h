// Places in lists, a type for each list: a place in one does not index another, and no cast is needed.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tensorsmith {

// List: any type, also an incomplete one, that tells the lists apart.
template <class List>
class Id {
 public:
  constexpr Id() = default;  // of nothing
  constexpr explicit Id(size_t place) : place_(static_cast<uint32_t>(place)) {}

  constexpr bool valid() const { return place_ != kNone; }
  constexpr size_t place() const { return place_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t place_ = kNone;
};

// A vector whose elements are asked for by ids. The list has less than 2^32 - 1 of them.
template <class IdType, class T>
class IdVector {
 public:
  T& operator[](IdType id) { return items_[id.place()]; }
  const T& operator[](IdType id) const { return items_[id.place()]; }

  IdType next() const { return IdType(items_.size()); }  // of the element that is appended next
  IdType push_back(const T& item) {
    items_.push_back(item);
    return IdType(items_.size() - 1);
  }
  IdType push_back(T&& item) {
    items_.push_back(std::move(item));
    return IdType(items_.size() - 1);
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    return items_.emplace_back(std::forward<Args>(args)...);
  }
  void pop_back() { items_.pop_back(); }
  void clear() { items_.clear(); }
  void reserve(size_t size) { items_.reserve(size); }

  bool empty() const { return items_.empty(); }
  size_t size() const { return items_.size(); }
  T& back() { return items_.back(); }
  const T& back() const { return items_.back(); }
  auto begin() { return items_.begin(); }
  auto begin() const { return items_.begin(); }
  auto end() { return items_.end(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace tensorsmith
