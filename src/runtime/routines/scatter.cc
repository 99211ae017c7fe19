// ScatterND and ScatterElements: a copy of the data, to which updates are applied in their order. Each element is
// changed by one thread. f16 and bf16 are added and multiplied in f32 and rounded once.
//
// scatter_rows. Parameters: dtype, type of indices, reduction, number of updates, elements of a row, then the extents
// that a tuple of indices refers to (the data are these extents x the row). Buffers: data, indices (updates x
// extents), updates (updates x row), result.
//
// scatter_elements. Parameters: dtype, type of indices, reduction, axis, rank, extents of the data, extents of the
// indices. Buffers: data, indices, updates, result.
#include <algorithm>
#include <string>

#include "runtime/routine.h"
#include "runtime/routines/support.h"

namespace tensorsmith::runtime {

namespace {

// The parameters that both routines read first.
struct ScatterTypes {
  DType dtype = DType::kF32, index = DType::kI64;
  ScatterReduction reduction = ScatterReduction::kNone;

  // Returns whether elements are kept in f32 until all updates are applied.
  bool widens() const {
    return is_short_float(dtype) &&
           (reduction == ScatterReduction::kAdd || reduction == ScatterReduction::kMul);
  }
};

ScatterTypes read_types(ParameterReader& reader) {
  ScatterTypes types;
  types.dtype = reader.dtype();
  types.index = reader.flag() ? DType::kI64 : DType::kI32;
  types.reduction =
      static_cast<ScatterReduction>(reader.between(0, static_cast<int64_t>(ScatterReduction::kMax)));
  return types;
}

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  return false;
}

template <ScatterReduction R, class C>
C combined(C old, C update) {
  if constexpr (R == ScatterReduction::kAdd) return static_cast<C>(old + update);
  if constexpr (R == ScatterReduction::kMul) return product_of(old, update);
  if constexpr (R == ScatterReduction::kMin) return is_nan(old) || old < update ? old : update;
  if constexpr (R == ScatterReduction::kMax) return is_nan(old) || old > update ? old : update;
  return update;
}

// Applies an update to an element of the result, which has type A: T, or f32 if elements are widened.
template <class T, class A, ScatterReduction R>
void update_element(A& element, T update) {
  if constexpr (R == ScatterReduction::kNone) {
    element = static_cast<A>(update);
  } else if constexpr (R == ScatterReduction::kMin || R == ScatterReduction::kMax) {
    // Unlike sums, comparisons depend on the sign of integers.
    if constexpr (kShort<T>) {
      element = Element<T>::store(combined<R>(Element<T>::load(element), Element<T>::load(update)));
    } else {
      element = combined<R>(element, update);
    }
  } else if constexpr (std::is_same_v<A, T>) {
    element = Element<T>::store(combined<R>(Element<T>::load(element), Element<T>::load(update)));
  } else {
    element = combined<R>(element, Element<T>::load(update));
  }
}

// Calls f.operator()<T, A, R>() for the types.
template <class F>
void with_update(const ScatterTypes& types, F&& f) {
  with_type(types.dtype, [&]<class T>(T) {
    using Wide = std::conditional_t<kShort<T>, float, T>;
    switch (types.reduction) {
      case ScatterReduction::kNone:
        return f.template operator()<T, T, ScatterReduction::kNone>();
      case ScatterReduction::kAdd:
        return f.template operator()<T, Wide, ScatterReduction::kAdd>();
      case ScatterReduction::kMul:
        return f.template operator()<T, Wide, ScatterReduction::kMul>();
      case ScatterReduction::kMin:
        return f.template operator()<T, T, ScatterReduction::kMin>();
      case ScatterReduction::kMax:
        return f.template operator()<T, T, ScatterReduction::kMax>();
    }
  });
}

// Copies the data to elements of type A: T, or f32 if elements are widened.
template <class T, class A>
void copy_data(const TensorsmithKernelContext& context, const T* data, A* result, int64_t elements) {
  parallel(context, elements, static_cast<double>(elements) / 4, [&](int64_t begin, int64_t end, int) {
    if constexpr (std::is_same_v<T, A>) {
      std::memcpy(result + begin, data + begin, sizeof(T) * (end - begin));
    } else {
      for (int64_t i = begin; i < end; ++i) result[i] = Element<T>::load(data[i]);
    }
  });
}

template <class T>
void round_results(const TensorsmithKernelContext& context, const float* wide, T* result, int64_t elements) {
  parallel(context, elements, static_cast<double>(elements), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) result[i] = Element<T>::store(wide[i]);
  });
}

// Copies the data, calls change(A*) with the copy, and leaves the changed elements in `result`. `wide` is the memory of
// widened elements; other types do not use it.
template <class T, class A, class F>
void change_copy(const TensorsmithKernelContext& context, const void* data, void* result, void* wide,
                 int64_t elements, F&& change) {
  constexpr bool kWide = !std::is_same_v<T, A>;
  A* changed = static_cast<A*>(kWide ? wide : result);
  copy_data(context, static_cast<const T*>(data), changed, elements);
  change(changed);
  if constexpr (kWide) round_results(context, changed, static_cast<T*>(result), elements);
}

int64_t index_at(const void* indices, DType type, int64_t i) {
  return type == DType::kI64 ? static_cast<const int64_t*>(indices)[i]
                             : static_cast<const int32_t*>(indices)[i];
}

Error out_of_range(int64_t index, int64_t extent) {
  return Error{ErrorCode::kInvalidArgument, "",
               "an index of a scatter is " + std::to_string(index) + ", but must be from " +
                   std::to_string(-extent) + " to " + std::to_string(extent - 1)};
}

// --- scatter_rows ---

struct Rows {
  ScatterTypes types;
  int64_t updates = 0, row = 0, rows = 1;
  std::vector<int64_t> extents;
};

Result<Rows> read_rows(std::span<const int64_t> parameters) {
  ParameterReader reader(parameters);
  Rows s;
  s.types = read_types(reader);
  s.updates = reader.extent();
  s.row = reader.extent();
  const auto depth = static_cast<int64_t>(parameters.size()) - 5;
  for (int64_t d = 0; d < depth; ++d) {
    s.extents.push_back(reader.extent());
    s.rows = reader.times(s.rows, s.extents.back());
  }
  reader.times(s.rows, s.row);
  reader.times(s.updates, s.row);
  reader.times(s.updates, std::max<int64_t>(depth, 1));
  TS_RETURN_IF_ERROR(reader.finish());
  return s;
}

Result<RoutineDemands> rows_demands(std::span<const int64_t> parameters) {
  TS_ASSIGN_OR_RETURN(const Rows s, read_rows(parameters));
  const int64_t elements = s.rows * s.row, updates = s.updates * s.row;
  const int64_t tuples = s.updates * std::ssize(s.extents);
  RoutineDemands demands;
  demands.buffer_bytes = {bytes_of(s.types.dtype, elements), bytes_of(s.types.index, tuples),
                          bytes_of(s.types.dtype, updates), bytes_of(s.types.dtype, elements)};
  demands.outputs = 1;
  // The rows of the updates, then the widened result.
  demands.shared_bytes = 8 * s.updates + (s.types.widens() ? 4 * elements : 0);
  demands.operations = static_cast<double>(elements) / 4 + static_cast<double>(tuples + updates);
  return demands;
}

// An index out of range that one of the threads found.
struct BadIndex {
  int64_t index = 0, extent = 0;
  bool found = false;

  void note(int64_t given, int64_t of_extent) {
    // Any of several is good enough for the message.
    if (__atomic_test_and_set(&found, __ATOMIC_RELAXED)) return;
    index = given;
    extent = of_extent;
  }
};

// Writes the row that each update changes. A negative index counts from the end.
Status find_rows(const TensorsmithKernelContext& context, const Rows& s, const void* indices, int64_t* rows) {
  const int64_t depth = std::ssize(s.extents);
  BadIndex bad;
  parallel(context, s.updates, 4 * static_cast<double>(s.updates * depth),
           [&](int64_t begin, int64_t end, int) {
             for (int64_t u = begin; u < end; ++u) {
               int64_t row = 0;
               for (int64_t d = 0; d < depth; ++d) {
                 const int64_t given = index_at(indices, s.types.index, u * depth + d), extent = s.extents[d];
                 const int64_t index = given < 0 ? given + extent : given;
                 if (index < 0 || index >= extent) return bad.note(given, extent);
                 row = row * extent + index;
               }
               rows[u] = row;
             }
           });
  return bad.found ? Status(out_of_range(bad.index, bad.extent)) : Status();
}

template <class T, class A, ScatterReduction R>
void apply_rows(const TensorsmithKernelContext& context, const Rows& s, const int64_t* rows, const T* updates,
                A* result) {
  const double operations = static_cast<double>(s.updates) * s.row;
  // Threads share long rows, each a range of columns; short rows are shared by their numbers. All threads go through
  // all updates, and an element's updates are applied by one thread, in their order.
  constexpr int64_t kLongRow = 256;
  const bool by_columns = s.row >= kLongRow;
  parallel(context, by_columns ? s.row : s.rows, operations, [&](int64_t begin, int64_t end, int) {
    const int64_t first = by_columns ? begin : 0, last = by_columns ? end : s.row;
    for (int64_t u = 0; u < s.updates; ++u) {
      if (!by_columns && (rows[u] < begin || rows[u] >= end)) continue;
      const T* from = updates + u * s.row;
      A* to = result + rows[u] * s.row;
      for (int64_t c = first; c < last; ++c) update_element<T, A, R>(to[c], from[c]);
    }
  });
}

Status run_rows(const TensorsmithKernelContext& context, std::span<const int64_t> parameters,
                void* const* buffers) {
  TS_ASSIGN_OR_RETURN(const Rows s, read_rows(parameters));
  auto* rows = static_cast<int64_t*>(context.shared_workspace);
  TS_RETURN_IF_ERROR(find_rows(context, s, buffers[1], rows));
  with_update(s.types, [&]<class T, class A, ScatterReduction R>() {
    change_copy<T, A>(context, buffers[0], buffers[3], rows + s.updates, s.rows * s.row, [&](A* result) {
      apply_rows<T, A, R>(context, s, rows, static_cast<const T*>(buffers[2]), result);
    });
  });
  return {};
}

// --- scatter_elements ---

constexpr int64_t kMostRank = 16;

struct Elements {
  ScatterTypes types;
  int64_t axis = 0, rank = 0;
  int64_t data[kMostRank] = {}, indices[kMostRank] = {};  // extents
  int64_t elements = 1, updates = 1;
};

Result<Elements> read_elements(std::span<const int64_t> parameters) {
  ParameterReader reader(parameters);
  Elements s;
  s.types = read_types(reader);
  s.axis = reader.between(0, kMostRank - 1);
  s.rank = reader.between(s.axis + 1, kMostRank);
  for (int64_t d = 0; d < s.rank; ++d) s.elements = reader.times(s.elements, s.data[d] = reader.extent());
  for (int64_t d = 0; d < s.rank; ++d) {
    s.indices[d] = reader.between(0, d == s.axis ? kMostElements : s.data[d]);
    s.updates = reader.times(s.updates, s.indices[d]);
  }
  TS_RETURN_IF_ERROR(reader.finish());
  return s;
}

Result<RoutineDemands> elements_demands(std::span<const int64_t> parameters) {
  TS_ASSIGN_OR_RETURN(const Elements s, read_elements(parameters));
  RoutineDemands demands;
  demands.buffer_bytes = {bytes_of(s.types.dtype, s.elements), bytes_of(s.types.index, s.updates),
                          bytes_of(s.types.dtype, s.updates), bytes_of(s.types.dtype, s.elements)};
  demands.outputs = 1;
  demands.shared_bytes = s.types.widens() ? 4 * s.elements : 0;
  demands.operations = static_cast<double>(s.elements) / 4 + 4 * static_cast<double>(s.updates);
  return demands;
}

// Applies updates with the places `begin` to `end` in the dimensions other than the axis: lines along the axis, which
// have elements of their own.
template <class T, class A, ScatterReduction R>
void apply_lines(const Elements& s, int64_t begin, int64_t end, const void* indices, const T* updates,
                 A* result, BadIndex& bad) {
  int64_t data_stride = 1, index_stride = 1;  // of the axis
  for (int64_t d = s.axis + 1; d < s.rank; ++d) {
    data_stride *= s.data[d];
    index_stride *= s.indices[d];
  }
  const int64_t extent = s.data[s.axis];
  for (int64_t line = begin; line < end; ++line) {
    int64_t rest = line, from = 0, to = 0, data_step = 1, index_step = 1;
    for (int64_t d = s.rank; d-- > 0;) {
      if (d != s.axis) {
        const int64_t place = rest % s.indices[d];
        rest /= s.indices[d];
        from += place * index_step;
        to += place * data_step;
      }
      data_step *= s.data[d];
      index_step *= s.indices[d];
    }
    for (int64_t j = 0; j < s.indices[s.axis]; ++j) {
      const int64_t given = index_at(indices, s.types.index, from + j * index_stride);
      const int64_t index = given < 0 ? given + extent : given;
      if (index < 0 || index >= extent) return bad.note(given, extent);
      update_element<T, A, R>(result[to + index * data_stride], updates[from + j * index_stride]);
    }
  }
}

Status run_elements(const TensorsmithKernelContext& context, std::span<const int64_t> parameters,
                    void* const* buffers) {
  TS_ASSIGN_OR_RETURN(const Elements s, read_elements(parameters));
  BadIndex bad;
  const int64_t lines = s.updates == 0 ? 0 : s.updates / s.indices[s.axis];
  with_update(s.types, [&]<class T, class A, ScatterReduction R>() {
    change_copy<T, A>(context, buffers[0], buffers[3], context.shared_workspace, s.elements, [&](A* result) {
      parallel(context, lines, 4 * static_cast<double>(s.updates), [&](int64_t begin, int64_t end, int) {
        apply_lines<T, A, R>(s, begin, end, buffers[1], static_cast<const T*>(buffers[2]), result, bad);
      });
    });
  });
  return bad.found ? Status(out_of_range(bad.index, bad.extent)) : Status();
}

}  // namespace

const Routine kScatterRows = {"scatter_rows", rows_demands, run_rows};
const Routine kScatterElements = {"scatter_elements", elements_demands, run_elements};

}  // namespace tensorsmith::runtime
