// LineEditor: lines from the user: in a terminal with editing, history and multi-line paste
// (libedit), otherwise as they come.
#pragma once

#include <memory>
#include <string>

namespace troupe::launch::terminal {

class LineEditor {
 public:
  /// `history`: the file that keeps the lines of earlier sessions, created with mode 0600; "":
  /// none. Without a terminal neither prompt nor history is used.
  LineEditor(std::string prompt, const std::string& history);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;

  /// Reads the next line, without its newline; a pasted text may contain newlines. False at the end
  /// of the input, and for Ctrl-C on an empty line (launch/terminal/interruption.h); Ctrl-C on
  /// another line discards that line.
  bool read(std::string& line);
  /// Whether lines are edited in a terminal.
  bool interactive() const { return terminal_ != nullptr; }

 private:
  struct Terminal;
  std::unique_ptr<Terminal> terminal_;
};

/// $XDG_STATE_HOME/troupe/chat_history, or the same under ~/.local/state; "" without a home.
std::string chat_history_file();

}  // namespace troupe::launch::terminal
