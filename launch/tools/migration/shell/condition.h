// Conditions: test, [ ] and [[ ]].
#pragma once

#include <string>
#include <vector>

#include "launch/tools/migration/shell/expand.h"

namespace troupe::launch::tools::migration::shell {

/// Whether a command succeeds.
struct Status {
  enum class Kind {
    yes,
    no,
    unknown,
    command  ///< of a program, which is not started; `why` names it
  };
  Kind kind = Kind::yes;
  std::string why;  ///< why it is not known

  bool known() const { return kind == Kind::yes || kind == Kind::no; }
};

Status status_of(bool value);
Status negated(Status status);

/// `words`: the arguments of test, without the closing bracket.
Status test_command(const std::vector<Field>& words, std::size_t line);
/// `words`: those between [[ and ]].
Status test_expression(const std::vector<Word>& words, Expander& expander, const ShellState& state,
                       Budget& budget);

}  // namespace troupe::launch::tools::migration::shell
