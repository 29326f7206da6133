#include "engine/base/processes/process_tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

std::vector<pid_t> numbers_in(const std::string& directory) {
  std::vector<pid_t> out;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed))
    if (const std::string name = at->path().filename().string(); is_number(name))
      out.push_back(static_cast<pid_t>(std::stol(name)));
  return out;
}

// Parses /proc/PID/stat, "42 (name) S parent group session ...". A name may contain any character,
// so the fields are read after the last parenthesis: fields 0 to 2 are the state, the parent and
// the group, and fields 11 to 14 are the processor times of the process and of its children.
std::optional<ProcessEntry> entry_of(pid_t id) {
  const std::string text = read_proc_file(cat("/proc/", id, "/stat"));
  const auto name_end = text.rfind(')');
  if (name_end == text.npos) return std::nullopt;  // the process has ended
  std::istringstream fields(text.substr(name_end + 1));
  char state = 0;
  ProcessEntry entry{id, 0, 0, false, 0};
  fields >> state >> entry.parent >> entry.group;
  std::string skipped;
  for (int field = 3; field < 11; ++field) fields >> skipped;
  for (std::uint64_t ticks = 0, i = 0; i < 4 && fields >> ticks; ++i) entry.ticks += ticks;
  entry.ended = state == 'Z' || state == 'X';
  if (!fields) return std::nullopt;
  return entry;
}

// The children of each thread (CONFIG_PROC_CHILDREN).
std::vector<pid_t> children_of(pid_t id) {
  std::vector<pid_t> out;
  const std::string threads = cat("/proc/", id, "/task");
  for (const pid_t thread : numbers_in(threads)) {
    std::istringstream ids(read_proc_file(cat(threads, "/", thread, "/children")));
    for (pid_t child = 0; ids >> child;) out.push_back(child);
  }
  return out;
}

// For kernels without lists of children.
std::vector<ProcessEntry> descendants_by_parent() {
  std::vector<ProcessEntry> all, out;
  for (const pid_t id : numbers_in("/proc"))
    if (const auto entry = entry_of(id)) all.push_back(*entry);
  std::set<pid_t> known{::getpid()};
  for (std::size_t before = 0; before != known.size();) {  // a child may precede its parent
    before = known.size();
    for (const ProcessEntry& entry : all)
      if (known.contains(entry.parent) && known.insert(entry.id).second) out.push_back(entry);
  }
  return out;
}

}  // namespace

std::vector<ProcessEntry> descendants() {
  static const bool has_lists =
      ::access(cat("/proc/self/task/", ::getpid(), "/children").c_str(), R_OK) == 0;
  if (!has_lists) return descendants_by_parent();
  std::vector<ProcessEntry> out;
  std::vector<pid_t> waiting = children_of(::getpid());
  while (!waiting.empty()) {
    const pid_t id = waiting.back();
    waiting.pop_back();
    const auto entry = entry_of(id);
    if (!entry) continue;
    out.push_back(*entry);
    if (entry->ended) continue;
    const auto children = children_of(id);
    waiting.insert(waiting.end(), children.begin(), children.end());
  }
  return out;
}

std::vector<ProcessEntry> members_of(pid_t leader, const std::vector<ProcessEntry>& processes) {
  std::vector<ProcessEntry> out;
  std::set<pid_t> ids{leader};
  for (const ProcessEntry& entry : processes) {
    if (entry.id != leader && entry.group != leader && !ids.contains(entry.parent)) continue;
    ids.insert(entry.id);
    out.push_back(entry);
  }
  return out;
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

}  // namespace troupe
