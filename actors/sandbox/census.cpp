#include "actors/sandbox/census.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string_view>

#include "actors/sandbox/seccomp_filter.h"
#include "engine/base/files/descriptor.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::actors::sandbox {
namespace {

namespace fs = std::filesystem;

// Longest list of mappings that is read: about 25,000 of them.
constexpr std::size_t max_list_bytes = 2 << 20;
constexpr std::uint64_t pipe_bytes = 64 << 10;
constexpr std::uint64_t block_bytes = 512;  // of stat()

struct Mapping {
  std::string_view range, access, device, inode;
};

// "55e0-55f0 rw-s 00000000 00:01 1234   /dev/zero (deleted)"
Mapping mapping_of(std::string_view line) {
  std::array<std::string_view, 5> words;
  for (auto& word : words) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
  }
  return {words[0], words[1], words[3], words[4]};
}

// The text of the file; `complete` is false if reading is denied or the text is too long.
std::string read_list(const std::string& path, bool& complete) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  complete = file.open() || (errno != EACCES && errno != EPERM);
  std::string out;
  std::array<char, 65536> bytes;
  while (file.open()) {
    const ssize_t count = ::read(file.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    out.append(bytes.data(), static_cast<std::size_t>(count));
    if (out.size() > max_list_bytes) {
      complete = false;
      break;
    }
  }
  return out;
}

void for_each_line(std::string_view text, auto&& use) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    use(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
}

// A shared mapping of this process without a file, to learn how the kernel names them.
class OwnMapping {
 public:
  OwnMapping() : memory_(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    bool complete = false;
    const std::string list = read_list("/proc/self/maps", complete);
    const auto start = reinterpret_cast<std::uintptr_t>(memory_);
    for_each_line(list, [&](std::string_view line) {
      const Mapping mapping = mapping_of(line);
      if (std::strtoull(std::string(mapping.range).c_str(), nullptr, 16) != start) return;
      device_ = mapping.device;
      struct stat about {};
      counted_ = ::stat(cat("/proc/self/map_files/", mapping.range).c_str(), &about) == 0;
    });
  }
  OwnMapping(const OwnMapping&) = delete;
  ~OwnMapping() { ::munmap(memory_, 4096); }
  const std::string& device() const { return device_; }
  bool counted() const { return counted_; }

 private:
  void* memory_;
  std::string device_;
  bool counted_ = false;
};

const OwnMapping& own_mapping() {
  static const OwnMapping mapping;
  return mapping;
}

std::uint64_t socket_bytes() {
  static const std::uint64_t bytes = [] {
    const std::string text = read_proc_file("/proc/sys/net/core/wmem_default");
    return text.empty() ? 212'992 : std::strtoull(text.c_str(), nullptr, 10);
  }();
  return bytes;
}

// Kilobytes of the line "NAME:  123 kB", in bytes.
std::uint64_t bytes_of_line(std::string_view status, std::string_view name) {
  const auto at = status.find(cat("\n", name, ":"));
  if (at == status.npos) return 0;
  return std::strtoull(std::string(status.substr(at + name.size() + 2, 24)).c_str(), nullptr, 10)
         << 10;
}

}  // namespace

bool counts_shared_mappings() {
  return own_mapping().counted();
}

void Census::add(pid_t process) {
  const std::string directory = cat("/proc/", process);
  const std::string status = read_proc_file(directory + "/status");
  for (const char* line : {"RssAnon", "VmSwap", "VmPTE"}) memory_ += bytes_of_line(status, line);
  add_mappings(directory);
  add_descriptors(directory);
}

void Census::add_mappings(const std::string& process) {
  bool complete = false;
  const std::string list = read_list(process + "/maps", complete);
  if (!complete) unreadable_ = true;
  for_each_line(list, [&](std::string_view line) {
    const Mapping mapping = mapping_of(line);
    const bool shared = mapping.device == own_mapping().device();
    const bool deleted = deleted_file_bytes_ != 0 && !shared && line.ends_with(" (deleted)");
    if ((!shared && !deleted) || mapping.inode == "0") return;
    if (!shared_.insert(cat(mapping.device, ":", mapping.inode)).second) return;
    struct stat about {};
    if (counts_shared_mappings() &&
        ::stat(cat(process, "/map_files/", mapping.range).c_str(), &about) == 0) {
      if (shared || deleted_.insert(about.st_ino).second)
        memory_ += static_cast<std::uint64_t>(about.st_blocks) * block_bytes;
    } else {
      memory_ += shared ? max_uncounted_mapping : deleted_file_bytes_;
    }
  });
}

void Census::add_descriptors(const std::string& process) {
  std::error_code failed;
  for (fs::directory_iterator at(process + "/fd", failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(at->path(), gone).string();
    const bool pipe = target.starts_with("pipe:"), socket = target.starts_with("socket:");
    if (pipe || socket) {
      if (pipes_and_sockets_.insert(target).second) memory_ += pipe ? pipe_bytes : socket_bytes();
      continue;
    }
    struct stat about {};
    if (deleted_file_bytes_ == 0 || !target.ends_with(" (deleted)") ||
        ::stat(at->path().c_str(), &about) != 0)
      continue;
    if (S_ISREG(about.st_mode) && about.st_nlink == 0 && deleted_.insert(about.st_ino).second)
      memory_ += static_cast<std::uint64_t>(about.st_blocks) * block_bytes;
  }
}

std::uint64_t bytes_in(const std::string& folder) {
  constexpr int max_files = 4096;
  constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = 0;
  int files = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    struct stat about {};
    if (++files > max_files) return unlimited;
    if (::lstat(at->path().c_str(), &about) == 0)
      bytes += static_cast<std::uint64_t>(about.st_blocks) * block_bytes;
  }
  return failed && failed != std::errc::no_such_file_or_directory ? unlimited : bytes;
}

}  // namespace troupe::actors::sandbox
