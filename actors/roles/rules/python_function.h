// The rule `python`: a reward function of TRL, verl or OpenRLHF in a Python file, called unchanged.
// It is a reward program (command.h) whose program is share/troupe/reward_function.py.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "actors/roles/rules/command_worker.h"

namespace troupe::actors::rules {

/// How the function is called (docs/rewards.md).
enum class Signature { trl, verl, openrlhf };
constexpr std::array<std::string_view, 3> names_of(Signature) {
  return {"trl", "verl", "openrlhf"};
}

struct PythonOptions {
  std::string function;  ///< FILE.py:NAME
  Signature signature = Signature::trl;
  std::string python = "python3";  ///< the interpreter, whose environment the function sees
  Json arguments;                  ///< further keyword arguments, an object, or null
  CommandOptions command = defaults();

  static void each_field(auto& self, auto&& field) {
    field("function", self.function);
    field("signature", self.signature);
    field("python", self.python);
    field("arguments", self.arguments);
    field("timeout", self.command.timeout);
    field("startup", self.command.startup);
    field("workers", self.command.workers);
    field("fresh", self.command.fresh);
    field("answer_kb", self.command.answer_kb);
    sandbox::Limits::each_field(self.command.limits, field);
  }
  /// Errc::usage with the key and its valid values.
  Result<> validate(const std::string& where) const;
  std::string file() const { return function.substr(0, function.rfind(':')); }
  std::string name() const { return function.substr(function.rfind(':') + 1); }

 private:
  /// Libraries such as torch take long to import, and reserve many gigabytes of addresses.
  static CommandOptions defaults();
};

Result<Rule> make_python(const Json& options, const std::string& where);

}  // namespace troupe::actors::rules
