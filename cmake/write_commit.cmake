# cmake -DSOURCE=DIR -DOUTPUT=FILE -P write_commit.cmake: a header with the commit of the sources, "" where they are no
# checkout.
set(commit "")
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(WRITE ${OUTPUT} "#pragma once\n#define TENSORSMITH_COMMIT \"${commit}\"\n")
