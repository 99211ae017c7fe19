// A PostgreSQL server as a session. Internal to src/record.
#pragma once

#include <memory>
#include <string>

#include "record/sql/session.h"

namespace tensorsmith::record {

// As Database::open() and open_read_only().
Result<std::unique_ptr<SqlSession>> open_postgresql(const std::string& address, bool read_only);

}  // namespace tensorsmith::record
