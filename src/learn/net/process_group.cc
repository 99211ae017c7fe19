#include "learn/net/process_group.h"

#include <algorithm>

#ifdef TENSORSMITH_GLOO
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

namespace tensorsmith::learn::net {

#ifdef TENSORSMITH_GLOO
namespace {

// Timeouts for the other processes to connect, and to finish a step; the longest step is the
// validation of an epoch.
constexpr std::chrono::minutes kJoinTime(5), kStepTime(30);

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

// Returns this machine's address on the route to the host, at which the other processes can reach
// it too.
Result<std::string> own_address(const Processes& processes) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(processes.host.c_str(), std::to_string(processes.port).c_str(), &hints, &found) != 0)
    return Error{ErrorCode::kNotFound, processes.host, "is an unknown host"};
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int socket_number = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
    if (socket_number < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    // Connecting a datagram socket sends nothing; it only selects the route.
    const bool known = connect(socket_number, at->ai_addr, at->ai_addrlen) == 0 &&
                       getsockname(socket_number, reinterpret_cast<sockaddr*>(&own), &size) == 0;
    close(socket_number);
    char text[NI_MAXHOST];
    if (known && getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                             NI_NUMERICHOST) == 0)
      return std::string(text);
  }
  return Error{ErrorCode::kIo, processes.host, "cannot be reached from this machine"};
}

class GlooGroup final : public ProcessGroup {
 public:
  GlooGroup(const Processes& processes, const std::string& address) : processes_(processes) {
    c10d::TCPStoreOptions store;
    store.port = static_cast<uint16_t>(processes.port);
    store.isServer = processes.rank == 0;
    store.numWorkers = processes.count;
    store.waitWorkers = true;
    store.timeout = kJoinTime;
    auto options = c10d::ProcessGroupGloo::Options::create();
    options->timeout = kStepTime;
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
    group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::TCPStore>(processes.host, store), processes.rank, processes.count, options);
  }

  int rank() const override { return processes_.rank; }
  int count() const override { return processes_.count; }
  Status sum(Tensor& values) override {
    return done([&](std::vector<Tensor>& list) { return group_->allreduce(list); }, values);
  }
  Status broadcast(Tensor& values) override {
    return done([&](std::vector<Tensor>& list) { return group_->broadcast(list); }, values);
  }

 private:
  template <class Call>
  Status done(Call call, Tensor& values) {
    try {
      std::vector<Tensor> list = {values};
      call(list)->wait();
      return {};
    } catch (const std::exception&) {  // of torch or Gloo
      return Error{ErrorCode::kIo, "process " + std::to_string(processes_.rank),
                   "another process of the training has ended; start all processes again, and they continue "
                   "from the checkpoint"};
    }
  }

  const Processes processes_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

}  // namespace
#endif

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::join(const Processes& processes) {
  if (processes.count == 1) return std::unique_ptr<ProcessGroup>();
#ifdef TENSORSMITH_GLOO
  TS_ASSIGN_OR_RETURN(const std::string address, own_address(processes));
  try {
    return std::unique_ptr<ProcessGroup>(std::make_unique<GlooGroup>(processes, address));
  } catch (const std::exception&) {
    return Error{ErrorCode::kIo, processes.host + ":" + std::to_string(processes.port),
                 processes.rank == 0 ? "not all processes of the training connected, or the port is in use"
                                     : "no training with this number of processes is started there"};
  }
#else
  return Error{ErrorCode::kUnsupported, "--ranks",
               "this build has no Gloo library; install libgloo-dev and build Tensorsmith again"};
#endif
}

Result<bool> ProcessGroup::any(bool here) {
  Tensor number = torch::full({1}, here ? 1 : 0, torch::kFloat64);
  TS_RETURN_IF_ERROR(sum(number));
  return number.item<double>() > 0;
}

Result<std::string> ProcessGroup::broadcast(std::string bytes) {
  Tensor size = torch::full({1}, std::ssize(bytes), torch::kInt64);
  TS_RETURN_IF_ERROR(broadcast(size));
  bytes.resize(size.item<int64_t>());
  if (bytes.empty()) return bytes;
  Tensor values = torch::from_blob(bytes.data(), {size.item<int64_t>()}, torch::kUInt8);
  TS_RETURN_IF_ERROR(broadcast(values));
  return bytes;
}

Status ProcessGroup::broadcast(const std::vector<std::pair<std::string, Tensor>>& state) {
  const torch::NoGradGuard no_gradients;
  for (const auto& [name, value] : state) {
    Tensor plain = value.detach().to(torch::kCPU).contiguous();
    TS_RETURN_IF_ERROR(broadcast(plain));
    Tensor target = value;
    target.copy_(plain);
  }
  return {};
}

Status ProcessGroup::sum_gradients(const std::vector<Tensor>& parameters, double weight, double& number) {
  const torch::NoGradGuard no_gradients;
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters) {
    const Tensor& gradient = p.grad();
    parts.push_back(gradient.defined() ? gradient.detach().to(torch::kCPU, torch::kFloat32).flatten() * weight
                                       : torch::zeros({p.numel()}));
  }
  Tensor all = torch::cat(parts);
  TS_RETURN_IF_ERROR(sum(all));
  int64_t at = 0;
  for (const Tensor& p : parameters) {
    // The optimizer detaches gradients, which is not allowed for views, so each gradient is a copy.
    const Tensor part = all.narrow(0, at, p.numel()).view(p.sizes());
    p.mutable_grad() = part.clone().to(p.device(), p.scalar_type());
    at += p.numel();
  }
  Tensor value = torch::full({1}, number, torch::kFloat64);
  TS_RETURN_IF_ERROR(sum(value));
  number = value.item<double>();
  return {};
}

Status ProcessGroup::check_same(const std::string& text, const std::string& what) {
  TS_ASSIGN_OR_RETURN(const std::string first, broadcast(text));
  TS_ASSIGN_OR_RETURN(const bool differs, any(first != text));
  if (!differs) return {};
  return Error{ErrorCode::kMismatch, "process " + std::to_string(rank()),
               (first != text ? "" : "another process ") + what + (first != text ? " than process 0" : "")};
}

std::pair<size_t, size_t> share_of(size_t count, size_t unit, int rank, int processes) {
  const size_t units = (count + unit - 1) / unit;
  const auto end = [&](int r) { return std::min(count, units * r / processes * unit); };
  return {end(rank), rank + 1 == processes ? count : end(rank + 1)};
}

}  // namespace tensorsmith::learn::net
