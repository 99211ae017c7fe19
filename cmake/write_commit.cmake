# cmake -DSOURCE=DIR -DOUTPUT=FILE -P write_commit.cmake: writes a header with the commit of the sources and its date.
# If the sources are no git checkout, the commit is "" and the date is today (or SOURCE_DATE_EPOCH).
set(commit "")
string(TIMESTAMP date "%Y-%m-%d" UTC)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT} -C ${SOURCE} log -1 --format=%cs OUTPUT_VARIABLE committed
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(committed)
    set(date ${committed})
  endif()
endif()
file(WRITE ${OUTPUT} "#pragma once\n#define TENSORSMITH_COMMIT \"${commit}\"\n#define TENSORSMITH_DATE \"${date}\"\n")
