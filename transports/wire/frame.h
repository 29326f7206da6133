// A frame between processes: one msgpack header (version, what it is, the frame's fields, then the
// body's own header) and the body's parts. Beside frames, two linked processes tell each other who
// they are, what they have consumed, that they live, and goodbye.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "transports/transport.h"
#include "transports/wire/part.h"

namespace troupe::transports::wire {

inline constexpr std::uint64_t version = 1;
/// Bytes of a node's, actor's or message's name.
inline constexpr std::size_t most_name = 256;

/// What linked processes say to each other beside frames.
struct Control {
  enum class Kind {
    hello,  ///< first on a link: `frames`, `bytes` are the window that the sender of this grants
    grant,  ///< frames and bytes that it has consumed since the link began
    beat,   ///< it lives
    bye     ///< it leaves, nothing follows
  };
  Kind kind = Kind::hello;
  std::uint64_t session = 0;  ///< one life of one endpoint
  std::uint64_t frames = 0, bytes = 0;
};

/// Failure(bad_input) when the body cannot be sent, Bug when its type has no wire form.
WireBody encode_frame(const Frame& frame);
/// The same within bounds (bytes of all of it, and of its header), as a Result. An answer that
/// cannot be sent becomes the error that says so, for somebody waits for it.
Result<WireBody> encode_to_send(Frame& frame, std::size_t most_bytes, std::size_t most_header);
WireBody encode_control(const Control& control);
/// Either of them, with every bound checked. The body stays as it is until somebody takes it.
/// Errc::bad_input; `from` begins the sentence.
Result<std::variant<Frame, Control>> decode_message(WireBody message, std::string_view from);

/// Small messages that leave together travel as one: encrypting and waking up are paid once. A
/// bundle takes messages without parts, of up to `inline_bytes` each, until it has `bundle_bytes`.
inline constexpr std::size_t bundle_bytes = 16384;
bool may_bundle(const WireBody& message);
WireBody bundle(const std::vector<WireBody>& messages);
bool is_bundle(const WireBody& message);
/// Errc::bad_input; `from` begins the sentence.
Result<std::vector<WireBody>> unbundle(const WireBody& message, std::string_view from);

/// Bytes of all of it.
std::size_t size_of(const WireBody& message);

}  // namespace troupe::transports::wire
