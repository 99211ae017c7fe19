// Files that come from outside. Every reader opens its file here: only regular files, so that no reader waits
// for the writer of a FIFO, and none reads a device that never ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tensorsmith {

// An existing regular file, or a symlink to one, open for reading. Errors, the place is the path: kNotFound;
// kInvalidArgument for a folder, FIFO, socket or device; kIo.
Result<FileDescriptor> open_input(const std::string& path);

// The same of a path that comes from an untrusted file. It is taken below the folder, and what it names after
// all symlinks must lie below the folder or below `also`, if that is not empty. kInvalidArgument otherwise.
Result<FileDescriptor> open_input_below(const std::string& folder, const std::string& path,
                                        const std::string& also = "");

// Bytes of an open regular file.
Result<int64_t> input_bytes(const FileDescriptor& file, const std::string& path);

// Exactly `bytes` bytes from `offset` on. kCorrupt where the file ends before; kIo.
Status read_exactly(const FileDescriptor& file, const std::string& path, int64_t offset, void* out,
                    int64_t bytes);

// All of a file. kResourceExhausted where it is longer than max_bytes: nothing of it is read then.
Result<std::string> read_input(const std::string& path, int64_t max_bytes);
// The same of an open file.
Result<std::string> read_input(const FileDescriptor& file, const std::string& path, int64_t max_bytes);

// "17 bytes", "3 MiB": a limit as an error message gives it.
std::string describe_bytes(int64_t bytes);

}  // namespace tensorsmith
