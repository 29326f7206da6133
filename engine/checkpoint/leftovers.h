// Leftovers of killed runs in an output directory: temporary files of dead processes, and
// checkpoints that should have been removed. The caller holds the lock of the directory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::engine::checkpoint {

inline constexpr std::string_view temporary_prefix = ".tmp-checkpoint-",
                                  temporary_link_prefix = ".tmp-latest-",
                                  temporary_best_prefix = ".tmp-best-";

/// The name of a checkpoint's folder: "checkpoint-120".
std::string name_of_step(std::int64_t step);
/// OUTPUT/.tmp-checkpoint-STEP-PID of this process.
std::string temporary_checkpoint(const std::string& output, std::int64_t step);

/// False if `process` has ended, or runs another program by now (its name does not begin with that
/// of this program): process ids are used again. False for this process itself, which is not
/// writing anything while it looks for leftovers.
bool may_be_writing(pid_t process);

/// Removes .tmp-checkpoint-STEP-PID, .tmp-latest-PID, .tmp-best-PID and regular files NAME.tmp-PID
/// in `directory`, unless PID is another running process of this program: an orphan of a launch
/// that was killed may need a moment to end. Nothing else is removed. Does nothing if the directory
/// is missing. Errc::io.
Result<> remove_temporaries(const std::string& directory);

/// The folder of the files that checkpoints of version 0.1.0 need besides their own:
/// OUTPUT/versions has a folder of the checkpoint's name for each.
inline constexpr std::string_view versions_folder = "versions";

/// Removes the folders in OUTPUT/versions whose checkpoint is gone or is that of step `replaced`
/// (-1: none), and that folder itself once it is empty. Links are not followed. Errc::io.
Result<> remove_stale_versions(const std::string& output, std::int64_t replaced = -1);

/// Which checkpoints stay.
struct Kept {
  std::int64_t newest = 0;  ///< newer ones are not touched
  int last = 0;             ///< number of newest ones, that of `newest` included; 0: all
  std::vector<std::int64_t> steps = {};  ///< stay as well
};
/// Removes the other checkpoints. Each is renamed to a temporary name before it is removed, so that
/// a partly removed one is never mistaken for a damaged one. `before` is called with the name of
/// each step, for tests. Errc::io.
Result<> prune_checkpoints(const std::string& output, const Kept& kept,
                           const std::function<Result<>(std::string_view step)>& before = {});

}  // namespace troupe::engine::checkpoint
