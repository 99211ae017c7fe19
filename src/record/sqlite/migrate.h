// Migrates databases of earlier schema versions. Internal to src/record.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace tensorsmith::record {

// Migrates from schema 1 to 2: replaces the column `origin` by those of a candidate (kFrom1To2), which it
// fills by parsing the text in `origin`. Keeps all rows. The caller must have begun a transaction. `path`
// is the place of errors.
Status migrate_from_1(sqlite3* db, const std::string& path);

// Copies the whole database to memory, for files that must not be changed. The caller closes the
// copy.
Result<sqlite3*> copy_to_memory(sqlite3* db, const std::string& path);

}  // namespace tensorsmith::record
