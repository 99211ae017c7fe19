// Reads files of records line by line, with the work on lines shared among threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "record/line_reader.h"

namespace tensorsmith::learn {

struct ImportProblem {
  std::string place;  // "file:line"
  std::string reason;
};

// A line and what is made of it; importers add their own members.
struct LineSlot {
  record::LineReader::Line line;
  Status status;
};

// Calls make(slot) for each line that is not blank, on `threads` threads at a time; then, in the
// order of the lines, use(slot) where the slot's status is ok, and problem() elsewhere. Holds one
// batch in memory; `slots`, of a type derived from LineSlot, are used again. Stops at an error of
// use() or of the file.
template <class Slot, class Make, class Use, class Problem>
Status read_lines(const std::string& path, int threads, std::vector<Slot>& slots, const Make& make,
                  const Use& use, const Problem& problem) {
  constexpr size_t kLinesAtOnce = 2048;
  constexpr size_t kMaxLine = size_t{16} << 20;
  TS_ASSIGN_OR_RETURN(auto reader, record::LineReader::open(path, kMaxLine));
  // The calling thread takes part in the work.
  std::unique_ptr<ThreadPool> pool;
  if (threads > 1) pool = std::make_unique<ThreadPool>(threads - 1);
  slots.resize(kLinesAtOnce);
  Status end;
  for (bool more = true; more;) {
    size_t count = 0;
    while (count < slots.size()) {
      auto next = reader->next(slots[count].line);
      more = next.ok() && *next;
      if (!next.ok()) end = std::move(next).error();
      if (!more) break;
      const auto& line = slots[count].line;
      const bool blank = !line.too_long && line.text.find_first_not_of(" \t\r") == std::string::npos;
      if (!blank) ++count;
    }
    const auto work = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        Slot& slot = slots[i];
        slot.status = {};
        if (slot.line.too_long) {
          slot.status = Error{ErrorCode::kCorrupt, "", "the line is too long"};
        } else {
          make(slot);
        }
      }
    };
    if (pool) {
      pool->parallel_for(count, 16, work);
    } else {
      work(0, count);
    }
    for (size_t i = 0; i < count; ++i) {
      Slot& slot = slots[i];
      if (slot.status.ok()) {
        TS_RETURN_IF_ERROR(use(slot));
      } else {
        problem(ImportProblem{path + ":" + std::to_string(slot.line.number), slot.status.error().message()});
      }
    }
  }
  return end;
}

}  // namespace tensorsmith::learn
