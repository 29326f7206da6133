# Writes `output`, a header with what `troupe --version` prints; leaves it alone where nothing has changed.
execute_process(COMMAND git -C ${source} rev-parse --short=10 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
else()
  execute_process(COMMAND git -C ${source} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit " with changes")
  endif()
endif()
set(text "// Written by cmake/version.cmake.
#pragma once

namespace troupe::launch {

inline constexpr char build_version[] = \"${version}\";
inline constexpr char build_commit[] = \"${commit}\";
inline constexpr char build_mpi[] = \"${mpi}\";
inline constexpr char build_arrow[] = \"${arrow}\";

}  // namespace troupe::launch
")
if(EXISTS ${output})
  file(READ ${output} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE ${output} "${text}")
endif()
