# How a folder under src/ becomes a library and its tests. Included once by the top CMakeLists.txt.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)

set(VARVE_SANITIZE "" CACHE STRING "Value for -fsanitize=, for example address,undefined")
option(VARVE_FUZZ "Build x_fuzz.cc files as libFuzzer programs" OFF)
# A third of a cold build. Tests only in the preset dev: there a file of the product that includes too little is found out.
set(VARVE_PRECOMPILED_HEADERS OFF CACHE STRING "Who reads the headers that most include only once: OFF, TESTS or ALL")

# Dev: quick to compile, still fast enough for thousands of simulated seeds.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
set(CMAKE_C_FLAGS_DEV "-O1 -g1")
set(CMAKE_EXE_LINKER_FLAGS_DEV "")
# Release keeps CHECK (base/check.h does not depend on NDEBUG) and line tables for crash reports.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Werror -Wno-gnu-statement-expression
                    -fno-omit-frame-pointer)
add_link_options(-fuse-ld=mold)

find_program(VARVE_CCACHE ccache)
if(VARVE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${VARVE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${VARVE_CCACHE}")
  if(VARVE_PRECOMPILED_HEADERS)  # ccache keeps nothing that was compiled with them otherwise
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${VARVE_CCACHE}")
  endif()
endif()

if(VARVE_SANITIZE)
  # The vptr check opens a pipe to look at memory, and calls every object broken while a test has no descriptors left;
  # what it would find is found by AddressSanitizer too.
  add_compile_options(-fsanitize=${VARVE_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${VARVE_SANITIZE})
endif()
# What tells a fuzzer which code an input has reached: -fsanitize=fuzzer-no-link by its parts, as that name itself would
# forbid to share precompiled headers with what has none of it.
set(VARVE_FUZZ_OPTIONS -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table -fno-builtin-memcmp
                       -fno-builtin-bcmp)

if(VARVE_TESTS)
  enable_testing()
  include(GoogleTest)
  find_package(GTest REQUIRED)
  find_package(benchmark QUIET)
endif()

# Without a time in them ccache can keep what was compiled with them.
set(VARVE_PRECOMPILED_OPTIONS "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
# varve_precompile(<target> LIBRARY|TEST): lets the target use the precompiled headers of its kind, which the first
# module, src/base, makes (it has found fmt).
function(varve_precompile target kind)
  if(NOT VARVE_PRECOMPILED_HEADERS OR (kind STREQUAL "LIBRARY" AND NOT VARVE_PRECOMPILED_HEADERS STREQUAL "ALL"))
    return()
  endif()
  set(owner "varve_precompiled_${kind}")
  if(NOT TARGET ${owner})
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${owner}.cc" CONTENT "")
    add_library(${owner} OBJECT "${PROJECT_BINARY_DIR}/${owner}.cc")
    target_precompile_headers(${owner} PRIVATE
      <algorithm> <array> <coroutine> <expected> <functional> <map> <memory> <optional> <set> <span> <string>
      <string_view> <utility> <variant> <vector> <fmt/format.h>)
    target_link_libraries(${owner} PRIVATE fmt::fmt)
    target_compile_options(${owner} PRIVATE ${VARVE_PRECOMPILED_OPTIONS})
    if(kind STREQUAL "TEST")
      target_link_libraries(${owner} PRIVATE GTest::gmock)
      target_precompile_headers(${owner} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
      target_compile_options(${owner} PRIVATE ${VARVE_TEST_OPTIONS})
    endif()
  endif()
  target_compile_options(${target} PRIVATE ${VARVE_PRECOMPILED_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()

# What tests test is optimized, they are not: their own code runs once, and compiles in half the time.
set(VARVE_TEST_OPTIONS -O0)

# varve_module(<name> [DEPS <targets>] [TEST_DEPS <targets>] [SOURCES <generated sources>])
#
# Makes the library varve_<name> from the .cc files of the current folder (not of its subfolders), and from
# the files beside them, told apart by suffix: one test program <name>_test from all x_test.cc, one libFuzzer
# program per x_fuzz.cc (preset asan; the library counts then what is reached in it), one benchmark program per
# x_bench.cc.
# DEPS are the only libraries it may use; the order of folders is checked by tools/tidy.py.
function(varve_module name)
  cmake_parse_arguments(ARG "" "" "DEPS;TEST_DEPS;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cc")
  set(tests ${sources})
  set(fuzzers ${sources})
  set(benches ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  list(APPEND sources ${ARG_SOURCES})

  if(sources)
    add_library(varve_${name} STATIC ${sources})
    target_include_directories(varve_${name} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/src")
    target_link_libraries(varve_${name} PUBLIC ${ARG_DEPS})
    if(VARVE_FUZZ AND fuzzers)
      target_compile_options(varve_${name} PRIVATE ${VARVE_FUZZ_OPTIONS})
    endif()
    varve_precompile(varve_${name} LIBRARY)
  else()
    add_library(varve_${name} INTERFACE)
    target_include_directories(varve_${name} INTERFACE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/src")
    target_link_libraries(varve_${name} INTERFACE ${ARG_DEPS})
  endif()

  if(NOT VARVE_TESTS)
    return()
  endif()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE varve_${name} ${ARG_TEST_DEPS} GTest::gmock GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE ${VARVE_TEST_OPTIONS})
    varve_precompile(${name}_test TEST)
    # Tests read format pages and golden files by their path in the tree.
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
                         WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTIES TIMEOUT 300)
  endif()
  if(VARVE_FUZZ)
    foreach(file ${fuzzers})
      get_filename_component(program "${file}" NAME_WE)
      add_executable(${name}_${program} "${file}")
      target_compile_options(${name}_${program} PRIVATE ${VARVE_FUZZ_OPTIONS})
      target_link_libraries(${name}_${program} PRIVATE varve_${name} ${ARG_TEST_DEPS} -fsanitize=fuzzer)
    endforeach()
  endif()
  if(benchmark_FOUND AND NOT VARVE_SANITIZE)
    foreach(file ${benches})
      get_filename_component(program "${file}" NAME_WE)
      add_executable(${name}_${program} EXCLUDE_FROM_ALL "${file}")
      target_link_libraries(${name}_${program} PRIVATE varve_${name} ${ARG_TEST_DEPS} benchmark::benchmark_main)
    endforeach()
  endif()
endfunction()
