// Opens and reads files that come from outside, such as models and records. Only regular files are
// accepted, so that no reader waits for the writer of a FIFO or reads an endless device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace tensorsmith {

// Opens an existing regular file, or a symlink to one, for reading. Errors, with the path as the
// place: kNotFound; kInvalidArgument for a folder, FIFO, socket or device; kIo.
Result<FileDescriptor> open_input(const std::string& path);

// Opens a file whose path comes from an untrusted file. The path is relative to the folder, and
// with all symlinks resolved it must be below the folder or below `also`, if that is not empty;
// otherwise the error is kInvalidArgument.
Result<FileDescriptor> open_input_below(const std::string& folder, const std::string& path,
                                        const std::string& also = "");

// Returns the size of an open regular file in bytes.
Result<int64_t> input_bytes(const FileDescriptor& file, const std::string& path);

// Reads exactly `bytes` bytes from `offset` on. Errors: kCorrupt if the file ends before; kIo.
Status read_exactly(const FileDescriptor& file, const std::string& path, int64_t offset, void* out,
                    int64_t bytes);

// Reads a whole file. Returns kResourceExhausted if it is longer than max_bytes. The size that the
// system states is only a hint: if the file turns out to be longer, it is read to its end or the limit.
Result<std::string> read_input(const std::string& path, int64_t max_bytes);
// Reads a file that is open already, from its beginning. `path` is the place of errors.
Result<std::string> read_input(const FileDescriptor& file, const std::string& path, int64_t max_bytes);

// Formats a limit for an error message: "17 bytes", "3 MiB".
std::string describe_bytes(int64_t bytes);

}  // namespace tensorsmith
