#include "actors/sandbox/landlock.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "engine/base/files/descriptor.h"

namespace troupe::actors::sandbox {
namespace {

// linux/landlock.h of Debian 12 has version 3; these values are part of the kernel's interface.
constexpr long create_ruleset_call = 444, add_rule_call = 445, restrict_self_call = 446;
constexpr unsigned version_flag = 1;
constexpr int path_beneath_rule = 1;

struct RulesetAttributes {
  std::uint64_t files, network, scoped;
};
struct __attribute__((packed)) PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};

constexpr std::uint64_t fs_execute = 1 << 0, fs_write_file = 1 << 1, fs_read_file = 1 << 2,
                        fs_read_dir = 1 << 3, fs_truncate = 1 << 14;
constexpr std::uint64_t version_1_files = (1 << 13) - 1, fs_refer = 1 << 13,
                        fs_ioctl_device = 1 << 15;
constexpr std::uint64_t bind_and_connect_tcp = 3, abstract_sockets_and_signals = 3;

std::uint64_t handled_files(int version) {
  return version_1_files | (version >= 2 ? fs_refer : 0) | (version >= 3 ? fs_truncate : 0) |
         (version >= 5 ? fs_ioctl_device : 0);
}

// A path that does not exist or cannot be opened remains forbidden.
bool allow_beneath(int rules, const std::string& path, std::uint64_t rights) {
  const Descriptor opened(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat about {};
  if (!opened.open() || ::fstat(opened.get(), &about) != 0) return true;
  if (!S_ISDIR(about.st_mode)) rights &= fs_execute | fs_write_file | fs_read_file | fs_truncate;
  const PathBeneath rule{rights, opened.get()};
  return ::syscall(add_rule_call, rules, path_beneath_rule, &rule, 0) == 0;
}

bool allow_visible_files(int rules) {
  DIR* root = ::opendir("/");
  bool done = root != nullptr;
  while (const dirent* entry = done ? ::readdir(root) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && name != "dev")
      done = allow_beneath(rules, "/" + std::string(name), fs_execute | fs_read_file | fs_read_dir);
  }
  if (root != nullptr) ::closedir(root);
  return done && allow_beneath(rules, "/", fs_read_dir);
}

bool allow_devices(int rules, std::uint64_t handled, bool zero) {
  for (const char* name : {"/dev/null", "/dev/full"})
    if (!allow_beneath(rules, name, (fs_read_file | fs_write_file | fs_truncate) & handled))
      return false;
  for (const char* name : {"/dev/random", "/dev/urandom"})
    if (!allow_beneath(rules, name, fs_read_file)) return false;
  return !zero || allow_beneath(rules, "/dev/zero", fs_read_file);
}

}  // namespace

int landlock_version() {
  const long version = ::syscall(create_ruleset_call, nullptr, 0, version_flag);
  return static_cast<int>(std::max(version, 0L));
}

bool restrict_with_landlock(const FileAccess& access) {
  const int version = landlock_version();
  if (version == 0) return true;
  RulesetAttributes attributes{handled_files(version), 0, 0};
  if (version >= 4 && !access.network) attributes.network = bind_and_connect_tcp;
  if (version >= 6) attributes.scoped = abstract_sockets_and_signals;
  const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const Descriptor rules(static_cast<int>(::syscall(create_ruleset_call, &attributes, size, 0)));
  return rules.open() && allow_visible_files(rules.get()) &&
         allow_devices(rules.get(), attributes.files, access.zero_device) &&
         allow_beneath(rules.get(), access.folder, attributes.files) &&
         ::syscall(restrict_self_call, rules.get(), 0) == 0;
}

}  // namespace troupe::actors::sandbox
