// The settings of the rule `command`.
#pragma once

#include <string>
#include <vector>

#include "actors/sandbox/limits.h"
#include "engine/base/error.h"

namespace troupe::actors::rules {

struct CommandOptions {
  std::vector<std::string> run;  ///< the program and its arguments
  double timeout = 10;           ///< seconds for one answer
  double startup = 10;  ///< seconds more for the first answer of a new process: interpreters and
                        ///< libraries take their time
  int workers = 1;      ///< processes that share the requests
  bool fresh = false;   ///< a new process for each request: nothing of one is seen by the next
  int answer_kb = 64;   ///< KiB of one answer's line
  sandbox::Limits limits;

  static void each_field(auto& self, auto&& field) {
    field("run", self.run), field("timeout", self.timeout), field("startup", self.startup),
        field("workers", self.workers), field("fresh", self.fresh),
        field("answer_kb", self.answer_kb);
    sandbox::Limits::each_field(self.limits, field);
  }
  /// Errc::usage, with the key and what it may be.
  Result<> validate(const std::string& where) const;
};

}  // namespace troupe::actors::rules
