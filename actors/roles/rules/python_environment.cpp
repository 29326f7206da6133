#include "actors/roles/rules/python_environment.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "engine/base/descriptor.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace troupe::actors::rules {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds max_wait{30};
constexpr std::size_t max_output_bytes = 1 << 20;
constexpr int max_links = 16;
// An empty entry of sys.path is the current folder, which the function does not run in.
constexpr const char* question =
    "import json, os, sys\n"
    "assert sys.version_info >= (3, 8), 'Python 3.8 or newer is needed'\n"
    "print(json.dumps({'program': os.path.abspath(sys.executable),\n"
    "  'folders': [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],\n"
    "  'search': [os.path.abspath(p) for p in sys.path if p and os.path.exists(p)]}))\n";

/// A child and the pipe of what it writes.
struct Child {
  pid_t id = -1;
  Descriptor output;
};

Result<Child> spawn(const std::string& name, const std::string& where) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(Errc::io, cat(where, ": cannot make a pipe: ", std::strerror(errno)));
  Child child{-1, Descriptor(ends[0])};
  const Descriptor theirs(ends[1]);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  for (const int stream : {1, 2}) ::posix_spawn_file_actions_adddup2(&files, theirs.get(), stream);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::array<std::string, 3> words{name, "-c", question};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  const int error =
      ::posix_spawnp(&child.id, name.c_str(), &files, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) return child;
  return fail(Errc::not_found,
              cat(where, ".python: ", quote(name), " cannot be started: ", std::strerror(error),
                  "; expected a Python interpreter, such as python3 or the bin/python of a "
                  "virtual environment"));
}

/// All that it writes until it closes its output. False at the deadline.
bool read_all(int output, std::string& into) {
  const auto deadline = Clock::now() + max_wait;
  std::array<char, 4096> bytes;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd one{output, POLLIN, 0};
    const int ready = left <= 0 ? 0 : ::poll(&one, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = ::read(output, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    if (into.size() < max_output_bytes) into.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

/// What the interpreter prints, and whether it ended with exit code 0 in time.
Result<std::string> ask(const std::string& name, const std::string& where) {
  const auto child = spawn(name, where);
  RETURN_IF_ERROR(child);
  std::string output;
  const bool in_time = read_all(child->output.get(), output);
  ::kill(-child->id, SIGKILL);
  int status = 0;
  while (::waitpid(child->id, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    return fail(Errc::usage, cat(where, ".python: ", quote(name), " did not end within ",
                                 max_wait.count(), " s; expected a Python interpreter"));
  return output;
}

std::vector<std::string> texts_in(const Json& map, std::string_view name) {
  std::vector<std::string> out;
  const Json* list = map.find(name);
  if (list == nullptr || !list->is_array()) return out;
  for (const Json& each : list->array())
    if (each.is_string() && each.string() != "/") out.push_back(each.string());
  return out;
}

/// The links that lead from a program to its file: a sandbox must have each of them.
std::vector<std::string> links_of(fs::path path) {
  std::vector<std::string> out;
  std::error_code ignored;
  for (int i = 0; i < max_links && fs::is_symlink(path, ignored); ++i) {
    path = (path.parent_path() / fs::read_symlink(path, ignored)).lexically_normal();
    out.push_back(path.string());
  }
  return out;
}

}  // namespace

Result<PythonEnvironment> python_environment(const std::string& name, const std::string& where) {
  const auto output = ask(name, where);
  RETURN_IF_ERROR(output);
  const auto end = output->find_last_not_of('\n');
  const auto begin = end == std::string::npos ? 0 : output->rfind('\n', end) + 1;
  const std::string line = output->substr(begin, end == std::string::npos ? 0 : end - begin + 1);
  const auto json = parse_json(line, "its answer", {.depth = 4, .bytes = max_output_bytes});
  const Json* program = json && json->is_object() ? json->find("program") : nullptr;
  if (program == nullptr || !program->is_string())
    return fail(Errc::usage, cat(where, ".python: ", quote(name),
                                 " is no Python 3.8 or newer; it answered ", quote(line, 200)));
  PythonEnvironment out{program->string(), texts_in(*json, "folders"), texts_in(*json, "search")};
  for (std::string& link : links_of(out.program)) out.folders.push_back(std::move(link));
  return out;
}

}  // namespace troupe::actors::rules
