#include "actors/sandbox/plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <utility>

#include "actors/sandbox/census.h"
#include "actors/sandbox/memory_cgroup.h"
#include "actors/sandbox/seccomp_filter.h"
#include "engine/base/text/text.h"

namespace troupe::actors::sandbox {
namespace {

namespace fs = std::filesystem;

// Programs and libraries of the system, and the files of /etc that programs need to start.
constexpr const char* system_folders[] = {"/usr",   "/bin",    "/sbin", "/lib",      "/lib32",
                                          "/lib64", "/libx32", "/opt",  "/nix/store"};
constexpr const char* system_files[] = {"/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives"};
// Debian keeps the files of /usr/lib/jvm/java-N-openjdk/conf in /etc/java-N-openjdk.
constexpr std::string_view java_folder = "java-";
constexpr const char* network_files[] = {"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf",
                                         "/etc/ssl", "/etc/ca-certificates"};
constexpr const char* devices[] = {"/dev/null", "/dev/full", "/dev/random", "/dev/urandom"};
// Mappings of this device hold memory like shared mappings without a file, of any size.
constexpr const char* zero_device = "/dev/zero";

bool inside(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

class View {
 public:
  explicit View(SandboxPlan& plan) : plan_(plan) {}

  // Adds a mount for a path that exists and is not inside a mounted folder.
  void show(const fs::path& given) {
    std::error_code failed;
    const fs::path path = fs::absolute(given).lexically_normal();
    if (covered(path) || !fs::exists(path, failed)) return;
    if (!shown_.insert(path.string()).second) return;  // a mounted file is read-only
    const fs::path real = fs::canonical(path, failed);
    if (failed) return;
    const bool folder = fs::is_directory(real, failed);
    make_folders(folder ? path : path.parent_path());
    plan_.mounts.push_back({folder ? Mount::Kind::folder : Mount::Kind::file,
                            "/old" + real.string(), "/new" + path.string()});
    if (folder) folders_.push_back(path);
  }
  // /bin is a link to usr/bin on most systems.
  void show_system(const fs::path& path) {
    std::error_code failed;
    if (fs::is_symlink(path, failed) && path.parent_path() == "/") {
      plan_.mounts.push_back(
          {Mount::Kind::link, fs::read_symlink(path, failed).string(), "/new" + path.string()});
      folders_.push_back(path);
    } else {
      show(path);
    }
  }
  void show_devices() {
    make_folders("/dev");
    for (const char* device : devices) show_device(device);
    if (plan_.zero_device) show_device(zero_device);
    plan_.mounts.push_back({Mount::Kind::link, "/proc/self/fd", "/new/dev/fd"});
    plan_.mounts.push_back({Mount::Kind::link, "/proc/self/fd/0", "/new/dev/stdin"});
    plan_.mounts.push_back({Mount::Kind::link, "/proc/self/fd/1", "/new/dev/stdout"});
    plan_.mounts.push_back({Mount::Kind::link, "/proc/self/fd/2", "/new/dev/stderr"});
  }
  void make_folders(const fs::path& path) {
    fs::path so_far = "/";
    for (const auto& part : path.relative_path()) {
      so_far /= part;
      if (!covered(so_far) && made_.insert(so_far.string()).second)
        plan_.folders.push_back("/new" + so_far.string());
    }
  }
  bool covered(const fs::path& path) const {
    return std::any_of(folders_.begin(), folders_.end(),
                       [&](const fs::path& folder) { return inside(path, folder); });
  }

 private:
  void show_device(const char* device) {
    plan_.mounts.push_back({Mount::Kind::device, cat("/old", device), cat("/new", device)});
  }

  SandboxPlan& plan_;
  std::vector<fs::path> folders_;
  std::set<std::string> made_, shown_;
};

bool runs(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::vector<fs::path> candidates(const std::string& name) {
  if (name.find('/') != name.npos) return {fs::absolute(name).lexically_normal()};
  std::vector<fs::path> out;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty()) out.push_back(fs::absolute(fs::path(folder) / name).lexically_normal());
  return out;
}

// Returns the first candidate that is visible in the sandbox; PATH may contain folders that are
// not.
Result<std::string> find_program(const std::string& name, const View& view,
                                 const std::string& where) {
  std::vector<std::string> tried, hidden;
  for (const fs::path& path : candidates(name)) {
    tried.push_back(path.string());
    if (!runs(path)) continue;
    if (name.find('/') != name.npos || view.covered(path)) return path.string();
    hidden.push_back(path.string());
  }
  if (!hidden.empty())
    return fail(Errc::not_found, cat(where, ": ", quote(name), " is ", join(hidden, ", "),
                                     ", which is not visible in the sandbox: list its folder under "
                                     "\"read\" or use a program of the system"));
  return fail(Errc::not_found, cat(where, ": no program ", quote(name), " that may be run; tried ",
                                   join(tried, ", ")));
}

// Mounts a file that the command names and returns its absolute path.
std::string argument(const std::string& word, View& view) {
  std::error_code ignored;
  if (word.empty() || !fs::exists(word, ignored) || word == "." || word == ".." || word == "/")
    return word;
  view.show(word);
  return fs::absolute(word).lexically_normal().string();
}

// The first argument that is a script by its name, unless the program is given as text (-c, -e,
// -m).
const std::string* script_of(const std::vector<std::string>& run) {
  constexpr std::string_view types[] = {".py", ".sh", ".pl", ".rb", ".js", ".mjs", ".lua", ".R"};
  for (std::size_t i = 1; i < run.size(); ++i) {
    if (run[i] == "-c" || run[i] == "-e" || run[i] == "-m") return nullptr;
    const bool plain = !run[i].starts_with('-') && run[i].find_first_of(" \n") == run[i].npos;
    const std::string type = fs::path(run[i]).extension().string();
    if (plain && std::find(std::begin(types), std::end(types), type) != std::end(types))
      return &run[i];
  }
  return nullptr;
}

Result<> check_script(const std::vector<std::string>& run, const std::string& where) {
  std::error_code failed;
  const std::string* script = script_of(run);
  if (script == nullptr || fs::exists(*script, failed)) return {};
  const bool relative = fs::path(*script).is_relative();
  return fail(Errc::not_found,
              cat(where, ".run: no file ", quote(*script, 400),
                  relative ? cat(" in ", fs::current_path(failed).string()) : std::string()));
}

void show_system(View& view, const Limits& limits) {
  for (const char* folder : system_folders) view.show_system(folder);
  for (const char* file : system_files) view.show(file);
  std::error_code failed;
  for (fs::directory_iterator at("/etc", failed), end; !failed && at != end; at.increment(failed))
    if (at->path().filename().string().starts_with(java_folder)) view.show(at->path());
  if (limits.network)
    for (const char* file : network_files) view.show(file);
  view.make_folders("/proc");
  view.make_folders("/tmp");
  view.make_folders("/dev/shm");
  view.show_devices();
}

// HOME and TMPDIR are those of namespaces; with `limits` their folder is created at the start.
std::vector<std::string> environment() {
  return {"PATH=/usr/local/bin:/usr/bin:/bin",
          "LANG=C.UTF-8",
          cat("HOME=", work_folder),
          cat("TMPDIR=", work_folder),
          "PYTHONHASHSEED=0",    // the order of sets is part of an answer
          "PYTHONUNBUFFERED=1",  // a print() that waits for more would be a timeout
          "PYTHONDONTWRITEBYTECODE=1",
          "OMP_NUM_THREADS=1"};
}

}  // namespace

Result<> Limits::validate(const std::string& where) const {
  const auto between = [&](const char* name, int value, int low, int high) -> Result<> {
    if (low <= value && value <= high) return {};
    return fail(Errc::usage,
                cat(where, ".", name, " = ", value, ": must be between ", low, " and ", high));
  };
  for (const auto& valid :
       {between("memory_mb", memory_mb, 16, 1 << 20), between("address_mb", address_mb, 0, 1 << 24),
        between("processes", processes, 1, 4096), between("file_mb", file_mb, 1, 1 << 16),
        between("cpu_seconds", cpu_seconds, 1, 1 << 24)})
    if (!valid) return valid;
  if (address_mb != 0 && address_mb < memory_mb)
    return fail(Errc::usage, cat(where, ".address_mb = ", address_mb,
                                 ": must be 0 or at least memory_mb, which is ", memory_mb));
  return {};
}

Result<SandboxPlan> make_plan(const std::vector<std::string>& run, const Limits& limits,
                              const std::string& where) {
  if (run.empty() || run[0].empty())
    return fail(Errc::usage, cat(where, ": expected a program and its arguments, found none"));
  RETURN_IF_ERROR(check_script(run, where));
  SandboxPlan plan;
  plan.limits = limits;
  plan.zero_device = counts_shared_mappings();
  View view(plan);
  show_system(view, limits);
  std::error_code ignored;
  if (!limits.memory_cgroup.empty()) {
    if (auto parent = cgroup_parent_at(limits.memory_cgroup); !parent)
      return fail(parent.error().code, cat(where, ".memory_cgroup: ", parent.error().what));
  }
  for (const std::string& path : limits.read) {
    if (!fs::exists(path, ignored))
      return fail(Errc::not_found,
                  cat(where, ": no file or folder ", quote(path, 400), " that \"read\" names"));
    view.show(path);
  }
  auto program = find_program(run[0], view, where);
  RETURN_IF_ERROR(program);
  plan.program = std::move(*program);
  view.show(plan.program);
  plan.run.push_back(run[0]);
  for (std::size_t i = 1; i < run.size(); ++i) plan.run.push_back(argument(run[i], view));
  plan.environment = environment();
  plan.work_options = cat("mode=1777,nr_inodes=4096,size=", limits.file_mb, "m");
  plan.processes = limits.processes;
  auto filter = make_filter(limits, counts_shared_mappings());
  RETURN_IF_ERROR(filter);
  plan.filter = std::move(*filter);
  plan.temporary = fs::temp_directory_path(ignored).string();
  return plan;
}

}  // namespace troupe::actors::sandbox
