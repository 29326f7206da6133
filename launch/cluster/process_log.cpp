#include "launch/cluster/process_log.h"

#include <algorithm>
#include <utility>

#include "engine/base/log/log.h"
#include "engine/base/log/log_file.h"
#include "engine/base/text/parse.h"
#include "engine/base/text/terminal_text.h"
#include "engine/base/text/text.h"
#include "engine/base/threads/progress.h"

namespace troupe::launch::cluster {
namespace {

constexpr std::size_t max_line_bytes = 64 << 10, lines_kept = 3;

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Removes "[job,RANK]<stderr>:".
void take_tag(std::string_view& line, int& rank) {
  const auto comma = line.find(','), close = line.find("]<"), end = line.find(">:");
  if (!line.starts_with('[') || comma == line.npos || close == line.npos || end == line.npos ||
      comma > close || close > end)
    return;
  const std::string_view number = line.substr(comma + 1, close - comma - 1);
  if (!digits(line.substr(1, comma - 1)) || !digits(number) || number.size() > 6) return;
  rank = parse_number<int>(number).value_or(rank);
  line.remove_prefix(end + 2);
}

// Removes "12:30:01 W ".
void take_time(std::string_view& line, char& level) {
  const bool timed = line.size() > 11 && digits(line.substr(0, 2)) && line[2] == ':' &&
                     digits(line.substr(3, 2)) && line[5] == ':' && digits(line.substr(6, 2)) &&
                     line[8] == ' ' && line[10] == ' ';
  if (!timed) return;
  level = line[9];
  line.remove_prefix(11);
}

std::string rank_text(const PrintedLine& printed) {
  return printed.rank < 0 ? "" : cat("rank ", printed.rank, ": ");
}

}  // namespace

PrintedLine printed_line(std::string_view line) {
  PrintedLine out;
  take_tag(line, out.rank);
  take_time(line, out.level);
  out.text = line;
  return out;
}

ProcessLog::ProcessLog(std::string node, const OutputFolder& folder, OutputRate rate)
    : node_(std::move(node)),
      path_(folder.path_of(node_ + ".log")),
      file_(value_or_throw(LogFile::open(folder, node_ + ".log"))),
      limit_(rate, std::chrono::steady_clock::now()) {
}

void ProcessLog::add(std::string_view bytes) {
  for (auto end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
    rest_.append(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
    line(std::exchange(rest_, {}));
  }
  rest_.append(bytes);
  if (rest_.size() > max_line_bytes) line(std::exchange(rest_, {}));
}

void ProcessLog::finish() {
  if (!rest_.empty()) line(std::exchange(rest_, {}));
  write_notice();
  const auto tail = limit_.take_tail();
  if (tail.empty()) return;
  file_.write(cat(utc_time(), " W the last output, complete:\n"));
  for (const std::string& each : tail) write(printed_line(each));
}

void ProcessLog::line(std::string_view text) {
  const PrintedLine printed = printed_line(text);
  const std::string rank = rank_text(printed);
  if (limit_.admits(text, std::chrono::steady_clock::now())) {
    write_notice();
    write(printed);
    note_hang(printed);
    if (printed.level == 'W') log_warning(cat(node_, ": ", rank, printed.text));
    if (printed.level == 'E') log_error(cat(node_, ": ", rank, printed.text));
  } else if (!std::exchange(warned_, true)) {
    log_warning(
        cat(node_, ": prints too much; a part of its output is dropped and counted in ", path_));
  }
  if (printed.text.find_first_not_of("-* \t") == std::string::npos) return;  // a separator line
  ranks_ = ranks_ || printed.rank >= 0;
  // One line of mpirun's own long explanations is useful.
  if (ranks_ && printed.rank < 0 && printed.text.find("noticed that process") == std::string::npos)
    return;
  last_.push_back(rank + printed.text);
  if (last_.size() > lines_kept) last_.pop_front();
}

// The cause of a run that ends names the hangs of its groups.
void ProcessLog::note_hang(const PrintedLine& printed) const {
  const std::string of = cat("group ", node_, " ", printed.rank);
  if (printed.level == 'W' && printed.text.find(progress::hang_words) != std::string::npos)
    progress::add_hang(of, cat(node_, ": ", rank_text(printed), printed.text));
  if (printed.level == 'I' && printed.text.find(progress::advances_words) != std::string::npos)
    progress::remove_hang(of);
}

void ProcessLog::write(const PrintedLine& printed) {
  const std::string head = printed.level == ' ' ? "" : cat(utc_time(), " ", printed.level, " ");
  file_.write(cat(head, rank_text(printed), for_terminal(printed.text), "\n"));
}

void ProcessLog::write_notice() {
  if (const std::string notice = limit_.take_notice(); !notice.empty())
    file_.write(cat(utc_time(), " W ", notice, "\n"));
}

std::string ProcessLog::last_output() const {
  return join({last_.begin(), last_.end()}, " | ");
}

}  // namespace troupe::launch::cluster
