# Helpers every folder uses: sluice_library, sluice_executable, sluice_test. Sources are listed,
# never globbed.

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SLUICE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${SLUICE_CCACHE})
endif()

add_library(sluice_flags INTERFACE)
target_include_directories(sluice_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(SLUICE_NATIVE)
  target_compile_options(sluice_flags INTERFACE -march=native)
else()
  target_compile_options(sluice_flags INTERFACE -march=x86-64-v3)
endif()
if(SLUICE_SANITIZE STREQUAL "address")
  target_compile_options(sluice_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer
                                                -fno-sanitize-recover=undefined)
  target_link_options(sluice_flags INTERFACE -fsanitize=address,undefined)
elseif(SLUICE_SANITIZE STREQUAL "thread")
  # protobuf's map field has one more member where this macro is set, but not in Debian's library.
  target_compile_options(sluice_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer
                                                -U__SANITIZE_THREAD__)
  target_link_options(sluice_flags INTERFACE -fsanitize=thread)
endif()
if(SLUICE_FUZZ)
  target_compile_options(sluice_flags INTERFACE -fsanitize=fuzzer-no-link)  # coverage for libFuzzer
  target_link_options(sluice_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_link_libraries(sluice_flags INTERFACE Threads::Threads)

add_library(sluice_warnings INTERFACE)
target_compile_options(sluice_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                 -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # As in g++, whose -Wconversion leaves this out in C++.
  target_compile_options(sluice_warnings INTERFACE -Wno-sign-conversion)
endif()
if(NOT SLUICE_SANITIZE STREQUAL "" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Instrumented code hides initialisations from gcc 12, which then warns of std::optional.
  target_compile_options(sluice_warnings INTERFACE -Wno-maybe-uninitialized)
endif()

# The control side of a daemon allocates and frees whole cluster states: with jemalloc a full snapshot
# takes about a quarter less (bench/change). Sanitizers bring an allocator of their own.
add_library(sluice_malloc INTERFACE)
if(SLUICE_SANITIZE STREQUAL "")
  pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
  target_link_libraries(sluice_malloc INTERFACE PkgConfig::JEMALLOC)
endif()

# sluice_library(name SOURCES a.cc ... DEPS lib ...)   a static library with our flags
function(sluice_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC sluice_flags ${ARG_DEPS} PRIVATE sluice_warnings)
endfunction()

function(sluice_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE sluice_flags sluice_warnings ${ARG_DEPS})
endfunction()

# What a sanitizer run builds: every test binary, or those with the label "threads".
add_custom_target(sluice_tests)
add_custom_target(sluice_thread_tests)

# sluice_test(name SOURCES a_test.cc ... DEPS lib ... [LABELS ...])   one GoogleTest binary in ctest.
# All have the label "gtest". Label "threads": the tests start threads of their own, so they also run under ThreadSanitizer.
function(sluice_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE sluice_flags sluice_warnings ${ARG_DEPS} GTest::gmock_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  if(NOT SLUICE_SANITIZE STREQUAL "")
    # The checks are the same; matchers take half as long to compile. What is tested keeps its -O1.
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(SLUICE_SANITIZE STREQUAL "address" AND NOT name MATCHES "pipeline|core|dpdk|bench|fuzz")
    # A third of the time to compile; what is tested keeps them. Tests of the data plane instantiate
    # its templates, and are what is tested.
    target_compile_options(${name} PRIVATE -fno-sanitize=null,alignment,vptr)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  add_dependencies(sluice_tests ${name})
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(sluice_thread_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "gtest;${ARG_LABELS}")
endfunction()

# DPDK by pkg-config without its own -march (it would come last and win) and without its -l list of
# PMDs: drivers are plugins, loaded from their directory at run time.
function(sluice_find_dpdk)
  if(TARGET sluice_dpdk_headers)
    return()
  endif()
  pkg_check_modules(DPDK REQUIRED libdpdk>=22.11)
  set(flags ${DPDK_CFLAGS_OTHER})
  list(FILTER flags EXCLUDE REGEX "^-march=")
  add_library(sluice_dpdk_headers INTERFACE)
  target_include_directories(sluice_dpdk_headers SYSTEM INTERFACE ${DPDK_INCLUDE_DIRS})
  target_compile_options(sluice_dpdk_headers INTERFACE ${flags})
  target_link_libraries(sluice_dpdk_headers INTERFACE ${DPDK_LINK_LIBRARIES})
endfunction()
