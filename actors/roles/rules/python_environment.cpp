#include "actors/roles/rules/python_environment.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "engine/base/json/json.h"
#include "engine/base/processes/child_process.h"
#include "engine/base/processes/pipe.h"
#include "engine/base/text/text.h"

namespace troupe::actors::rules {
namespace {

namespace fs = std::filesystem;

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

/// All that it writes until it closes its output. False at the deadline.
bool read_all(int output, std::string& into) {
  const auto deadline = std::chrono::steady_clock::now() + max_wait;
  std::array<char, 4096> bytes;
  while (wait_readable({{output}}, deadline)[0]) {
    const ssize_t count = ::read(output, bytes.data(), bytes.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return true;
    if (into.size() < max_output_bytes) into.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return false;
}

/// What the interpreter prints until it ends, which must be in time.
Result<std::string> ask(const std::string& name, const std::string& where) {
  auto child = ChildProcess::start({name, "-c", question});
  if (!child)
    return fail(Errc::not_found,
                cat(where, ".python: ", child.error().what,
                    "; expected a Python interpreter, such as python3 or the bin/python of a "
                    "virtual environment"));
  child->close_input();
  std::string output;
  const bool in_time = read_all(child->output_fd(), output);
  child->kill();
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
