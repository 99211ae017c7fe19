// An SQLite file as a session. Internal to src/record.
#pragma once

#include <memory>
#include <string>

#include "record/sql/session.h"

namespace tensorsmith::record {

enum class OpenMode : uint8_t { kCreate, kRead };

// As Database::open() and open_read_only().
Result<std::unique_ptr<SqlSession>> open_sqlite(const std::string& path, OpenMode mode);

}  // namespace tensorsmith::record
