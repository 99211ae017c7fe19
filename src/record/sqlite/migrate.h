// Databases of earlier schema versions. For use inside the room.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace tensorsmith::record {

// From schema 1 to 2: the text `origin` becomes columns; every row stays. To be called in a transaction, which
// the caller ends. path: the place of errors.
Status migrate_from_1(sqlite3* db, const std::string& path);

// A copy of the whole database in memory, for files that may not be changed. The caller closes it.
Result<sqlite3*> copy_to_memory(sqlite3* db, const std::string& path);

}  // namespace tensorsmith::record
