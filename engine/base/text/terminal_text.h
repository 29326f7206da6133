// Text of models, files and other users, for display: on a terminal, in logs, in samples.txt.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Escapes what a terminal would obey or what would disguise text: C0 controls other than newline
/// and tab, and DEL as \xNN; C1 controls and the bidirectional embeddings, overrides and isolates
/// (U+202A-E, U+2066-9) as \uNNNN; bytes that are not UTF-8 as \xNN.
std::string for_terminal(std::string_view text);

/// for_terminal() for text that arrives in pieces, which may end inside a character.
class TerminalStream {
 public:
  /// The text that can be printed now.
  std::string add(std::string_view piece);
  /// The rest: an incomplete character at the end of the text.
  std::string finish();

 private:
  std::string rest_;
};

}  // namespace troupe
