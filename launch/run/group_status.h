// GroupStatus: what the processes of a launch do, as `status.json` in the run's directory. launch
// writes it about every second; `troupe status` and `troupe info` read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/errors/error.h"
#include "engine/base/json/json.h"

namespace troupe::launch::run {

inline constexpr const char* status_file = "status.json";

/// One group of processes, or the controller.
struct GroupStatus {
  std::string node, role;
  std::int64_t pid = 0;       ///< of its first process; mpirun's in a group of several ranks
  std::string state;          ///< "starting", "works", "waits", "lost", "exited"
  std::int64_t restarts = 0;  ///< processes that took the place of a lost one
  std::optional<std::uint64_t> version;  ///< of a rollout's weights; none before the first
  std::int64_t queue = 0;                ///< requests that it has not answered
  std::int64_t leased = 0;               ///< samples of a rollout that have not arrived
  std::string waits_for;                 ///< the oldest of them, or what it waits for
  double seconds = 0;                    ///< since when
};

struct RunStatus {
  double time = 0;           ///< seconds since 1970
  std::int64_t process = 0;  ///< of the controller
  std::vector<GroupStatus> groups;
};

Json to_json(const RunStatus& status);
/// Errc::bad_input; `where` is the file in messages.
Result<RunStatus> status_of(const Json& json, const std::string& where);
/// That of the directory of a run; nullopt if there is none, as for a run without groups.
/// Errc::bad_input, io.
Result<std::optional<RunStatus>> read_status(const std::string& folder);

/// A line for each group, below a line of titles.
std::string status_table(const RunStatus& status);

}  // namespace troupe::launch::run
