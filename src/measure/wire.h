// Messages between the measurer and its worker process over a stream socket. Both ends are the same
// program, but a worker that ran a broken candidate may send anything, so received data are never
// trusted.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tensorsmith::measure {

enum class MessageType : uint32_t { kReady = 1, kTask, kTaskReady, kRun, kResult };

struct Message {
  MessageType type = MessageType::kReady;
  std::vector<char> payload;
  int fd = -1;  // a descriptor that was received along with it, owned by the receiver
};

// Limits of waiting for the other side. Time during which this process itself was stopped does not
// count.
struct Patience {
  Patience(double until, std::function<bool()> hopeless = nullptr)  // NOLINT(google-explicit-constructor)
      : deadline(until), give_up(std::move(hopeless)) {}
  double deadline;                // CLOCK_MONOTONIC seconds, 0 = wait for ever
  std::function<bool()> give_up;  // called several times a second; true ends the wait; may be null
};

// Sends the whole message, with `fd` if it is >= 0. Errors: kTimeout, kCancelled (given up), kIo
// (the other side is gone).
Status send_message(int socket, MessageType type, const std::vector<char>& payload, int fd,
                    Patience patience);

// Errors: kTimeout, kCancelled (given up), kIo (closed), kCorrupt (not a message).
Result<Message> receive_message(int socket, Patience patience);

double monotonic_seconds();

class WireWriter {
 public:
  template <class T>
  void add(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  template <class T>
  void add_list(const std::vector<T>& values) {
    static_assert(std::is_arithmetic_v<T>);
    add<uint64_t>(values.size());
    const size_t at = bytes_.size();
    bytes_.resize(at + values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size() * sizeof(T));
  }
  void add_text(const std::string& text) { add_list(std::vector<char>(text.begin(), text.end())); }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

// After the end of the message every value reads as zero and ok() is false.
class WireReader {
 public:
  explicit WireReader(const std::vector<char>& bytes) : next_(bytes.data()), left_(bytes.size()) {}
  template <class T>
  T get() {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if constexpr (std::is_same_v<T, bool>) {  // rejects bytes other than 0 and 1
      const auto byte = get<uint8_t>();
      ok_ = ok_ && byte <= 1;
      return byte == 1;
    } else {
      T value{};
      take(&value, sizeof value);
      return value;
    }
  }
  template <class T>
  std::vector<T> get_list() {
    const auto count = get<uint64_t>();
    if (count > left_ / sizeof(T)) {
      ok_ = false;
      left_ = 0;
      return {};
    }
    std::vector<T> values(count);
    if (count > 0) take(values.data(), count * sizeof(T));
    return values;
  }
  std::string get_text() {
    const auto bytes = get_list<char>();
    return std::string(bytes.begin(), bytes.end());
  }
  bool ok() const { return ok_; }
  // True if the whole message was read and nothing is left.
  bool complete() const { return ok_ && left_ == 0; }

 private:
  void take(void* to, size_t bytes) {
    if (bytes > left_) {
      ok_ = false;
      left_ = 0;
      return;
    }
    std::memcpy(to, next_, bytes);
    next_ += bytes;
    left_ -= bytes;
  }
  const char* next_;
  size_t left_;
  bool ok_ = true;
};

}  // namespace tensorsmith::measure
