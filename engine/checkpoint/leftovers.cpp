#include "engine/checkpoint/leftovers.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "engine/base/files/environment_error.h"
#include "engine/base/files/file.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/checkpoint/output_file.h"
#include "engine/checkpoint/read_checkpoint.h"

namespace troupe::engine::checkpoint {
namespace {

namespace fs = std::filesystem;

std::optional<pid_t> process_in(std::string_view digits) {
  const auto pid = parse_number<pid_t>(digits);
  return pid && *pid >= 0 ? pid : std::nullopt;
}

// The process of ".tmp-checkpoint-STEP-PID", ".tmp-latest-PID", ".tmp-best-PID" and, of a regular
// file, "NAME.tmp-PID"; nullopt for any other name.
std::optional<pid_t> process_of(std::string_view name, bool regular) {
  for (const std::string_view link : {temporary_link_prefix, temporary_best_prefix})
    if (name.starts_with(link)) return process_in(name.substr(link.size()));
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view before = name.substr(0, dash), digits = name.substr(dash + 1);
  if (before.starts_with(temporary_prefix)) {
    const std::string_view step = before.substr(temporary_prefix.size());
    return step_of_name(cat("checkpoint-", step)) ? process_in(digits) : std::nullopt;
  }
  constexpr std::string_view suffix = ".tmp";
  const bool replaces = regular && before.size() > suffix.size() && before.ends_with(suffix);
  return replaces ? process_in(digits) : std::nullopt;
}

// "comm" of /proc/PID/stat, "" of a process that has ended: "PID (COMM) STATE ...".
std::string running_command(pid_t pid) {
  const std::string stat = read_proc_file(cat("/proc/", pid, "/stat"));
  const auto open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= stat.size())
    return "";
  const char state = stat[close + 2];
  return state == 'Z' || state == 'X' ? "" : stat.substr(open + 1, close - open - 1);
}

Result<> set_aside_and_remove(const std::string& output, std::int64_t step,
                              const std::function<Result<>(std::string_view)>& before) {
  const std::string path = cat(output, "/", name_of_step(step)),
                    aside = temporary_checkpoint(output, step);
  if (before) RETURN_IF_ERROR(before("set aside"));
  if (::rename(path.c_str(), aside.c_str()) != 0) return system_error(path, "set aside");
  if (before) RETURN_IF_ERROR(before("remove"));
  std::error_code failed;
  fs::remove_all(aside, failed);
  if (failed) return fail(os_error(failed.value(), cat(aside, ": cannot remove")));
  return {};
}

}  // namespace

bool may_be_writing(pid_t process) {
  if (process <= 0 || process == ::getpid()) return false;
  if (::kill(process, 0) != 0 && errno == ESRCH) return false;
  const std::string own = running_command(::getpid());
  // Helper processes are called "troupe-...". Without /proc: assume that it is one of ours.
  return own.empty() || running_command(process).starts_with(own);
}

std::string name_of_step(std::int64_t step) {
  return cat("checkpoint-", step);
}

std::string temporary_checkpoint(const std::string& output, std::int64_t step) {
  return cat(output, "/", temporary_prefix, step, "-", ::getpid());
}

Result<> remove_temporaries(const std::string& directory) {
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    const bool regular = fs::is_regular_file(at->symlink_status(failed));
    const auto process = process_of(at->path().filename().string(), regular);
    if (process && !may_be_writing(*process)) fs::remove_all(at->path(), failed);
    if (failed) break;
  }
  if (failed && failed != std::errc::no_such_file_or_directory)
    return fail(os_error(failed.value(), cat(directory, ": cannot remove temporary files")));
  return {};
}

Result<> remove_stale_versions(const std::string& output, std::int64_t replaced) {
  const std::string folder = cat(output, "/", versions_folder);
  std::error_code failed;
  if (!fs::is_directory(fs::symlink_status(folder, failed))) return {};
  std::vector<fs::path> stale;
  failed.clear();
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    const auto step = step_of_name(name);
    std::error_code ignored;
    if (step && (*step == replaced || !fs::exists(cat(output, "/", name), ignored)))
      stale.push_back(at->path());
  }
  for (const auto& each : stale)
    if (!failed) fs::remove_all(each, failed);
  if (failed) return fail(os_error(failed.value(), cat(folder, ": cannot remove old versions")));
  ::rmdir(folder.c_str());  // unless it has others
  return {};
}

Result<> prune_checkpoints(const std::string& output, const Kept& kept,
                           const std::function<Result<>(std::string_view step)>& before) {
  if (kept.last == 0) return {};
  std::vector<std::int64_t> older;
  std::error_code failed;
  for (fs::directory_iterator at(output, failed), end; !failed && at != end; at.increment(failed))
    if (const auto found = step_of_name(at->path().filename().string());
        found && *found < kept.newest && !at->is_symlink())
      older.push_back(*found);
  if (failed) return fail(os_error(failed.value(), cat(output, ": cannot list")));
  std::sort(older.rbegin(), older.rend());
  for (auto i = static_cast<std::size_t>(kept.last - 1); i < older.size(); ++i) {
    if (std::ranges::find(kept.steps, older[i]) != kept.steps.end()) continue;
    RETURN_IF_ERROR(set_aside_and_remove(output, older[i], before));
  }
  return {};
}

}  // namespace troupe::engine::checkpoint
