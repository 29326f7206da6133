// What a program of somebody else may use while it works for us.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"

namespace troupe::actors::sandbox {

/// namespaces: its own users, processes, mounts and network; it sees system folders and what it was
/// given, read-only, and an empty folder. limits: the same limits and forbidden system calls, but
/// it sees the host's files: a guard against accidents, not against malice.
enum class Isolation { namespaces, limits };
constexpr std::array<std::string_view, 2> names_of(Isolation) {
  return {"namespaces", "limits"};
}

struct Limits {
  Isolation isolation = Isolation::namespaces;
  bool network = false;
  int memory_mb = 512;     ///< MiB, of each process and, as seen every 50 ms while an answer is
                           ///< awaited, of all together
  int address_mb = 0;      ///< MiB of address space of each process; 0: memory_mb. Some languages
                           ///< reserve far more than they use.
  int processes = 16;      ///< processes and threads at once
  int file_mb = 16;        ///< MiB: its folder (namespaces), each file (limits)
  int cpu_seconds = 3600;  ///< of each process, over its whole life
  std::vector<std::string> read;  ///< files and folders that it may read beside the system's;
                                  ///< absolute paths, or from the working directory

  static void each_field(auto& self, auto&& field) {
    field("isolation", self.isolation), field("network", self.network),
        field("memory_mb", self.memory_mb), field("address_mb", self.address_mb),
        field("processes", self.processes), field("file_mb", self.file_mb),
        field("cpu_seconds", self.cpu_seconds), field("read", self.read);
  }
  Result<> validate(const std::string& where) const;
};

}  // namespace troupe::actors::sandbox
