#include "measure/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>

#include "measure/timing.h"

namespace tensorsmith::measure {
namespace {

struct Header {
  uint32_t magic = 0;
  MessageType type = MessageType::kReady;
  uint64_t bytes = 0;
};
constexpr uint32_t kMagic = 0x57534d54;
constexpr uint64_t kMaxPayload = uint64_t{1} << 30;

Error gone() { return Error{ErrorCode::kIo, "", "the other side closed the connection"}; }

Error socket_error(const char* action) {
  if (errno == EPIPE || errno == ECONNRESET) return gone();
  return Error{ErrorCode::kIo, "", std::string(action) + ": " + std::generic_category().message(errno)};
}

// Interval between calls of give_up().
constexpr double kSliceSeconds = 0.1;
// If a wait lasts this much longer than requested, the whole process was stopped.
constexpr double kStoppedSeconds = 0.5;

// Waits until the socket is ready for `events` or closed.
Status wait_ready(int socket, short events, Patience& patience) {
  for (;;) {
    int timeout = -1;
    const double before = monotonic_seconds();
    if (patience.deadline > 0) {
      const double left = patience.deadline - before;
      if (left <= 0) return Error{ErrorCode::kTimeout, "", "no answer in time"};
      timeout = static_cast<int>(std::min(std::ceil(left * 1000), 1000 * kSliceSeconds));
    }
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, timeout);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return socket_error("poll");
    const double late = monotonic_seconds() - before - 1e-3 * timeout;
    if (patience.deadline > 0 && late > kStoppedSeconds) patience.deadline += late;
    if (patience.give_up && patience.give_up()) return Error{ErrorCode::kCancelled, "", "given up"};
  }
}

// fd: receives Message::fd.
Status receive_all(int socket, void* to, size_t bytes, Patience& patience, int* fd) {
  char* next = static_cast<char*>(to);
  while (bytes > 0) {
    TS_RETURN_IF_ERROR(wait_ready(socket, POLLIN, patience));
    iovec part{next, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
    }
    const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got == 0) return gone();
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return socket_error("receive");
    }
    if (fd) {
      for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        if (*fd >= 0) ::close(*fd);
        std::memcpy(fd, CMSG_DATA(c), sizeof *fd);
      }
    }
    next += got;
    bytes -= got;
  }
  return {};
}

Status send_all(int socket, const void* from, size_t bytes, int fd, Patience& patience) {
  const char* next = static_cast<const char*>(from);
  while (bytes > 0) {
    TS_RETURN_IF_ERROR(wait_ready(socket, POLLOUT, patience));
    iovec part{const_cast<char*>(next), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return socket_error("send");
    }
    fd = -1;  // sent only with the first byte
    next += sent;
    bytes -= sent;
  }
  return {};
}

}  // namespace

double monotonic_seconds() { return clock_seconds(CLOCK_MONOTONIC); }

Status send_message(int socket, MessageType type, const std::vector<char>& payload, int fd,
                    Patience patience) {
  TS_CHECK(payload.size() <= kMaxPayload, "message too long");
  const Header header{kMagic, type, payload.size()};
  TS_RETURN_IF_ERROR(send_all(socket, &header, sizeof header, fd, patience));
  return send_all(socket, payload.data(), payload.size(), -1, patience);
}

Result<Message> receive_message(int socket, Patience patience) {
  Header header;
  Message message;
  const auto failed = [&](Error error) {
    if (message.fd >= 0) ::close(message.fd);
    return error;
  };
  if (auto s = receive_all(socket, &header, sizeof header, patience, &message.fd); !s.ok())
    return failed(s.error());
  if (header.magic != kMagic || header.bytes > kMaxPayload)
    return failed(Error{ErrorCode::kCorrupt, "", "not a message"});
  message.type = header.type;
  message.payload.resize(header.bytes);
  if (auto s = receive_all(socket, message.payload.data(), message.payload.size(), patience, nullptr);
      !s.ok())
    return failed(s.error());
  return message;
}

}  // namespace tensorsmith::measure
