// SandboxPlan: everything that a sandboxed process needs, prepared before it starts, because
// nothing may be allocated between fork and exec.
#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "actors/sandbox/limits.h"
#include "engine/base/errors/error.h"

namespace troupe::actors::sandbox {

/// A file or folder of the host that is visible to the program, at the same path.
struct Mount {
  enum class Kind { folder, file, device, link };
  Kind kind = Kind::folder;
  std::string from;  ///< source, seen from the root under construction; or the target of a link
  std::string to;    ///< destination
};

struct SandboxPlan {
  Limits limits;
  std::string program;  ///< absolute path
  /// The program's arguments; the first is its name. Files are absolute paths.
  std::vector<std::string> run;
  std::vector<std::string> environment;  ///< "NAME=value"; nothing is inherited
  std::vector<std::string> folders;      ///< created in the new root, parents first
  std::vector<Mount> mounts;
  std::string work_options;  ///< mount options of its working folder (tmpfs)
  /// Limit on the tasks of its user: a namespace counts its own; on the host, those that exist when
  /// the program starts are added.
  int processes = 0;
  std::vector<sock_filter> filter;  ///< seccomp filter
  bool zero_device = false;         ///< /dev/zero is visible: memory of its mappings is counted
  std::string temporary;            ///< directory for working folders under Isolation::limits
};

/// `run`: a program (a path, or a name looked up in PATH) and its arguments; no shell is involved.
/// An argument that names a file is given as an absolute path, and may be read. Errc::not_found,
/// also for the script of an interpreter that does not exist ([python3, reward.py]); usage. `where`
/// starts the message.
Result<SandboxPlan> make_plan(const std::vector<std::string>& run, const Limits& limits,
                              const std::string& where);

/// User id of programs when troupe runs as root: "nobody".
inline constexpr unsigned nobody = 65534;
/// Working directory under Isolation::namespaces: an empty folder that is removed with the process.
inline constexpr const char* work_folder = "/tmp/work";

}  // namespace troupe::actors::sandbox
