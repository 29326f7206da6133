#include "actors/sandbox/process_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include "engine/base/file.h"
#include "engine/base/text.h"

namespace troupe::actors::sandbox {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

// Parses /proc/PID/stat, "42 (name) S parent group session ...". A name may contain any character,
// so the fields are read after the last parenthesis: fields 0 to 2 are the state, the parent and
// the group, and field 21 is the number of resident pages.
ProcessSnapshot::ProcessSnapshot() {
  std::error_code failed;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string id = at->path().filename().string();
    if (!is_number(id)) continue;
    const std::string text = read_proc_file((at->path() / "stat").string());
    const auto name_end = text.rfind(')');
    if (name_end == text.npos) continue;  // the process has ended
    std::istringstream fields(text.substr(name_end + 1));
    char state = 0;
    Entry entry{static_cast<pid_t>(std::stol(id)), 0, 0, 0};
    fields >> state >> entry.parent >> entry.group;
    std::string skipped;
    for (int field = 3; field < 21; ++field) fields >> skipped;
    fields >> entry.pages;
    if (fields && state != 'Z' && state != 'X') processes_.push_back(entry);
  }
}

std::uint64_t ProcessSnapshot::memory(pid_t root) const {
  std::set<pid_t> tree{root};
  std::uint64_t pages = 0;
  for (std::size_t before = 0; before != tree.size();) {  // a child may precede its parent
    before = tree.size();
    for (const Entry& entry : processes_)
      if (entry.group == root || tree.count(entry.parent) != 0) tree.insert(entry.id);
  }
  for (const Entry& entry : processes_) pages += tree.count(entry.id) != 0 ? entry.pages : 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool ProcessSnapshot::has_process_group(pid_t group) const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [&](const Entry& entry) { return entry.group == group; });
}

int tasks_of(unsigned user) {
  int tasks = 0;
  std::error_code failed, gone;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    struct stat about {};
    if (::stat((at->path() / "task").c_str(), &about) != 0 || about.st_uid != user) continue;
    tasks += static_cast<int>(about.st_nlink) - 2;  // one folder per task
  }
  return tasks;
}

Result<std::string> make_temp_folder(unsigned user) {
  std::error_code failed;
  std::string path =
      (fs::temp_directory_path(failed) / cat(temp_folder_prefix, ::getpid(), "-XXXXXX")).string();
  if (failed || ::mkdtemp(path.data()) == nullptr)
    return fail(Errc::io, cat("cannot create a folder like ", path, ": ",
                              std::strerror(failed ? failed.value() : errno)));
  if (::getuid() == 0 && ::chown(path.c_str(), user, user) != 0)
    return fail(Errc::io, cat("cannot change the owner of ", path, " to user ", user, ": ",
                              std::strerror(errno)));
  return path;
}

}  // namespace troupe::actors::sandbox
