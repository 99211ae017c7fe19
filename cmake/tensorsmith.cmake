# Build rules shared by all libraries. A library of src/ is called a room; its folder has the room's name.

add_library(tensorsmith_options INTERFACE)
# -Wno-psabi: turns off GCC's notes on calling conventions that changed between its versions, which concern no user.
target_compile_options(tensorsmith_options INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor
  -Wno-missing-field-initializers -Wno-psabi)
# A failed check names its source file relative to the repository, independent of the build folder.
target_compile_options(tensorsmith_options INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(TENSORSMITH_UNITY)
  # A file sees the names in the anonymous namespaces of earlier files in its batch, so these two warnings only make
  # sense for files that are compiled alone.
  target_compile_options(tensorsmith_options INTERFACE "$<$<CXX_COMPILER_ID:GNU>:-Wshadow=local;-Wno-subobject-linkage>")
else()
  target_compile_options(tensorsmith_options INTERFACE -Wshadow)
endif()
if(TENSORSMITH_WERROR)
  target_compile_options(tensorsmith_options INTERFACE -Werror)
endif()
if(TENSORSMITH_SANITIZE)
  target_compile_options(tensorsmith_options INTERFACE -fsanitize=${TENSORSMITH_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all $<$<BOOL:$<TARGET_PROPERTY:TENSORSMITH_CALLS_KERNELS>>:-fno-sanitize=function>)
  target_link_options(tensorsmith_options INTERFACE -fsanitize=${TENSORSMITH_SANITIZE})
endif()
# tensorsmith_calls_kernels(TARGET): TARGET calls compiled kernels. They have no type signature before their first
# instruction, but Clang's undefined-behaviour sanitizer would read one.
function(tensorsmith_calls_kernels target)
  if(TENSORSMITH_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    set_target_properties(${target} PROPERTIES TENSORSMITH_CALLS_KERNELS ON)
  endif()
endfunction()
if(TENSORSMITH_FUZZ)
  target_compile_options(tensorsmith_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=all)
  target_link_options(tensorsmith_options INTERFACE -fsanitize=address,undefined)
endif()
find_program(TENSORSMITH_LLD NAMES ld.lld ld.lld-19)
find_program(TENSORSMITH_MOLD NAMES mold)
if(TENSORSMITH_MOLD)
  target_link_options(tensorsmith_options INTERFACE -fuse-ld=mold)
endif()

# Each compilation parses headers and compiles their templates anew, so this many files of a library are compiled together.
set(TENSORSMITH_UNITY_BATCH 24 CACHE STRING "Source files of a room that are compiled together, with TENSORSMITH_UNITY")
# tensorsmith_in_batches(TARGET SIZE)
function(tensorsmith_in_batches target size)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TENSORSMITH_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# tensorsmith_room(NAME SOURCES a.cc ... [DEPS other rooms and libraries] [PRIVATE_DEPS libraries hidden from users])
# Adds a static library for the room. Headers are included as "room/file.h".
function(tensorsmith_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  set(target tensorsmith_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  # The batches of a room have equal sizes, since a last one of a few files would parse all headers for them alone.
  list(LENGTH ARG_SOURCES count)
  math(EXPR batches "(${count} + ${TENSORSMITH_UNITY_BATCH} / 2) / ${TENSORSMITH_UNITY_BATCH}")
  if(batches EQUAL 0)
    set(batches 1)
  endif()
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  tensorsmith_in_batches(${target} ${size})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE tensorsmith_options ${ARG_PRIVATE_DEPS})
  if(TENSORSMITH_PCH)
    target_precompile_headers(${target} PRIVATE <algorithm> <cstdint> <functional> <map> <memory> <optional> <string>
      <unordered_map> <utility> <variant> <vector>)
  endif()
endfunction()

# The tests in a folder of tests/ are one program, FOLDER_tests, so that they are compiled in batches and linked once.
# Each ctest entry runs the tests defined in its own sources: FOLDER_tests --sources=a_test.cc
# (tests/support/main.cc).
#
# tensorsmith_test_program(PROGRAM DEPS libraries): adds the program.
function(tensorsmith_test_program program)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${program} ${PROJECT_SOURCE_DIR}/tests/support/main.cc)
  tensorsmith_in_batches(${program} 12)
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${program} PRIVATE TENSORSMITH_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    TENSORSMITH_TEST_MODELS="${TENSORSMITH_TEST_MODELS}")
  target_link_libraries(${program} PRIVATE tensorsmith_options ${ARG_DEPS} GTest::gmock GTest::gtest)
endfunction()

# tensorsmith_test_sources(NAME SOURCES a.cc ... [PROGRAM p]): adds the sources of the ctest entry NAME to their
# program.
function(tensorsmith_test_sources name)
  cmake_parse_arguments(ARG "" "PROGRAM" "SOURCES" ${ARGN})
  if(NOT ARG_PROGRAM)
    get_filename_component(ARG_PROGRAM ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    string(APPEND ARG_PROGRAM _tests)
  endif()
  get_target_property(present ${ARG_PROGRAM} SOURCES)
  set(paths)
  foreach(source ${ARG_SOURCES})
    get_filename_component(path ${source} ABSOLUTE)
    if(NOT path IN_LIST present)
      target_sources(${ARG_PROGRAM} PRIVATE ${path})
    endif()
    if(path MATCHES "_test[.]cc$")
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR}/tests ${path})
      list(APPEND paths ${path})
    endif()
  endforeach()
  list(JOIN paths "," paths)
  set_property(GLOBAL PROPERTY TENSORSMITH_COMMAND_OF_${name} ${ARG_PROGRAM} --sources=${paths})
endfunction()

# tensorsmith_test_entry(ENTRY NAME [ARGUMENTS ...]): adds a ctest entry that runs the tests in NAME's sources.
function(tensorsmith_test_entry entry name)
  get_property(command GLOBAL PROPERTY TENSORSMITH_COMMAND_OF_${name})
  add_test(NAME ${entry} COMMAND ${command} ${ARGN})
endfunction()

# tensorsmith_test(NAME SOURCES a.cc ... [LABELS l] [TIMEOUT s] [PROGRAM p])
# Adds the sources to their program, and a ctest entry NAME that runs the GoogleTest tests in them.
function(tensorsmith_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS" ${ARGN})
  tensorsmith_test_sources(${name} ${ARG_UNPARSED_ARGUMENTS})
  tensorsmith_test_entry(${name} ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(TENSORSMITH_SANITIZE)  # takes up to ten times as long
    math(EXPR ARG_TIMEOUT "10 * ${ARG_TIMEOUT}")
  endif()
  # ctest reports an entry as skipped if all of its tests were skipped. If some tests failed, their list follows the
  # list of the skipped ones, so the expression does not match.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
    SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests[.](\n\\[  SKIPPED \\][^\n]*)+[\n]*$")
endfunction()

# tensorsmith_isa_test(NAME SOURCES a.cc ... [TIMEOUT s])
# Adds a test that runs code on the local_devices() of codegen_test_support, as one ctest entry for each instruction
# set, NAME.ISA. An entry is "Skipped" if the processor lacks the instruction set.
set(TENSORSMITH_TEST_ISAS sse4.2 avx avx2 avxvnni avx512 avx512vnni avx512bf16 amx)  # tests/codegen/isas.cc
function(tensorsmith_isa_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "" ${ARGN})
  tensorsmith_test_sources(${name} ${ARG_UNPARSED_ARGUMENTS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(seed 0)
  foreach(isa ${TENSORSMITH_TEST_ISAS})
    tensorsmith_test_entry(${name}.${isa} ${name})
    # Each instruction set gets fewer random cases, and different ones.
    set_tests_properties(${name}.${isa} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "isa"
      SKIP_REGULAR_EXPRESSION "this processor has no ${isa}"
      ENVIRONMENT "TENSORSMITH_TEST_ISA=${isa};TENSORSMITH_PROPERTY_SEED=${seed};TENSORSMITH_PROPERTY_COUNT=150")
    math(EXPR seed "${seed} + 1000")
  endforeach()
endfunction()
# tensorsmith_on_c(NAME): adds an entry NAME.c for a test of codegen_test_support, which runs its kernels through the
# C backend. The suites LlvmCode, which inspect LLVM's code, are left out.
function(tensorsmith_on_c name)
  tensorsmith_test_entry(${name}.c ${name} --gtest_filter=-LlvmCode.*)
  set_tests_properties(${name}.c PROPERTIES TIMEOUT 600 LABELS "c"
    ENVIRONMENT "TENSORSMITH_TEST_BACKEND=c;TENSORSMITH_PROPERTY_SEED=50000;TENSORSMITH_PROPERTY_COUNT=100")
endfunction()
# tensorsmith_on_oclgrind(NAME [ARGUMENTS ...]): adds an entry NAME.oclgrind for a test that runs OpenCL kernels. They
# run on Oclgrind, which detects data races and accesses outside of buffers that PoCL's order of work-items can hide.
find_file(TENSORSMITH_OCLGRIND liboclgrind-rt-icd.so PATHS /usr/lib/oclgrind /usr/lib/x86_64-linux-gnu/oclgrind
  /usr/lib/aarch64-linux-gnu/oclgrind)
function(tensorsmith_on_oclgrind name)
  if(NOT TENSORSMITH_OCLGRIND OR TENSORSMITH_SANITIZE)
    return()
  endif()
  tensorsmith_test_entry(${name}.oclgrind ${name} ${ARGN})
  set_tests_properties(${name}.oclgrind PROPERTIES TIMEOUT 600 LABELS "oclgrind"
    FAIL_REGULAR_EXPRESSION "data race|Invalid read|Invalid write|Work-group divergence"
    # With optimization, Oclgrind's compiler emits an intrinsic that Oclgrind cannot run (llvm.assume).
    ENVIRONMENT "OCL_ICD_VENDORS=${TENSORSMITH_OCLGRIND};OCLGRIND_DATA_RACES=1;OCLGRIND_BUILD_OPTIONS=-cl-opt-disable")
endfunction()
