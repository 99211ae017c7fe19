#include "measure/profile/kernel_memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace tensorsmith::measure {
namespace {

constexpr uint64_t kPage = 4096;

void run_here(void*, int64_t n, TensorsmithParallelBody body, void* closure) { body(closure, 0, n, 0); }

// Fills with values that stay finite and normal in all arithmetic; integers stay 0, a valid index.
void fill(const ir::Buffer& buffer, std::byte* data) {
  if (buffer->dtype != ir::DType::kF32) return;
  std::fill_n(reinterpret_cast<float*>(data), buffer->num_elements(), 0.25F);
}

}  // namespace

void KernelMemory::add(std::string name, int64_t bytes) {
  places_.push_back({std::move(name), bytes_, bytes});
  // At least a page apart, like separate allocations, and not all in the same sets of a cache.
  bytes_ += (bytes + kPage - 1) / kPage * kPage + 2 * kPage;
}

Result<std::unique_ptr<KernelMemory>> KernelMemory::create(const ir::Program& program,
                                                           const codegen::CompiledKernel& kernel) {
  std::unique_ptr<KernelMemory> memory(new KernelMemory);
  for (const auto* list : {&program.inputs, &program.outputs})
    for (const ir::Buffer& b : *list) memory->add(b->name, ir::bytes_of(b->dtype, b->num_elements()));
  memory->add("workspace", kernel.shared_workspace_bytes);
  memory->add("thread_workspace", kernel.thread_workspace_bytes);
  memory->thread_workspace_bytes_ = kernel.thread_workspace_bytes;
  void* block = ::mmap(nullptr, memory->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED)
    return Error{ErrorCode::kResourceExhausted, "simulation",
                 "no memory for " + std::to_string(memory->bytes_) + " bytes of buffers"};
  memory->block_ = static_cast<std::byte*>(block);
  for (size_t i = 0; i < program.inputs.size(); ++i)
    fill(program.inputs[i], memory->block_ + memory->places_[i].begin);
  return memory;
}

KernelMemory::~KernelMemory() {
  if (block_ != nullptr) ::munmap(block_, bytes_);
}

void KernelMemory::run(TensorsmithKernel function) {
  std::vector<void*> buffers;
  for (size_t i = 0; i + 2 < places_.size(); ++i) buffers.push_back(block_ + places_[i].begin);
  TensorsmithKernelContext context{};
  context.parallel_for = run_here;
  context.num_threads = 1;
  context.shared_workspace = block_ + places_[places_.size() - 2].begin;
  context.thread_workspace = block_ + places_.back().begin;
  context.thread_workspace_stride = (thread_workspace_bytes_ + 63) / 64 * 64;
  function(&context, buffers.data());
}

std::optional<uint64_t> KernelMemory::offset_of(uint64_t address) const {
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(block_);
  return offset < bytes_ ? std::optional(offset) : std::nullopt;
}

size_t KernelMemory::place_at(uint64_t offset) const {
  const auto after = std::upper_bound(places_.begin(), places_.end(), offset,
                                      [](uint64_t at, const Place& place) { return at < place.begin; });
  return after - places_.begin() - 1;
}

}  // namespace tensorsmith::measure
