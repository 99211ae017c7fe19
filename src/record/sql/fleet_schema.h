// The tables of fleets, except the id column of jobs; the types are PostgreSQL's, which SQLite
// accepts.
#pragma once

// state: "waiting", "taken", "done" or "failed". result: the record as a JSON line; for a failed
// job the reason.
#define TENSORSMITH_JOB_COLUMNS                                                                             \
  "key TEXT UNIQUE NOT NULL, recorded BIGINT NOT NULL, task_key TEXT NOT NULL, device_key TEXT NOT NULL, "  \
  "threads BIGINT NOT NULL, flush_cache BIGINT NOT NULL, code_version BIGINT NOT NULL, trace TEXT NOT "     \
  "NULL, "                                                                                                  \
  "note TEXT NOT NULL, why TEXT NOT NULL, strategy TEXT NOT NULL, sketch BIGINT, decisions TEXT NOT NULL, " \
  "protocol TEXT NOT NULL, best_seconds DOUBLE PRECISION NOT NULL, state TEXT NOT NULL DEFAULT 'waiting', " \
  "owner TEXT NOT NULL DEFAULT '', expires_ms BIGINT NOT NULL DEFAULT 0, attempts BIGINT NOT NULL DEFAULT " \
  "0, "                                                                                                     \
  "ended_ms BIGINT NOT NULL DEFAULT 0, result TEXT NOT NULL DEFAULT ''"
// state: "active", "ended" or "quarantined".
#define TENSORSMITH_FLEET_TABLES                                                                        \
  "CREATE INDEX job_by_device ON job(device_key, threads, state, id);"                                  \
  "CREATE TABLE worker(owner TEXT PRIMARY KEY NOT NULL, host TEXT NOT NULL, device_key TEXT NOT NULL, " \
  "threads BIGINT NOT NULL, started_ms BIGINT NOT NULL, seen_ms BIGINT NOT NULL, state TEXT NOT NULL, " \
  "reason TEXT NOT NULL);"
