#include "engine/model/c_model.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>

#include "codegen/c/codegen.h"
#include "runtime/file_io.h"

namespace tensorsmith::engine {
namespace {

namespace fs = std::filesystem;

Status write_text(const fs::path& path, const std::string& text) {
  TS_ASSIGN_OR_RETURN(runtime::FileWriter writer, runtime::FileWriter::create(path.string()));
  TS_RETURN_IF_ERROR(writer.write(text.data(), text.size()));
  return writer.close();
}

int64_t aligned(int64_t bytes) {
  return (bytes + runtime::kBufferAlignment - 1) / runtime::kBufferAlignment * runtime::kBufferAlignment;
}

std::string tensor_comment(const char* kind, size_t index, const runtime::TensorInfo& tensor) {
  std::string shape;
  for (const int64_t extent : tensor.shape) shape += (shape.empty() ? "" : "x") + std::to_string(extent);
  std::string name = tensor.name;
  std::replace(name.begin(), name.end(), '/', '.');  // keeps the name from ending the C comment
  return std::string("   ") + kind + "[" + std::to_string(index) + "]: " + name + ", " +
         std::string(to_string(tensor.dtype)) + " " + shape + "\n";
}

std::string upper(std::string text) {
  for (char& c : text) c = std::toupper(static_cast<unsigned char>(c));
  return text;
}

std::string model_signature(const std::string& prefix) {
  return "void " + prefix +
         "_model(const TensorsmithKernelContext* context, const void* weights, void* arena,\n"
         "    const void* const* inputs, void* const* outputs)";
}

// Returns the text of the model's header file.
std::string model_header(const std::string& prefix, const runtime::ModelDescription& d,
                         const std::vector<std::string>& symbols, int64_t weight_bytes) {
  int64_t shared = 0, per_thread = 0;
  for (const runtime::CallInfo& call : d.calls) {
    shared = std::max(shared, call.shared_workspace_bytes);
    per_thread = std::max(per_thread, call.thread_workspace_bytes);
  }
  const std::string guard = upper(prefix) + "_MODEL_H_";
  std::string text = "#ifndef " + guard + "\n#define " + guard + "\n\n#include \"" + codegen::kCHeaderName +
                     "\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* The model's kernels. */\n";
  for (const std::string& symbol : symbols) text += codegen::c_declarations(symbol);
  text +=
      "\n/* Runs the whole model. Every pointer must be aligned to TENSORSMITH_BUFFER_ALIGNMENT bytes. "
      "weights: the bytes\n   of weights.bin. arena: memory for the values between kernels. The context "
      "needs a shared workspace and one\n   workspace per thread, of the sizes given below. Its parallel_for "
      "may simply call body(closure, 0, n, 0).\n";
  for (size_t i = 0; i < d.inputs.size(); ++i) text += tensor_comment("inputs", i, d.inputs[i]);
  for (size_t i = 0; i < d.outputs.size(); ++i) text += tensor_comment("outputs", i, d.outputs[i]);
  text += "*/\n";
  const auto constant = [&](const char* name, int64_t value) {
    text += "#define " + upper(prefix) + "_MODEL_" + name + " " + std::to_string(value) + "\n";
  };
  constant("WEIGHT_BYTES", weight_bytes);
  constant("ARENA_BYTES", d.arena_bytes);
  constant("SHARED_WORKSPACE_BYTES", shared);
  constant("THREAD_WORKSPACE_BYTES", per_thread);
  return text + model_signature(prefix) + ";\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
}

std::string argument(const runtime::BufferRef& buffer, const std::vector<int64_t>& weight_offsets) {
  const std::string index = std::to_string(buffer.index);
  const std::string begin = buffer.begin == 0 ? "" : " + " + std::to_string(buffer.begin);
  switch (buffer.kind) {
    case runtime::BufferKind::kInput:
      return "(char*)inputs[" + index + "]" + begin;
    case runtime::BufferKind::kOutput:
      return "(char*)outputs[" + index + "]" + begin;
    case runtime::BufferKind::kArena:
      return "(char*)arena + " + index;
    case runtime::BufferKind::kWeight:
      return "(char*)weights + " + std::to_string(weight_offsets[buffer.index]);
  }
  throw_internal_error(__FILE__, __LINE__, "unknown kind of buffer");
}

std::string model_text(const std::string& prefix, const runtime::ModelDescription& d,
                       const std::vector<int64_t>& weight_offsets) {
  std::string text = "/* The model: its kernels in order. */\n#include \"" + prefix + "_model.h\"\n\n" +
                     model_signature(prefix) +
                     " {\n"
                     "  (void)weights;\n  (void)arena;\n  (void)inputs;\n  (void)outputs;\n";
  for (const runtime::CallInfo& call : d.calls) {
    text += "  {\n    void* const buffers[] = {";
    for (size_t i = 0; i < call.buffers.size(); ++i)
      text += (i > 0 ? ", " : "") + argument(call.buffers[i], weight_offsets);
    text += "};\n    " + call.symbol + "(context, buffers);\n  }\n";
  }
  return text + "}\n";
}

}  // namespace

Status check_c_prefix(const std::string& prefix) {
  constexpr size_t kMost = 64;
  const bool name = !prefix.empty() && prefix.size() <= kMost && prefix[0] >= 'a' && prefix[0] <= 'z' &&
                    prefix.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (name) return {};
  return Error{
      ErrorCode::kInvalidArgument, "--prefix " + prefix,
      "write it as lower-case letters, digits and _, a letter first, at most " + std::to_string(kMost)};
}

Status check_c_directory(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error) || (fs::is_directory(directory, error) && fs::is_empty(directory, error)))
    return {};
  return Error{ErrorCode::kInvalidArgument, directory,
               "is not empty; give -o another folder for the C sources"};
}

Status write_c_model(const std::string& directory, const std::string& prefix,
                     const runtime::ModelDescription& description, const std::vector<std::string>& symbols,
                     const std::vector<std::vector<char>>& texts,
                     const std::vector<runtime::WeightData>& weights) {
  TS_RETURN_IF_ERROR(check_c_directory(directory));
  std::vector<int64_t> offsets;
  int64_t weight_bytes = 0;
  std::string bytes;
  for (const runtime::WeightData& weight : weights) {
    offsets.push_back(weight_bytes);
    bytes.append(reinterpret_cast<const char*>(weight.bytes.data()), weight.bytes.size());
    weight_bytes = aligned(weight_bytes + static_cast<int64_t>(weight.bytes.size()));
    bytes.resize(weight_bytes);
  }
  // Written to a temporary directory, then renamed, so that all files appear or none.
  fs::path place = fs::path(directory).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  std::error_code error;
  if (place.has_parent_path()) fs::create_directories(place.parent_path(), error);
  if (error) return runtime::file_error(place.parent_path().string(), "cannot create", error.value());
  const fs::path fresh = place.string() + ".tmp-" + std::to_string(::getpid());
  if (!fs::create_directory(fresh, error))
    return runtime::file_error(fresh.string(), "cannot create", error ? error.value() : EEXIST);
  const auto write_all = [&]() -> Status {
    TS_RETURN_IF_ERROR(write_text(fresh / "weights.bin", bytes));
    for (size_t i = 0; i < symbols.size(); ++i)
      TS_RETURN_IF_ERROR(
          write_text(fresh / (symbols[i] + ".c"), std::string(texts[i].begin(), texts[i].end())));
    TS_RETURN_IF_ERROR(write_text(fresh / (prefix + "_model.c"), model_text(prefix, description, offsets)));
    TS_RETURN_IF_ERROR(
        write_text(fresh / (prefix + "_model.h"), model_header(prefix, description, symbols, weight_bytes)));
    return write_text(fresh / codegen::kCHeaderName, codegen::c_header());
  };
  Status written = write_all();
  if (written.ok()) {
    fs::rename(fresh, place, error);  // onto nothing or an empty directory
    if (!error) return {};
    written = runtime::file_error(place.string(), "cannot create", error.value());
  }
  fs::remove_all(fresh, error);
  return Error{written.error().code, directory, written.error().reason + "; nothing was written"};
}

}  // namespace tensorsmith::engine
