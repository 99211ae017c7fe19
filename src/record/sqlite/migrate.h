// Migrates databases of earlier schema versions. Internal to src/record.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace tensorsmith::record {

// Migrates from schema 1 to 2: the text `origin` becomes columns; all rows are kept. Must be called
// in a transaction of the caller. `path` is the place of errors.
Status migrate_from_1(sqlite3* db, const std::string& path);

// Copies the whole database to memory, for files that must not be changed. The caller closes the
// copy.
Result<sqlite3*> copy_to_memory(sqlite3* db, const std::string& path);

}  // namespace tensorsmith::record
