#include "transports/zmq/admission.h"

#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace troupe::transports {
namespace {

constexpr std::string_view scheme = "ipc://";
constexpr const char* paused_name = ".paused";

}  // namespace

Admission::Admission(std::size_t max_connections, const std::vector<std::string>& endpoints)
    : max_connections_(max_connections) {
  for (const std::string& each : endpoints)
    if (each.starts_with(scheme)) paths_.push_back(each.substr(scheme.size()));
}

void Admission::accepted(int fd) {
  open_.insert(fd);
  ++accepted_;
  if (state_ != State::listening ||
      (open_.size() <= max_connections_ && accepted_ <= max_connections_))
    return;
  rename_all("", paused_name);
  state_ = State::paused;
}

void Admission::next_period() {
  accepted_ = 0;
  if (state_ != State::paused || open_.size() > max_connections_) return;
  rename_all(paused_name, "");
  state_ = State::listening;
}

void Admission::finish() {
  if (accepts()) rename_all("", paused_name);
  state_ = State::finished;
}

void Admission::reopen() {
  if (state_ != State::finished) return;
  rename_all(paused_name, "");
  accepted_ = 0;
  state_ = State::listening;
}

void Admission::remove() {
  for (const std::string& path : paths_)
    for (const char* suffix : {"", paused_name}) ::unlink((path + suffix).c_str());
}

void Admission::rename_all(const char* from, const char* to) const {
  for (const std::string& path : paths_) std::rename((path + from).c_str(), (path + to).c_str());
}

}  // namespace troupe::transports
