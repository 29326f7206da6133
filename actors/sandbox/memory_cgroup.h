// Memory cgroups, where a subtree of the control groups is delegated to this process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/errors/error.h"

namespace troupe::actors::sandbox {

/// A directory of the cgroup file system in which groups with a limit on memory can be created.
struct CgroupParent {
  enum class Version { v1, v2 };
  Version version = Version::v2;
  std::string path;
};

/// The cgroup of this process if it is delegated to it: it has a memory controller, and its
/// directory belongs to this user, not root, or has the attribute user.delegate or trusted.delegate
/// that systemd sets for Delegate=yes. `mounts` and `groups`: /proc/self/mountinfo and
/// /proc/self/cgroup.
std::optional<CgroupParent> delegated_cgroup(const std::string& mounts, const std::string& groups);

/// The parent at `path`, a directory that somebody has set up for this purpose. Errc::not_found,
/// unsupported if it has no memory controller.
Result<CgroupParent> cgroup_parent_at(const std::string& path);

/// A control group with a limit on memory, including shared memory, tmpfs and kernel memory.
/// Removed by the destructor, when its processes have ended.
class MemoryCgroup {
 public:
  /// In a cgroup of version 2 it moves the processes of the parent into a child "troupe" first,
  /// because only a cgroup without processes can have limited children. Errc::io.
  static Result<MemoryCgroup> create(const CgroupParent& parent, const std::string& name,
                                     std::uint64_t limit_bytes);
  MemoryCgroup(MemoryCgroup&& other) noexcept;
  MemoryCgroup& operator=(MemoryCgroup&&) = delete;
  ~MemoryCgroup();

  /// Moves a process into the group. Errc::io.
  Result<> add(pid_t process) const;
  /// Whether the kernel has killed a process because the group exceeded its limit.
  bool exceeded() const;
  const std::string& path() const { return path_; }

 private:
  MemoryCgroup(CgroupParent::Version version, std::string path)
      : version_(version), path_(std::move(path)) {}

  CgroupParent::Version version_;
  std::string path_;
};

}  // namespace troupe::actors::sandbox
