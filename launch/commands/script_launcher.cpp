#include "launch/commands/script_launcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/base/environment/processors.h"
#include "engine/base/errors/error.h"
#include "engine/base/log/log.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "launch/commands/script_names.h"

namespace troupe::launch::commands {
namespace {

namespace fs = std::filesystem;
constexpr std::array<std::string_view, 3> launchers{"torchrun", "python", "python3"};
constexpr std::array<std::string_view, 2> distributed{"torch.distributed.launch",
                                                      "torch.distributed.run"};

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

/// Options of torchrun without a value.
bool is_switch(const std::string& option) {
  constexpr std::array<std::string_view, 5> switches{"standalone", "use_env", "no_python", "module",
                                                     "run_path"};
  return std::ranges::find(switches, option) != switches.end();
}

int count_of(const std::string& option, const std::string& text) {
  const auto number = parse_number<double>(text);
  if (!number || *number < 1 || *number > 4096 || *number != static_cast<int>(*number))
    throw Failure({Errc::usage, cat("torchrun: --", option, ' ', quote(text),
                                    ": expected a whole number, at least 1")});
  return static_cast<int>(*number);
}

/// Reads the options before a script; returns the place of the script.
std::size_t launcher_options(const std::vector<std::string>& words, std::size_t at, int& ranks) {
  while (at < words.size() && words[at].starts_with('-')) {
    const std::string& word = words[at++];
    const auto equals = word.find('=');
    std::string option = word.substr(word.find_first_not_of('-'),
                                     equals - std::min(equals, word.find_first_not_of('-')));
    std::ranges::replace(option, '-', '_');
    if (is_switch(option)) continue;
    if (equals == std::string::npos && at >= words.size()) return at;
    const std::string value = equals == std::string::npos ? words[at++] : word.substr(equals + 1);
    if (option == "nproc_per_node") ranks = count_of(option, value);
    if (option == "nnodes" && value != "1" && value != "1:1")
      throw Failure({Errc::unsupported,
                     cat("torchrun: --nnodes ", value,
                         ": several hosts are not started by this link; expected 1, or the "
                         "processes of a cluster file by troupe launch (docs/operations.md)")});
  }
  return at;
}

/// The command of a script, its name and options first; empty for another one.
std::vector<std::string> command_of(const std::vector<std::string>& words, std::size_t at) {
  if (at >= words.size() || !words[at].ends_with(".py")) return {};
  const std::string name = file_name(words[at]);
  std::vector<const char*> argv{name.c_str()};
  for (std::size_t i = at + 1; i < words.size(); ++i) argv.push_back(words[i].c_str());
  auto out = command_words(static_cast<int>(argv.size()), argv.data());
  return out.size() < argv.size() ? std::vector<std::string>{} : out;
}

[[noreturn]] void become(const std::string& program, const std::vector<std::string>& words) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw Failure({Errc::io, cat(program, ": cannot be started: ", std::strerror(errno))});
}

/// Ranks of one host, which talk over the loopback interface only, as launch/mpirun.sh starts them.
[[noreturn]] void start_ranks(const std::string& self, const Launched& what) {
  if (what.ranks > engine::usable_processors())
    log_warning(cat("torchrun: ", what.ranks, " ranks on ", engine::usable_processors(),
                    " processors, which share them"));
  std::vector<std::string> words{"loopback",
                                 "--",
                                 "mpirun",
                                 "--allow-run-as-root",
                                 "--oversubscribe",
                                 "--bind-to",
                                 "none",
                                 "--mca",
                                 "btl",
                                 "self,vader",
                                 "--mca",
                                 "oob_tcp_if_include",
                                 "lo",
                                 "--mca",
                                 "odls_base_sigkill_timeout",
                                 "60",
                                 "-n",
                                 cat(what.ranks),
                                 self};
  words.insert(words.end(), what.words.begin(), what.words.end());
  become(self, words);
}

}  // namespace

Launched launched(const std::string& name, const std::vector<std::string>& arguments) {
  Launched out{.words = arguments};
  std::size_t at = 0;
  bool torchrun = name == "torchrun";
  if (!torchrun && arguments.size() > 1 && arguments[0] == "-m" &&
      std::ranges::find(distributed, arguments[1]) != distributed.end()) {
    torchrun = true;
    at = 2;
  }
  int ranks = 1;
  std::size_t script = at;
  if (torchrun) {
    while (script < arguments.size() && !arguments[script].ends_with(".py")) ++script;
    if (command_of(arguments, script).empty()) return out;  // another program's options are its own
    script = launcher_options(arguments, at, ranks);
  } else if (script < arguments.size() && arguments[script] == "-u") {
    ++script;
  }
  auto words = command_of(arguments, script);
  if (words.empty()) return out;
  // One process reads a checkpoint of any division.
  const bool trains = words[0] == "pretrain_gpt" || words[0] == "posttrain_gpt";
  out.ranks = trains ? ranks : 1;
  out.kind = out.ranks > 1 ? Launched::Kind::ranks : Launched::Kind::command;
  out.words = std::move(words);
  return out;
}

std::string next_program(const std::string& name, const std::string& path,
                         const std::string& self) {
  for (const auto folder : split(path, ':')) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code failed;
    if (!fs::is_regular_file(candidate, failed) || fs::equivalent(candidate, self, failed))
      continue;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.string();
  }
  return "";
}

Result<std::vector<std::string>> launched_words(int argc, char** argv, const CheckWords& check) {
  const std::string name = argc > 0 ? file_name(argv[0]) : "";
  if (std::ranges::find(launchers, name) == launchers.end()) return command_words(argc, argv);
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::string self = fs::read_symlink("/proc/self/exe").string();
    Launched what = launched(name, arguments);
    if (what.kind == Launched::Kind::command) return std::move(what.words);
    if (what.kind == Launched::Kind::ranks) {
      RETURN_IF_ERROR(check(what.words));
      start_ranks(self, what);
    }
    const char* path = std::getenv("PATH");
    const std::string next = next_program(name, path ? path : "", self);
    if (!next.empty()) become(next, what.words);
  } catch (const Failure& failure) {
    return fail(failure);
  }
  return fail(Errc::not_found, cat(name,
                                   ": no other program of this name in PATH; this one "
                                   "starts the scripts of Megatron only"));
}

}  // namespace troupe::launch::commands
