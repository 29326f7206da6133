// ProgressLine: the progress of a command on stderr, as one line that is redrawn on a terminal and
// as occasional plain lines otherwise.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace troupe::launch::terminal {

/// "1:02:03", "2:03", "0:07".
std::string clock_text(double seconds);
/// "ETA 1:05", from the seconds that `done` of `total` pieces of work took.
std::string eta_text(double seconds, double done, double total);
/// "[####......]". `share`: 0 to 1.
std::string bar_text(double share, int width);
/// Seconds of a clock that is never set back.
double steady_seconds();

/// A part of the line. Where the terminal is too narrow, those of a higher rank are left out first.
struct ProgressField {
  int rank = 0;
  std::string text;
};

class ProgressLine {
 public:
  struct Options {
    bool terminal = false;
    /// Width of the terminal now: it is asked at every redraw.
    std::function<int()> columns = [] { return 100; };
    double redraw = 0;    ///< a terminal: minimum seconds between redraws
    double interval = 1;  ///< not a terminal: minimum seconds between lines
  };
  /// The present fields, with a bar of `width` columns; 0: without one. None: nothing is shown.
  using Fields = std::function<std::vector<ProgressField>(int width)>;

  /// `now` returns seconds; tests pass their own clock.
  ProgressLine(std::FILE* out, Options options, std::function<double()> now, Fields fields);

  /// Redraws the line of a terminal; elsewhere writes a line if it is `due`. `last`: whatever the
  /// time since the one before. Returns whether it did.
  bool show(bool due, bool last = false);
  /// Removes the line from a terminal, or draws it again.
  void hide();
  void redraw();
  /// Leaves the final line; elsewhere than on a terminal if it is `due`.
  void finish(bool due);
  /// At most `columns` wide: fields are shortened or left out. 0: no limit.
  std::string line(int columns = 0) const;

 private:
  std::FILE* out_;
  Options options_;
  std::function<double()> now_;
  Fields fields_;
  double shown_ = -1e300;
};

/// Options for the present stderr; no terminal above log level info.
ProgressLine::Options stderr_options();

}  // namespace troupe::launch::terminal
