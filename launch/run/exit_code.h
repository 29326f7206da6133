// Exit codes of the process, by kind of failure, so that scripts can distinguish a usage error from
// a full disk.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "engine/base/errors/error.h"

namespace troupe::launch::run {

/// One of exit_codes. 1 is never used: shells and sanitizers return it.
int exit_code(Errc code);

inline constexpr int exit_usage = 2;
inline constexpr int exit_process_died = 11;
inline constexpr int exit_divergent = 12;
inline constexpr int exit_restarts = 13;
inline constexpr int exit_fenced = 14;
inline constexpr int exit_parity = 15;
inline constexpr int exit_internal = 70;
inline constexpr int exit_interrupted = 130;

/// What each exit code means, as in docs/operations.md.
inline constexpr std::array<std::pair<int, std::string_view>, 17> exit_codes{{
    {exit_usage,
     "usage: an unknown option or key; contradictory settings; resuming with another model"},
    {3, "bad input: more invalid data rows than allowed; rows whose columns fit no layout"},
    {4, "not found: a missing file or directory"},
    {5, "corrupt: a file that does not match its format or checksum"},
    {6, "unsupported: an unsupported model family"},
    {7,
     "io: a full disk, missing permission, too many open files, a file that was truncated while it "
     "was read"},
    {8, "timeout: a deadline passed"},
    {9, "closed: an actor has stopped"},
    {10, "full: out of memory or threads, or a bounded queue or cache is too small"},
    {exit_process_died,
     "a process of troupe launch exited, or a reward program failed; run the same command "
     "again to resume"},
    {exit_divergent, "troupe launch: two processes returned different results for one sample"},
    {exit_restarts,
     "troupe launch: a role lost more processes than recovery.restarts within recovery.window"},
    {exit_fenced,
     "a process of troupe launch that was taken for lost and was replaced: it is refused; launch "
     "continues"},
    {exit_parity, "troupe parity: two paths differ by more than is promised"},
    {exit_internal, "internal error; please report it"},
    {exit_interrupted, "interrupted by a signal, after a checkpoint or before the first step"},
    {141, "SIGPIPE: the reader of a command's output has exited (| head); no message"},
}};

}  // namespace troupe::launch::run
