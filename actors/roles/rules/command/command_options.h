// CommandOptions: settings of the rule `command`.
#pragma once

#include <string>
#include <vector>

#include "actors/sandbox/limits.h"
#include "engine/base/error.h"

namespace troupe::actors::rules {

struct CommandOptions {
  std::vector<std::string> run;  ///< the program and its arguments
  double timeout = 10;           ///< seconds per response
  double startup = 10;           ///< additional seconds for the first response of a new process
  int workers = 1;               ///< processes that share the requests
  bool fresh = false;            ///< start a new process for each request
  int answer_kb = 64;            ///< maximum KiB of a response
  sandbox::Limits limits;

  static void each_field(auto& self, auto&& field) {
    field("run", self.run);
    field("timeout", self.timeout);
    field("startup", self.startup);
    field("workers", self.workers);
    field("fresh", self.fresh);
    field("answer_kb", self.answer_kb);
    sandbox::Limits::each_field(self.limits, field);
  }
  /// Errc::usage with the key and its valid values.
  Result<> validate(const std::string& where) const;
};

}  // namespace troupe::actors::rules
