#include "actors/sandbox/memory_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include "engine/base/files/descriptor.h"
#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe::actors::sandbox {
namespace {

using Version = CgroupParent::Version;

// One write, because the kernel takes each write as one value.
Result<> write_value(const std::string& path, const std::string& value) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.open() &&
      ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size()))
    return {};
  return fail(Errc::io,
              cat("cannot write ", quote(value), " to ", path, ": ", std::strerror(errno)));
}

bool has_word(const std::string& text, const std::string& word) {
  std::istringstream words(text);
  for (std::string each; words >> each;)
    if (each == word) return true;
  return false;
}

// Value of "name N" in a file of such lines.
std::uint64_t counter(const std::string& path, const std::string& name) {
  std::istringstream words(read_proc_file(path));
  std::uint64_t value = 0;
  for (std::string key; words >> key >> value;)
    if (key == name) return value;
  return 0;
}

bool has_attribute(const std::string& path, const char* name) {
  char value = 0;
  return ::getxattr(path.c_str(), name, &value, 1) == 1 && value == '1';
}

bool is_delegated(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || ::access(path.c_str(), W_OK) != 0) return false;
  return (about.st_uid == ::geteuid() && ::geteuid() != 0) ||
         has_attribute(path, "user.delegate") || has_attribute(path, "trusted.delegate");
}

// The line "ID:controllers:PATH" of /proc/self/cgroup; version 2 has the id 0 and no controllers.
std::string group_of(const std::string& groups, Version version) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    for (char& c : controllers) c = c == ',' ? ' ' : c;
    if (version == Version::v2 ? line.starts_with("0::") : has_word(controllers, "memory"))
      return line.substr(second + 1);
  }
  return "";
}

// Of a line of mountinfo(5): "36 35 98:0 ROOT POINT options [optional fields] - TYPE source
// options".
std::string directory_in(const std::string& line, const std::string& groups, Version version) {
  std::istringstream words(line);
  std::string word, root, point, type, source, options;
  for (int i = 0; i < 3; ++i) words >> word;
  words >> root >> point;
  while (words >> word && word != "-") continue;
  words >> type >> source >> options;
  for (char& c : options) c = c == ',' ? ' ' : c;
  const bool fits =
      version == Version::v2 ? type == "cgroup2" : type == "cgroup" && has_word(options, "memory");
  std::string group = group_of(groups, version);
  if (!fits || group.empty()) return "";
  if (root != "/" && group.starts_with(root)) group.erase(0, root.size());
  return group == "/" ? point : point + group;
}

Result<> enable_memory(const std::string& parent) {
  const std::string switches = parent + "/cgroup.subtree_control";
  if (has_word(read_proc_file(switches), "memory")) return {};
  const std::string processes = read_proc_file(parent + "/cgroup.procs");
  if (!processes.empty()) {
    const std::string inner = parent + "/troupe";
    if (::mkdir(inner.c_str(), 0755) != 0 && errno != EEXIST)
      return fail(Errc::io, cat("cannot create ", inner, ": ", std::strerror(errno)));
    std::istringstream ids(processes);
    for (std::string id; ids >> id;) RETURN_IF_ERROR(write_value(inner + "/cgroup.procs", id));
  }
  return write_value(switches, "+memory");
}

}  // namespace

std::optional<CgroupParent> delegated_cgroup(const std::string& mounts, const std::string& groups) {
  for (const Version version : {Version::v2, Version::v1}) {
    std::istringstream lines(mounts);
    for (std::string line; std::getline(lines, line);) {
      const std::string path = directory_in(line, groups, version);
      if (path.empty() || !is_delegated(path)) continue;
      if (auto parent = cgroup_parent_at(path)) return *parent;
    }
  }
  return std::nullopt;
}

Result<CgroupParent> cgroup_parent_at(const std::string& path) {
  if (::access((path + "/cgroup.controllers").c_str(), R_OK) == 0) {
    if (has_word(read_proc_file(path + "/cgroup.controllers"), "memory"))
      return CgroupParent{Version::v2, path};
    return fail(Errc::unsupported, cat(path, ": this cgroup has no memory controller"));
  }
  if (::access((path + "/memory.limit_in_bytes").c_str(), R_OK) == 0)
    return CgroupParent{Version::v1, path};
  return fail(Errc::not_found, cat(path,
                                   ": expected a directory of a cgroup file system with a "
                                   "memory controller"));
}

Result<MemoryCgroup> MemoryCgroup::create(const CgroupParent& parent, const std::string& name,
                                          std::uint64_t limit_bytes) {
  if (parent.version == Version::v2) RETURN_IF_ERROR(enable_memory(parent.path));
  MemoryCgroup group(parent.version, parent.path + "/" + name);
  if (::mkdir(group.path_.c_str(), 0755) != 0)
    return fail(Errc::io,
                cat("cannot create the cgroup ", group.path_, ": ", std::strerror(errno)));
  const std::string limit = std::to_string(limit_bytes);
  if (parent.version == Version::v2) {
    RETURN_IF_ERROR(write_value(group.path_ + "/memory.max", limit));
    // Missing without swap accounting.
    (void)write_value(group.path_ + "/memory.swap.max", "0");
    (void)write_value(group.path_ + "/memory.oom.group", "1");
    return group;
  }
  RETURN_IF_ERROR(write_value(group.path_ + "/memory.limit_in_bytes", limit));
  (void)write_value(group.path_ + "/memory.memsw.limit_in_bytes", limit);
  (void)write_value(group.path_ + "/memory.swappiness", "0");
  return group;
}

MemoryCgroup::MemoryCgroup(MemoryCgroup&& other) noexcept
    : version_(other.version_), path_(std::exchange(other.path_, "")) {
}

MemoryCgroup::~MemoryCgroup() {
  // The kernel releases the last process of a group shortly after its end.
  for (int ms = 0; !path_.empty() && ::rmdir(path_.c_str()) != 0 && errno == EBUSY && ms < 500;
       ++ms)
    ::usleep(1000);
}

Result<> MemoryCgroup::add(pid_t process) const {
  return write_value(path_ + "/cgroup.procs", std::to_string(process));
}

bool MemoryCgroup::exceeded() const {
  return version_ == Version::v2 ? counter(path_ + "/memory.events", "oom_kill") > 0
                                 : counter(path_ + "/memory.oom_control", "oom_kill") > 0;
}

}  // namespace troupe::actors::sandbox
