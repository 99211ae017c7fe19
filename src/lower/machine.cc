#include <cstring>

#include "lower/bytecode.h"

namespace tensorsmith::lower {

using ir::DType;
using ir::Scalar;

namespace {

int64_t div_trunc(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapping_sub(0, a);
  return a / b;
}
int64_t div_floor(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapping_sub(0, a);
  const int64_t q = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? q - 1 : q;
}
int64_t mod_floor(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

// Copies `in` to `out`, converted to type T.
template <class T, int kLanes, class In, class Out>
void convert(const In* __restrict in, Out* __restrict out) {
  for (int l = 0; l < kLanes; ++l) out[l] = static_cast<T>(in[l]);
}

template <class Element, class Lane>
void load_lanes(const std::byte* data, const int64_t* address, int64_t offset, Lane* out, int n) {
  constexpr int64_t kBytes = sizeof(Element);
  for (int l = 0; l < n; ++l) {
    Element e;
    std::memcpy(&e, data + (address[l] + offset) * kBytes, sizeof(Element));
    out[l] = e;
  }
}

template <class Element, class Lane>
void store_typed(const Lane* in, std::byte* data, int n) {
  for (int l = 0; l < n; ++l, data += sizeof(Element)) {
    const auto e = static_cast<Element>(in[l]);
    std::memcpy(data, &e, sizeof(Element));
  }
}

}  // namespace

template <int kLanes>
BytecodeMachine<kLanes>::BytecodeMachine(const Code& code) : code_(code) {
  registers_.resize(code.registers);
  for (const auto& [reg, value] : code.constants) {
    for (int l = 0; l < kLanes; ++l) set_scalar(reg, l, value);
  }
  uniform.assign(code.uniform.size(), 0);
}

template <int kLanes>
Scalar BytecodeMachine<kLanes>::scalar(RegisterId reg, int lane, DType dtype) {
  Scalar v;
  v.dtype = dtype;
  switch (register_kind(dtype)) {
    case RegisterKind::kInt:
      v.i = ints(reg)[lane];
      break;
    case RegisterKind::kF32:
      v.f = floats(reg)[lane];
      break;
    case RegisterKind::kF64:
      v.f = doubles(reg)[lane];
      break;
  }
  return v;
}

template <int kLanes>
void BytecodeMachine<kLanes>::set_scalar(RegisterId reg, int lane, const Scalar& value) {
  switch (register_kind(value.dtype)) {
    case RegisterKind::kInt:
      ints(reg)[lane] = value.i;
      break;
    case RegisterKind::kF32:
      floats(reg)[lane] = static_cast<float>(value.f);
      break;
    case RegisterKind::kF64:
      doubles(reg)[lane] = value.f;
      break;
  }
}

#define LANES(EXPRESSION)                               \
  for (int l = 0; l < kLanes; ++l) d[l] = (EXPRESSION); \
  break
#define INT_OPERANDS                        \
  int64_t* __restrict d = ints(in.dst);     \
  const int64_t* __restrict a = ints(in.a); \
  const int64_t* __restrict b = in.b.valid() ? ints(in.b) : a
#define INT_OP(OP, EXPRESSION) \
  case Opcode::OP: {           \
    INT_OPERANDS;              \
    (void)b;                   \
    LANES(EXPRESSION);         \
  }
#define CONVERT_OP(OP, T, FROM, TO)             \
  case Opcode::OP:                              \
    convert<T, kLanes>(FROM(in.a), TO(in.dst)); \
    break;
#define FLOAT_OP(OP, ACCESS, T, RESULT, RESULT_ACCESS, EXPRESSION) \
  case Opcode::OP: {                                               \
    RESULT* __restrict d = RESULT_ACCESS(in.dst);                  \
    const T* __restrict a = ACCESS(in.a);                          \
    const T* __restrict b = in.b.valid() ? ACCESS(in.b) : a;       \
    (void)b;                                                       \
    LANES(EXPRESSION);                                             \
  }
#define FLOAT_OPS(SUFFIX, ACCESS, T)                                    \
  FLOAT_OP(kAdd##SUFFIX, ACCESS, T, T, ACCESS, a[l] + b[l])             \
  FLOAT_OP(kSub##SUFFIX, ACCESS, T, T, ACCESS, a[l] - b[l])             \
  FLOAT_OP(kMul##SUFFIX, ACCESS, T, T, ACCESS, a[l] * b[l])             \
  FLOAT_OP(kDiv##SUFFIX, ACCESS, T, T, ACCESS, a[l] / b[l])             \
  FLOAT_OP(kMin##SUFFIX, ACCESS, T, T, ACCESS, ir::minimum(a[l], b[l])) \
  FLOAT_OP(kMax##SUFFIX, ACCESS, T, T, ACCESS, ir::maximum(a[l], b[l])) \
  FLOAT_OP(kEq##SUFFIX, ACCESS, T, int64_t, ints, a[l] == b[l])         \
  FLOAT_OP(kNe##SUFFIX, ACCESS, T, int64_t, ints, a[l] != b[l])         \
  FLOAT_OP(kLt##SUFFIX, ACCESS, T, int64_t, ints, a[l] < b[l])          \
  FLOAT_OP(kLe##SUFFIX, ACCESS, T, int64_t, ints, a[l] <= b[l])         \
  FLOAT_OP(kGt##SUFFIX, ACCESS, T, int64_t, ints, a[l] > b[l])          \
  FLOAT_OP(kGe##SUFFIX, ACCESS, T, int64_t, ints, a[l] >= b[l])         \
  FLOAT_OP(kNeg##SUFFIX, ACCESS, T, T, ACCESS, -a[l])

template <int kLanes>
bool BytecodeMachine<kLanes>::execute(const Stream& stream) {
  const Instruction* code = stream.data();
  const size_t size = stream.size();
  for (size_t pc = 0; pc < size; ++pc) {
    const Instruction& in = code[pc];
    switch (in.op) {
      INT_OP(kAddI, wrapping_add(a[l], b[l]))
      INT_OP(kSubI, wrapping_sub(a[l], b[l]))
      INT_OP(kMulI, wrapping_mul(a[l], b[l]))
      INT_OP(kDivI, div_trunc(a[l], b[l]))
      INT_OP(kFloorDivI, div_floor(a[l], b[l]))
      INT_OP(kFloorModI, mod_floor(a[l], b[l]))
      INT_OP(kMinI, a[l] < b[l] ? a[l] : b[l])
      INT_OP(kMaxI, a[l] > b[l] ? a[l] : b[l])
      INT_OP(kEqI, a[l] == b[l])
      INT_OP(kNeI, a[l] != b[l])
      INT_OP(kLtI, a[l] < b[l])
      INT_OP(kLeI, a[l] <= b[l])
      INT_OP(kGtI, a[l] > b[l])
      INT_OP(kGeI, a[l] >= b[l])
      INT_OP(kAndI, a[l] & b[l])
      INT_OP(kOrI, a[l] | b[l])
      INT_OP(kXorI, a[l] ^ b[l])
      INT_OP(kNotB, a[l] == 0)
      INT_OP(kNegI, wrapping_sub(0, a[l]))
      INT_OP(kWrapBool, a[l] != 0)
      CONVERT_OP(kWrapI8, int8_t, ints, ints)
      CONVERT_OP(kWrapU8, uint8_t, ints, ints)
      CONVERT_OP(kWrapI16, int16_t, ints, ints)
      CONVERT_OP(kWrapU16, uint16_t, ints, ints)
      CONVERT_OP(kWrapI32, int32_t, ints, ints)
      CONVERT_OP(kWrapU32, uint32_t, ints, ints)
      FLOAT_OPS(F32, floats, float)
      FLOAT_OPS(F64, doubles, double)
      FLOAT_OP(kRoundF16, floats, float, float, floats, ir::f16_to_f32(ir::f32_to_f16(a[l])))
      FLOAT_OP(kRoundBF16, floats, float, float, floats, ir::bf16_to_f32(ir::f32_to_bf16(a[l])))
      CONVERT_OP(kIntToF32, float, ints, floats)
      CONVERT_OP(kIntToF64, double, ints, doubles)
      CONVERT_OP(kF32ToF64, double, floats, doubles)
      CONVERT_OP(kF64ToF32, float, doubles, floats)
      case Opcode::kUnary:
        for (int l = 0; l < kLanes; ++l) {
          set_scalar(in.dst, l, ir::eval_unary(in.unary, scalar(in.a, l, in.dtype_a)));
        }
        break;
      case Opcode::kBinary:
        for (int l = 0; l < kLanes; ++l) {
          set_scalar(in.dst, l,
                     ir::eval_binary(in.binary, scalar(in.a, l, in.dtype_a), scalar(in.b, l, in.dtype_a)));
        }
        break;
      case Opcode::kCast:
        for (int l = 0; l < kLanes; ++l) {
          set_scalar(in.dst, l, ir::eval_cast(in.dtype, scalar(in.a, l, in.dtype_a)));
        }
        break;
      case Opcode::kCall:
        for (int l = 0; l < kLanes; ++l) {
          const Scalar second = in.b.valid() ? scalar(in.b, l, in.dtype_a) : Scalar{};
          set_scalar(in.dst, l, ir::eval_call(in.intrinsic, scalar(in.a, l, in.dtype_a), second));
        }
        break;
      case Opcode::kSelectI: {
        int64_t* __restrict d = ints(in.dst);
        const int64_t* __restrict c = ints(in.a);
        const int64_t* __restrict a = ints(in.b);
        const int64_t* __restrict b = ints(in.c);
        LANES(c[l] != 0 ? a[l] : b[l]);
      }
      case Opcode::kSelectF32: {
        float* __restrict d = floats(in.dst);
        const int64_t* __restrict c = ints(in.a);
        const float* __restrict a = floats(in.b);
        const float* __restrict b = floats(in.c);
        LANES(c[l] != 0 ? a[l] : b[l]);
      }
      case Opcode::kSelectF64: {
        double* __restrict d = doubles(in.dst);
        const int64_t* __restrict c = ints(in.a);
        const double* __restrict a = doubles(in.b);
        const double* __restrict b = doubles(in.c);
        LANES(c[l] != 0 ? a[l] : b[l]);
      }
      case Opcode::kMaskAnd: {
        int64_t* __restrict d = ints(in.dst);
        const int64_t* __restrict b = ints(in.b);
        const int64_t* __restrict a = in.a.valid() ? ints(in.a) : b;
        LANES(a[l] != 0 && b[l] != 0);
      }
      case Opcode::kMaskAndNot: {
        int64_t* __restrict d = ints(in.dst);
        const int64_t* __restrict b = ints(in.b);
        if (!in.a.valid()) {
          LANES(b[l] == 0);
        }
        const int64_t* __restrict a = ints(in.a);
        LANES(a[l] != 0 && b[l] == 0);
      }
      case Opcode::kJumpIfNone: {
        const int64_t* mask = ints(in.a);
        int64_t any = 0;
        for (int l = 0; l < kLanes; ++l) any |= mask[l];
        if (any == 0) pc = in.target - 1;
        break;
      }
      case Opcode::kLinear: {
        int64_t* __restrict d = ints(in.dst);
        int64_t sum[kLanes];
        for (int l = 0; l < kLanes; ++l) sum[l] = in.imm;
        for (const LinearSum::Term& term : code_.sums[in.sum].terms) {
          const int64_t* __restrict v = ints(term.reg);
          for (int l = 0; l < kLanes; ++l)
            sum[l] = wrapping_add(sum[l], wrapping_mul(term.coefficient, v[l]));
        }
        LANES(sum[l]);
      }
      case Opcode::kCheckIndex: {
        const int64_t* index = ints(in.a);
        const int64_t* mask = in.c.valid() ? ints(in.c) : nullptr;
        for (int l = 0; l < kLanes; ++l) {
          if ((mask == nullptr || mask[l] != 0) && (index[l] < 0 || index[l] >= in.imm)) {
            fault_ = {in.site, index[l]};
            return false;
          }
        }
        break;
      }
      case Opcode::kCheckWritten: {
        const BufferSlot& slot = slots[in.slot];
        if (slot.written == nullptr) break;
        const int64_t* address = ints(in.a);
        const int64_t* mask = in.c.valid() ? ints(in.c) : nullptr;
        const int64_t offset = uniform[in.uniform];
        bool missing = false;
        for (int l = 0; l < kLanes; ++l) {
          missing |= (mask == nullptr || mask[l] != 0) && slot.written[address[l] + offset] != slot.epoch;
        }
        if (missing && !on_missing(in)) return false;
        break;
      }
      case Opcode::kLoad: {
        const std::byte* data = slots[in.slot].data;
        const int64_t* address = ints(in.a);
        int64_t offset = uniform[in.uniform];
        int64_t masked[kLanes];
        if (in.c.valid()) {
          // Lanes outside the mask read the element of a lane inside it; the preceding jump
          // guarantees that there is one.
          const int64_t* mask = ints(in.c);
          int64_t inside = 0;
          for (int l = 0; l < kLanes; ++l) inside = mask[l] != 0 ? address[l] : inside;
          for (int l = 0; l < kLanes; ++l) masked[l] = mask[l] != 0 ? address[l] : inside;
          address = masked;
        }
        switch (in.dtype) {
          case DType::kBool:
          case DType::kU8:
            load_lanes<uint8_t>(data, address, offset, ints(in.dst), kLanes);
            break;
          case DType::kI8:
            load_lanes<int8_t>(data, address, offset, ints(in.dst), kLanes);
            break;
          case DType::kI16:
            load_lanes<int16_t>(data, address, offset, ints(in.dst), kLanes);
            break;
          case DType::kU16:
            load_lanes<uint16_t>(data, address, offset, ints(in.dst), kLanes);
            break;
          case DType::kI32:
            load_lanes<int32_t>(data, address, offset, ints(in.dst), kLanes);
            break;
          case DType::kU32:
            load_lanes<uint32_t>(data, address, offset, ints(in.dst), kLanes);
            break;
          case DType::kI64:
          case DType::kU64:
            load_lanes<int64_t>(data, address, offset, ints(in.dst), kLanes);
            break;
          case DType::kF32:
            load_lanes<float>(data, address, offset, floats(in.dst), kLanes);
            break;
          case DType::kF64:
            load_lanes<double>(data, address, offset, doubles(in.dst), kLanes);
            break;
          case DType::kF16:
          case DType::kBF16: {
            float* d = floats(in.dst);
            for (int l = 0; l < kLanes; ++l) {
              uint16_t bits = 0;
              std::memcpy(&bits, data + (address[l] + offset) * 2, 2);
              d[l] = in.dtype == DType::kF16 ? ir::f16_to_f32(bits) : ir::bf16_to_f32(bits);
            }
            break;
          }
        }
        break;
      }
    }
  }
  return true;
}

#undef LANES
#undef INT_OPERANDS
#undef INT_OP
#undef CONVERT_OP
#undef FLOAT_OP
#undef FLOAT_OPS

template <int kLanes>
void store_lanes(BytecodeMachine<kLanes>& machine, RegisterId reg, DType dtype, std::byte* destination,
                 int count) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
      return store_typed<uint8_t>(machine.ints(reg), destination, count);
    case DType::kI16:
    case DType::kU16:
      return store_typed<uint16_t>(machine.ints(reg), destination, count);
    case DType::kI32:
    case DType::kU32:
      return store_typed<uint32_t>(machine.ints(reg), destination, count);
    case DType::kI64:
    case DType::kU64:
      return store_typed<int64_t>(machine.ints(reg), destination, count);
    case DType::kF32:
      return store_typed<float>(machine.floats(reg), destination, count);
    case DType::kF64:
      return store_typed<double>(machine.doubles(reg), destination, count);
    case DType::kF16:
    case DType::kBF16:
      for (int l = 0; l < count; ++l) {
        const float value = machine.floats(reg)[l];
        const uint16_t bits = dtype == DType::kF16 ? ir::f32_to_f16(value) : ir::f32_to_bf16(value);
        std::memcpy(destination + l * 2, &bits, 2);
      }
      return;
  }
}

template class BytecodeMachine<1>;
template class BytecodeMachine<kBlockLanes>;
template void store_lanes(BytecodeMachine<1>&, RegisterId, DType, std::byte*, int);
template void store_lanes(BytecodeMachine<kBlockLanes>&, RegisterId, DType, std::byte*, int);

}  // namespace tensorsmith::lower
