// EventStream: the data of server-sent events (WHATWG HTML, 9.2) in bytes that arrive in pieces.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/base/error.h"

namespace troupe::launch::commands {

class EventStream {
 public:
  /// `on_data` receives the data of each event; its lines are joined by newlines.
  explicit EventStream(std::function<void(const std::string&)> on_data)
      : on_data_(std::move(on_data)) {}

  /// Errc::full for an event of more than 1 MiB; what follows is then ignored.
  Result<> push(std::string_view bytes);

 private:
  void end_line();

  std::function<void(const std::string&)> on_data_;
  std::string line_, data_;
  bool after_return_ = false;  // a newline behind it belongs to it
  bool has_data_ = false, too_long_ = false;
};

}  // namespace troupe::launch::commands
