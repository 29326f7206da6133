// Plan: everything that a contained process needs, made before it starts: between fork and exec
// nothing may be allocated.
#pragma once

#include <linux/filter.h>

#include <string>
#include <vector>

#include "actors/sandbox/limits.h"
#include "engine/base/error.h"

namespace troupe::actors::sandbox {

/// Something of the host that the program will see, at the same path as outside.
struct Shown {
  enum class Kind { folder, file, device, link };
  Kind kind = Kind::folder;
  std::string from;  ///< where it is, seen from the root that is being built; the text of a link
  std::string to;    ///< where it will be
};

struct Plan {
  Limits limits;
  std::string program;  ///< absolute path
  std::vector<std::string>
      run;  ///< the program's arguments; the first is its name. Files are absolute paths.
  std::vector<std::string> environment;  ///< "NAME=value": nothing of ours
  std::vector<std::string> folders;      ///< made in the new root, parents first
  std::vector<Shown> shown;
  std::string work_options;  ///< of the memory file system that holds its folder
  int processes = 0;  ///< limit on tasks of its user: a namespace counts its own, a host counts all
                      ///< that there are already
  std::vector<sock_filter> filter;  ///< system calls that are answered with "not permitted"
};

/// `run`: a program (a path, or a name looked up in PATH) and its arguments; no shell is involved.
/// An argument that names a file is given as an absolute path, and may be read. Errc::not_found,
/// usage; `where` starts the message.
Result<Plan> make_plan(const std::vector<std::string>& run, const Limits& limits,
                       const std::string& where);

/// The user that programs run as where we are root: "nobody".
inline constexpr unsigned nobody = 65534;
/// Where a program starts under Isolation::namespaces: an empty folder of its own, gone with it.
inline constexpr const char* work_folder = "/tmp/work";

}  // namespace troupe::actors::sandbox
