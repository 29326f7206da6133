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

// /proc/PID/stat, "42 (name) S parent group session ...": a name may hold anything, so what counts
// is behind the last parenthesis. Of that, words 0 to 2 are the state, the parent and the group,
// and word 21 the pages in memory.
Census::Census() {
  std::error_code failed;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string id = at->path().filename().string();
    if (!is_number(id)) continue;
    const std::string text = read_proc_file((at->path() / "stat").string());
    const auto name_end = text.rfind(')');
    if (name_end == text.npos) continue;  // it has ended meanwhile
    std::istringstream words(text.substr(name_end + 1));
    char state = 0;
    One one{static_cast<pid_t>(std::stol(id)), 0, 0, 0};
    words >> state >> one.parent >> one.group;
    std::string skipped;
    for (int word = 3; word < 21; ++word) words >> skipped;
    words >> one.pages;
    if (words && state != 'Z' && state != 'X') all_.push_back(one);
  }
}

std::uint64_t Census::memory(pid_t root) const {
  std::set<pid_t> tree{root};
  std::uint64_t pages = 0;
  for (std::size_t before = 0; before != tree.size();) {  // a child may stand before its parent
    before = tree.size();
    for (const One& one : all_)
      if (one.group == root || tree.count(one.parent) != 0) tree.insert(one.id);
  }
  for (const One& one : all_) pages += tree.count(one.id) != 0 ? one.pages : 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool Census::has_group(pid_t group) const {
  return std::any_of(all_.begin(), all_.end(), [&](const One& one) { return one.group == group; });
}

int tasks_of(unsigned user) {
  int tasks = 0;
  std::error_code failed, gone;
  for (fs::directory_iterator at("/proc", failed), end; !failed && at != end;
       at.increment(failed)) {
    struct stat about {};
    if (::stat((at->path() / "task").c_str(), &about) != 0 || about.st_uid != user) continue;
    tasks += static_cast<int>(about.st_nlink) - 2;  // a folder a task
  }
  return tasks;
}

Result<std::string> new_folder(unsigned user) {
  std::error_code failed;
  std::string path = (fs::temp_directory_path(failed) / "troupe-reward-XXXXXX").string();
  if (failed || ::mkdtemp(path.data()) == nullptr)
    return fail(Errc::io, cat("cannot make a folder like ", path, ": ",
                              std::strerror(failed ? failed.value() : errno)));
  if (::getuid() == 0 && ::chown(path.c_str(), user, user) != 0)
    return fail(Errc::io, cat("cannot give ", path, " to user ", user, ": ", std::strerror(errno)));
  return path;
}

}  // namespace troupe::actors::sandbox
