// Census: what the processes of a sandbox use, measured from outside.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/base/processes/process_tree.h"

namespace troupe::actors::sandbox {

/// Whether this process can read how much memory a shared mapping without a file holds
/// (/proc/PID/map_files, which needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE). Otherwise each
/// counts as max_uncounted_mapping (seccomp_filter.h).
bool counts_shared_mappings();

/// Bytes of memory of some processes:
/// - private memory of each process, in memory or swapped out, and its page tables;
/// - shared mappings without a file, once for each inode: no resident size shows pages that are
///   not mapped at the moment;
/// - the buffers of pipes and sockets, each as large as it can become;
/// - regular files that are deleted and still open or mapped, if `deleted_file_bytes`, which is the
///   largest size of one, is not 0.
class Census {
 public:
  explicit Census(std::uint64_t deleted_file_bytes) : deleted_file_bytes_(deleted_file_bytes) {}

  void add(pid_t process);
  std::uint64_t memory() const { return memory_; }
  /// Whether a process did not let its mappings be read, or has too many of them to be counted.
  bool unreadable() const { return unreadable_; }

 private:
  void add_mappings(const std::string& process);
  void add_descriptors(const std::string& process);

  std::uint64_t deleted_file_bytes_;
  bool unreadable_ = false;
  std::uint64_t memory_ = 0;
  std::set<std::string> shared_, pipes_and_sockets_;
  std::set<std::uint64_t> deleted_;
};

/// Bytes of the files in a folder. More than 4,096 of them, and a folder that cannot be read, count
/// as unlimited.
std::uint64_t bytes_in(const std::string& folder);

}  // namespace troupe::actors::sandbox
