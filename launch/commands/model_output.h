// ModelOutput: the text of a model on stdout, piece by piece.
#pragma once

#include <string_view>

#include "engine/base/text/terminal_text.h"

namespace troupe::launch::commands {

/// On a terminal the text passes through for_terminal(), because a model can generate any bytes;
/// elsewhere it is printed as it is.
class ModelOutput {
 public:
  ModelOutput();
  /// Prints a piece at once. It may end inside a character.
  void print(std::string_view piece);
  /// Prints the last piece and a newline.
  void print_line(std::string_view last);

 private:
  bool terminal_;
  TerminalStream stream_;
};

}  // namespace troupe::launch::commands
