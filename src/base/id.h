// Typed indices, one type per list: an index into one list cannot be used for another, and no casts
// are needed.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace tensorsmith {

// `List` is any type, possibly incomplete, that distinguishes the lists.
template <class List>
class Id {
 public:
  constexpr Id() = default;  // refers to no element
  constexpr explicit Id(size_t place) : place_(place) {}

  constexpr bool valid() const { return place_ != kNone; }
  constexpr uint32_t place() const { return place_; }
  constexpr Id& operator++() {
    ++place_;
    return *this;
  }
  constexpr Id& operator--() {
    --place_;
    return *this;
  }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t place_ = kNone;
};

// The ids of consecutive elements, in order: for (const StageId s : stages.ids()) ...
template <class IdType>
class IdRange {
 public:
  class Iterator {
   public:
    using value_type = IdType;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::bidirectional_iterator_tag;

    constexpr Iterator() = default;
    constexpr explicit Iterator(IdType id) : id_(id) {}
    constexpr IdType operator*() const { return id_; }
    constexpr Iterator& operator++() {
      ++id_;
      return *this;
    }
    constexpr Iterator operator++(int) {
      const Iterator old = *this;
      ++id_;
      return old;
    }
    constexpr Iterator& operator--() {
      --id_;
      return *this;
    }
    constexpr Iterator operator--(int) {
      const Iterator old = *this;
      --id_;
      return old;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    IdType id_;
  };

  constexpr IdRange(IdType first, IdType end) : first_(first), end_(end) {}
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(end_); }

 private:
  IdType first_, end_;
};

// A vector that is indexed by ids. It has fewer than 2^32 - 1 elements.
template <class IdType, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(size_t size, const T& item = T()) : items_(size, item) {}

  typename std::vector<T>::reference operator[](IdType id) { return items_[id.place()]; }
  typename std::vector<T>::const_reference operator[](IdType id) const { return items_[id.place()]; }
  IdRange<IdType> ids() const { return {IdType(0), next()}; }
  IdRange<IdType> ids_after(IdType id) const { return {++id, next()}; }
  IdRange<IdType> ids_before(IdType id) const { return {IdType(0), id}; }
  bool has(IdType id) const { return id.place() < items_.size(); }

  IdType next() const { return IdType(items_.size()); }  // id of the element that is appended next
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
  // Increments the ids of `before` and of the elements behind it.
  void insert(IdType before, T item) { items_.insert(items_.begin() + before.place(), std::move(item)); }
  void erase(IdType id) { items_.erase(items_.begin() + id.place()); }
  void pop_back() { items_.pop_back(); }
  void assign(size_t size, const T& item) { items_.assign(size, item); }
  template <std::input_iterator I>
  void assign(I first, I last) {
    items_.assign(first, last);
  }
  void resize(size_t size) { items_.resize(size); }
  void resize(size_t size, const T& item) { items_.resize(size, item); }
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
  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  std::vector<T> items_;
};

}  // namespace tensorsmith
