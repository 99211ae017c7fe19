// The tables of a record database on a PostgreSQL server.
#pragma once

#include <cstddef>
#include <iterator>

#include "record/sql/fleet_schema.h"

namespace tensorsmith::record {

// Element i upgrades a database from schema version i to i + 1; an element never changes after its
// release. The columns are those of SQLite's tables (sqlite/schema.h), so that both engines use the
// same queries.
inline constexpr const char* kMigrations[] = {
    R"sql(
CREATE TABLE task(
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT UNIQUE NOT NULL, text TEXT NOT NULL,
  name TEXT NOT NULL, flops DOUBLE PRECISION NOT NULL);
CREATE TABLE device(
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT UNIQUE NOT NULL, json TEXT NOT NULL);
CREATE TABLE record(
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key TEXT UNIQUE NOT NULL, task_key TEXT NOT NULL,
  device_key TEXT NOT NULL, threads BIGINT NOT NULL, flush_cache BIGINT NOT NULL, code_version BIGINT NOT NULL,
  trace TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, seconds BYTEA NOT NULL,
  best_seconds DOUBLE PRECISION, runs_per_repeat BIGINT NOT NULL, stopped_early BIGINT NOT NULL,
  build_seconds DOUBLE PRECISION NOT NULL, measure_seconds DOUBLE PRECISION NOT NULL, unix_ms BIGINT NOT NULL,
  note TEXT NOT NULL, why TEXT NOT NULL, strategy TEXT NOT NULL, sketch BIGINT, decisions TEXT NOT NULL);
CREATE INDEX record_by_task ON record(task_key, device_key, threads, flush_cache, code_version, best_seconds);
CREATE TABLE profile(
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, record_key TEXT NOT NULL, profiler TEXT NOT NULL,
  counters TEXT NOT NULL, UNIQUE(record_key, profiler));
)sql",
    "CREATE TABLE job(id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, " TENSORSMITH_JOB_COLUMNS
    ");" TENSORSMITH_FLEET_TABLES,
    "ALTER TABLE record ADD COLUMN disturbance DOUBLE PRECISION"};
inline constexpr int kPostgresqlVersion = std::size(kMigrations);

}  // namespace tensorsmith::record
