# What every library, test and benchmark of the tree shares: warnings, sanitizers, ccache, and three short verbs.
find_package(Threads REQUIRED)
find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TROUPE_CCACHE})
endif()

add_library(troupe_flags INTERFACE)
target_include_directories(troupe_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(troupe_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Werror)
# std::stable_sort of libstdc++ 12 calls functions that C++17 deprecated, and clang warns at every use.
target_compile_options(troupe_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
target_link_libraries(troupe_flags INTERFACE Threads::Threads)
if(TROUPE_SANITIZE)
  # g++ warns falsely of uninitialised variables in code that sanitizers have changed; its own manual says so (-fsanitize=address).
  target_compile_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()

# Hardening of every library, program and module (docs/security.md; tests/install examines what was built). Sanitizers replace it.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
set(TROUPE_HARDENED ON)
if(TROUPE_SANITIZE OR TROUPE_FUZZ)
  set(TROUPE_HARDENED OFF)
endif()
function(troupe_harden target scope)
  target_link_options(${target} ${scope} -Wl,-z,relro,-z,now,-z,noexecstack)
  if(TROUPE_HARDENED)
    # Other builds are not optimized, without which glibc refuses _FORTIFY_SOURCE by a warning.
    target_compile_options(${target} ${scope} -fstack-protector-strong $<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3>)
  endif()
endfunction()
troupe_harden(troupe_flags INTERFACE)

if(TROUPE_FUZZ)
  target_compile_options(troupe_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(troupe_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Unity builds compile the sources of one target together, in batches, so that headers are parsed once per batch. File-local names
# are therefore distinct within a target. CMake compiles sources with COMPILE_OPTIONS of their own (kernels per instruction set) separately.
set(troupe_plain_targets troupe_benchmark_support troupe_launch_journal) # whose file-local names still collide
function(troupe_unity target)
  if(target IN_LIST troupe_plain_targets)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TROUPE_UNITY} UNITY_BUILD_BATCH_SIZE ${TROUPE_UNITY_BATCH})
endfunction()
if(TROUPE_UNITY)
  # g++ takes every type of an included .cpp for one of a header; the build without unity keeps this warning.
  target_compile_options(troupe_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  # clang compares local names with those of every file of the batch; g++ and the build without unity keep this warning.
  target_compile_options(troupe_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow>)
endif()

# troupe_library(engine_nn SOURCES a.cpp b.cpp LINKS troupe_engine_ops PRIVATE_LINKS Eigen3::Eigen)
# makes the static library troupe_engine_nn. LINKS are seen by users of its headers, PRIVATE_LINKS (third parties) are not.
function(troupe_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(troupe_${name} STATIC ${ARG_SOURCES})
  troupe_unity(troupe_${name})
  target_link_libraries(troupe_${name} PUBLIC troupe_flags ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
endfunction()

# troupe_rpath(troupe "$ORIGIN/../lib/troupe"): where the dynamic linker searches for the target's libraries, in the build tree as in the
# installation. CMake ends an RPATH that it has to replace when it installs with ":", and an empty element names the current folder.
function(troupe_rpath target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${ARGN}")
endfunction()

# A module of shared libraries that the program loads from beside itself (engine/base/environment/module.h): its own libraries lie beside it or in FOLDERS.
function(troupe_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;FOLDERS" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE troupe_flags troupe_engine_base ${ARG_LINKS})
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  troupe_rpath(${name} "$ORIGIN" ${ARG_FOLDERS})
endfunction()

# After the flags of the tree, which they change.
add_library(troupe_test_flags INTERFACE)
if(TROUPE_UNITY)
  # A local variable may have the name of another file's helper; the build without unity keeps this warning.
  target_compile_options(troupe_test_flags INTERFACE -Wno-shadow)
endif()

add_library(troupe_unoptimized INTERFACE)
target_compile_options(troupe_unoptimized INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O0> $<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE>)

# troupe_test(engine_nn SOURCES a_test.cpp LINKS troupe_engine_nn LABELS golden): one program per folder and one ctest test per program,
# or SHARDS of them that ctest runs side by side. TIMEOUT in seconds.
function(troupe_test name)
  cmake_parse_arguments(ARG "OPTIMIZED" "TIMEOUT;SHARDS" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 1800)
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  troupe_unity(${name}_test)
  # A file that replaces operator new is compiled alone: g++ must not see its malloc beside another file's delete.
  foreach(source IN LISTS ARG_SOURCES)
    if(source MATCHES "allocations[.]cpp$")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  # What a test computes itself is little: compiling it fast matters more. OPTIMIZED: its oracles have loops of their own.
  target_link_libraries(${name}_test PRIVATE troupe_flags ${ARG_LINKS} GTest::gtest GTest::gmock troupe_test_main troupe_test_flags)
  if(NOT ARG_OPTIMIZED)
    target_link_libraries(${name}_test PRIVATE troupe_unoptimized)
  endif()
  target_compile_definitions(${name}_test PRIVATE TROUPE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}.${shard} COMMAND ${name}_test)
    set_tests_properties(${name}.${shard} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
