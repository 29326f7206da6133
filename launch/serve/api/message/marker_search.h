// MarkerSearch: finds a marker such as "<tool_call>" in a text that arrives in pieces.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace troupe::launch::serve::api {

class MarkerSearch {
 public:
  /// `marker`: a literal.
  explicit MarkerSearch(std::string_view marker) : marker_(marker) {}

  /// Reads a character. What cannot belong to the marker is added to `before`. True: the marker is
  /// complete, and the search begins again.
  bool push(char c, std::string& before) {
    held_ += c;
    while (!marker_.starts_with(held_)) {
      before += held_.front();
      held_.erase(0, 1);
    }
    if (held_.size() < marker_.size()) return false;
    held_.clear();
    return true;
  }
  bool holds_nothing() const { return held_.empty(); }
  /// The beginning of a marker at the end of the text so far.
  std::string take_held() { return std::exchange(held_, {}); }

 private:
  std::string_view marker_;
  std::string held_;
};

}  // namespace troupe::launch::serve::api
