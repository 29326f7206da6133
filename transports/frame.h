// A frame between processes: one msgpack header (version, message kind, the frame's fields, then
// the body's own header) and the body's parts. Linked processes also exchange control messages:
// hello, credit, heartbeats and bye.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "transports/transport.h"
#include "transports/wire/part.h"

namespace troupe::transports::wire {

inline constexpr std::uint64_t version = 2;
/// Maximum length of the name of a node, an actor or a message.
inline constexpr std::size_t max_name_bytes = 256;

/// A control message between linked processes.
struct Control {
  enum class Kind {
    hello,      ///< first message of a link; `frames` and `bytes` are the window the sender grants
    grant,      ///< frames and bytes that the sender has consumed since the link was established
    heartbeat,  ///< the sender is alive
    bye,        ///< the sender closes the link; nothing follows
    fenced      ///< the receiver was taken for lost; whatever it sends is refused
  };
  Kind kind = Kind::hello;
  std::uint64_t session = 0;  ///< random number of the sending process's transport
  std::uint64_t frames = 0, bytes = 0;
};

/// Encodes a frame. Throws Failure(bad_input) when the body cannot be sent, Bug when its type has
/// no wire form.
WireBody encode_frame(const Frame& frame);
/// Encodes a frame within limits on its total and header bytes. A reply that cannot be sent is
/// replaced by an error reply, because the asker waits for one.
Result<WireBody> encode_to_send(Frame& frame, std::size_t max_bytes, std::size_t max_header_bytes);
WireBody encode_control(const Control& control);
/// Decodes a frame or a control message and checks every bound. The body is decoded when it is
/// taken. Errc::bad_input; `from` starts the message.
Result<std::variant<Frame, Control>> decode_message(WireBody message, std::string_view from);

/// Small messages that are queued together are sent as one bundle, which amortizes encryption and
/// wake-ups. A bundle holds messages without parts, of up to `max_inline_bytes` each, until it has
/// `max_bundle_bytes`.
inline constexpr std::size_t max_bundle_bytes = 16384;
bool may_bundle(const WireBody& message);
WireBody bundle(const std::vector<WireBody>& messages);
bool is_bundle(const WireBody& message);
/// Errc::bad_input; `from` starts the message.
Result<std::vector<WireBody>> unbundle(const WireBody& message, std::string_view from);

/// Total bytes of the header and all parts.
std::size_t size_of(const WireBody& message);

}  // namespace troupe::transports::wire
