// The table of operators.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/ops/op_context.h"
#include "graph/routines.h"

namespace tensorsmith::graph {

using Emitter = Result<Buffers> (*)(OpContext&);
// Returns the routine that computes the node on a processor; nothing if the loops that the emitter makes are as good.
// The inputs have the dtypes of the model. Errors are those of the emitter.
using Router = Result<std::optional<RoutineUse>> (*)(OpContext&);

// Facts about an operator that the importer, the passes and the engine need.
enum OpTrait : uint32_t {
  kElementwise = 1 << 0,  // an output element depends on the input elements at its indices, with broadcasting
  kReduces = 1 << 1,      // elements are combined along some dimensions, and stay apart along all others
  kReshapes = 1 << 2,     // the only output has the elements of input 0 in their order
  kReturnsInput = 1 << 3,    // output 0 is input 0
  kMayReturnInput = 1 << 4,  // an output is an input for some shapes and attributes
  kMovesElements = 1 << 5,   // each element of each output is an element of input 0
  kPicksElements = 1 << 6,   // each element of output 0 is an element of input 0, a bound or a fill value
  kReadsShape = 1 << 7,      // the shape of input 0 determines the output
  kRoundsFactors = 1 << 8,   // output 0 is sums of products; the emitter handles the attribute kRoundFactors
  kStatistics = 1 << 9,      // all outputs but the first are f32, whatever dtype the inputs have
};

// One operator. The signature describes its inputs: the class of T, a colon, and one letter per
// input, lower case for one that may be omitted; '*' at the end repeats the last letter.
//   class of T: a any, o any that has an order, n numeric, f float, i integer, u unsigned integer, b bool
//   T the same dtype of that class, U the same dtype of any class, I i32 or i64, L i64, B bool, F any float,
//   N numeric, A any
// "f:TTt" is Conv: three inputs of one float dtype, the last optional.
struct OpEntry {
  std::string_view op;
  std::string_view signature;
  Emitter emit;
  uint32_t traits = 0;   // the OpTrait bits that apply
  int oldest_opset = 1;  // older forms of the operator are not supported
  Router route = nullptr;
};

// An operator that is evaluated only on constants, because the shape of its result depends on the
// data.
using Folder = Result<std::vector<lower::Tensor>> (*)(OpContext&);
struct FoldEntry {
  std::string_view op;
  std::string_view signature;
  Folder fold;  // called if ctx.constant(i) is known for each input that is present
};

// Prefix of operators that the importer makes and that models must not contain.
inline constexpr const char* kBoundedPrefix = "Bounded.";
// Made only by merge_moves(), never imported: the index maps of attributes step_0, step_1, ...
// (ops/move.h).
inline constexpr const char* kMoveOperator = "Move";

// Return null if there is none.
const OpEntry* find_operator(std::string_view op);
const FoldEntry* find_fold_operator(std::string_view op);
// Returns whether the operator is known and has at least one of the traits.
bool has_trait(std::string_view op, uint32_t traits);
// Returns all operators that models may use, sorted: both kinds, without those that only the
// importer and the passes make.
std::vector<std::string_view> operator_names();

// Checks that the inputs match the signature.
Status check_signature(const OpContext& ctx, std::string_view signature);

// One list per family of operators.
std::span<const OpEntry> binary_operators();
std::span<const OpEntry> bounded_operators();
std::span<const OpEntry> constant_operators();
std::span<const OpEntry> conv_operators();
std::span<const FoldEntry> data_dependent_operators();
std::span<const OpEntry> deform_conv_operators();
std::span<const OpEntry> einsum_operators();
std::span<const OpEntry> fold_image_operators();
std::span<const OpEntry> gather_operators();
std::span<const OpEntry> gemm_operators();
std::span<const OpEntry> loss_operators();
std::span<const OpEntry> move_operators();
std::span<const OpEntry> nbits_operators();
std::span<const OpEntry> normalization_operators();
std::span<const OpEntry> pad_operators();
std::span<const OpEntry> pool_operators();
std::span<const OpEntry> quantize_operators();
std::span<const OpEntry> reduce_operators();
std::span<const OpEntry> reshape_operators();
std::span<const OpEntry> resize_operators();
std::span<const OpEntry> sample_operators();
std::span<const OpEntry> signal_operators();
std::span<const OpEntry> slice_operators();
std::span<const OpEntry> softmax_operators();
std::span<const OpEntry> text_operators();
std::span<const OpEntry> topk_operators();
std::span<const OpEntry> training_operators();
std::span<const OpEntry> transpose_operators();
std::span<const OpEntry> unary_operators();

}  // namespace tensorsmith::graph
