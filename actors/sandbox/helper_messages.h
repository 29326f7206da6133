// Messages between a process and its sandbox helper (helper.h), over Unix sockets.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/sandbox/plan.h"
#include "engine/base/errors/error.h"
#include "engine/base/files/descriptor.h"

namespace troupe::actors::sandbox {

/// Limits that the helper enforces by killing a sandbox.
enum class Exceeded : int { nothing, memory, unreadable, processor, files };

/// Answer to a plan. A pidfd of the program follows with it.
struct StartReply {
  bool started = false;
  pid_t id = 0;
  Errc code = Errc::internal;
  std::array<char, 2048> what{};  ///< the error, ended by 0
};

/// Requests after that, one byte each. The helper kills the sandbox when the socket is closed.
inline constexpr char usage_request = 'u', kill_request = 'k';

struct UsageReply {
  double processor_seconds = 0;
};
struct EndReply {
  int status = 0;                 ///< as returned by wait()
  std::uint64_t peak_memory = 0;  ///< bytes of its largest process; 0: unknown
  Exceeded exceeded = Exceeded::nothing;
  std::uint64_t used = 0;  ///< what exceeded the limit: bytes or seconds
};

/// Sends bytes and descriptors as one message. False and errno on errors; raises no SIGPIPE.
bool send_message(int socket, std::string_view bytes, std::span<const int> descriptors = {});
/// Receives exactly `size` bytes and appends the descriptors that came with them. False at the end
/// of the connection, after the socket's timeout and on errors.
bool receive_message(int socket, void* bytes, std::size_t size,
                     std::vector<Descriptor>* descriptors = nullptr);

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// A plan as bytes, preceded by their number. receive_plan() reads it.
std::string encode(const SandboxPlan& plan);
Result<SandboxPlan> receive_plan(int socket);

}  // namespace troupe::actors::sandbox
