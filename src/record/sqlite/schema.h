// The tables of a record database in an SQLite file.
#pragma once

#include "record/sql/fleet_schema.h"

namespace tensorsmith::record {

// Uses a rollback journal (SQLite's default) rather than WAL: the database stays one file that can
// be copied, it works on network file systems, and readers need no write access. synchronous=FULL:
// a committed record survives a power failure. best_seconds is derived from `seconds` for the
// index.
inline constexpr const char* kSchema = R"sql(
CREATE TABLE task(
  key TEXT PRIMARY KEY NOT NULL, text TEXT NOT NULL, name TEXT NOT NULL, flops REAL NOT NULL);
CREATE TABLE record(
  id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, task_key TEXT NOT NULL, device_key TEXT NOT NULL,
  threads INTEGER NOT NULL, flush_cache INTEGER NOT NULL, code_version INTEGER NOT NULL, trace TEXT NOT NULL,
  outcome TEXT NOT NULL, reason TEXT NOT NULL, seconds BLOB NOT NULL, best_seconds REAL,
  runs_per_repeat INTEGER NOT NULL, stopped_early INTEGER NOT NULL, build_seconds REAL NOT NULL,
  measure_seconds REAL NOT NULL, unix_ms INTEGER NOT NULL, note TEXT NOT NULL,
  why TEXT NOT NULL DEFAULT 'unstated', strategy TEXT NOT NULL DEFAULT '', sketch INTEGER,
  decisions TEXT NOT NULL DEFAULT '', disturbance REAL);
CREATE INDEX record_by_task ON record(task_key, device_key, threads, flush_cache, code_version, best_seconds);
)sql";

// Created when the first device is added.
inline constexpr const char* kDeviceSchema =
    "CREATE TABLE IF NOT EXISTS device(key TEXT PRIMARY KEY NOT NULL, json TEXT NOT NULL)";

// Created when the first profile is added. Files of schema version 3 may have it.
inline constexpr const char* kProfileSchema =
    "CREATE TABLE IF NOT EXISTS profile(record_key TEXT NOT NULL, profiler TEXT NOT NULL, counters TEXT NOT "
    "NULL, "
    "PRIMARY KEY(record_key, profiler))";

// Created when the first job is posted or the first worker joins. Files of schema version 4 have it.
inline constexpr const char* kFleetSchema =
    "CREATE TABLE job(id INTEGER PRIMARY KEY, " TENSORSMITH_JOB_COLUMNS ");" TENSORSMITH_FLEET_TABLES;
inline constexpr int kSchemaVersion = 5;
// Files from this version on are read as they are.
inline constexpr int kReadableSchemaVersion = 2;

// Schema 1 had a column `origin` instead of the candidate's columns; its text is parsed after this
// migration.
inline constexpr const char* kFrom1To2 = R"sql(
ALTER TABLE record RENAME COLUMN origin TO note;
ALTER TABLE record ADD COLUMN why TEXT NOT NULL DEFAULT 'unstated';
ALTER TABLE record ADD COLUMN strategy TEXT NOT NULL DEFAULT '';
ALTER TABLE record ADD COLUMN sketch INTEGER;
ALTER TABLE record ADD COLUMN decisions TEXT NOT NULL DEFAULT '';
)sql";
// Schemas 2 to 4 lack this column. They differ only in which tables a file may have.
inline constexpr const char* kFrom4To5 = "ALTER TABLE record ADD COLUMN disturbance REAL";

}  // namespace tensorsmith::record
