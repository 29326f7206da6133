#include "launch/commands/event_stream.h"

#include <utility>

#include "engine/base/text.h"

namespace troupe::launch::commands {

namespace {

constexpr std::size_t max_event = std::size_t{1} << 20;

}  // namespace

void EventStream::end_line() {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    if (std::exchange(has_data_, false)) on_data_(std::exchange(data_, {}));
    return;
  }
  if (!line.starts_with("data:")) return;  // comments and other fields
  const std::string_view value = std::string_view(line).substr(line.starts_with("data: ") ? 6 : 5);
  if (std::exchange(has_data_, true)) data_ += '\n';
  data_ += value;
}

Result<> EventStream::push(std::string_view bytes) {
  for (const char c : bytes) {
    if (too_long_) break;
    const bool joined = std::exchange(after_return_, c == '\r');
    if (joined && c == '\n') continue;
    if (c == '\n' || c == '\r')
      end_line();
    else
      line_ += c;
    too_long_ = line_.size() + data_.size() > max_event;
  }
  if (!too_long_) return {};
  return fail(Errc::full, cat("the server sent an event of more than ", max_event, " bytes"));
}

}  // namespace troupe::launch::commands
