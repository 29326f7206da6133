// Limits: resources and visibility of a sandboxed program.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/errors/error.h"

namespace troupe::actors::sandbox {

/// namespaces: separate users, processes, mounts and network; the program sees system folders and
/// the files it was given, read-only, and an empty folder. limits: the same limits and seccomp
/// filter, and what Landlock restricts on this kernel, but the host's files are visible
/// (docs/security.md).
enum class Isolation { namespaces, limits };
constexpr std::array<std::string_view, 2> names_of(Isolation) {
  return {"namespaces", "limits"};
}

struct Limits {
  Isolation isolation = Isolation::namespaces;
  bool network = false;
  /// MiB of each process and, checked every 50 ms, of all processes together (census.h). A memory
  /// cgroup enforces it at every moment.
  int memory_mb = 512;
  /// MiB of address space of each process; 0: memory_mb. Some runtimes reserve far more than they
  /// use.
  int address_mb = 0;
  int processes = 16;      ///< maximum number of processes and threads
  int file_mb = 16;        ///< MiB of its folder; under limits, checked every 50 ms
  int cpu_seconds = 3600;  ///< processor time of all its processes over their lifetime
  /// Files and folders that it may read besides the system's.
  std::vector<std::string> read;
  /// Directory in which memory cgroups are created; empty: the cgroup of this process if it is
  /// delegated to it (memory_cgroup.h), otherwise none.
  std::string memory_cgroup;

  static void each_field(auto& self, auto&& field) {
    field("isolation", self.isolation);
    field("network", self.network);
    field("memory_mb", self.memory_mb);
    field("address_mb", self.address_mb);
    field("processes", self.processes);
    field("file_mb", self.file_mb);
    field("cpu_seconds", self.cpu_seconds);
    field("read", self.read);
    field("memory_cgroup", self.memory_cgroup);
  }
  Result<> validate(const std::string& where) const;
};

}  // namespace troupe::actors::sandbox
