#include "transports/frame.h"

#include <tuple>

#include "engine/base/text/text.h"
#include "transports/wire/codec.h"

namespace troupe::transports {

constexpr std::array<std::string_view, 3> names_of(Kind) {
  return {"request", "reply", "error"};
}
inline auto fields(Address& a) {
  return std::tie(a.node, a.actor);
}
inline auto fields(Frame& f) {
  return std::tie(f.to, f.from, f.id, f.kind, f.type, f.began, f.ended);
}

namespace wire {

constexpr std::array<std::string_view, 5> names_of(Control::Kind) {
  return {"hello", "grant", "heartbeat", "bye", "fenced"};
}
inline auto fields(Control& c) {
  return std::tie(c.kind, c.session, c.frames, c.bytes);
}

namespace {

enum MessageKind : std::uint64_t { frame_message = 0, control_message = 1, bundle_message = 2 };

template <class T>
std::string encode_header(MessageKind kind, const T& value) {
  Writer writer(nullptr);
  writer.unsigned_integer(version);
  writer.unsigned_integer(kind);
  Codec<T>::write(value, writer);
  return std::move(writer).finish().header;
}

/// Called for every frame, therefore without cat().
std::string describe(const Frame& frame) {
  std::string what = frame.kind == Kind::request ? "message '"
                     : frame.kind == Kind::reply ? "the reply to '"
                                                 : "the error of '";
  what.reserve(what.size() + frame.type.size() + frame.from.node.size() + 16);
  what.append(frame.type).append("' from node '").append(frame.from.node).push_back('\'');
  return what;
}

void check_names(const Reader& reader, const Frame& frame) {
  for (const std::string* name :
       {&frame.to.node, &frame.to.actor, &frame.from.node, &frame.from.actor, &frame.type}) {
    if (name->size() > max_name_bytes)
      reader.fail(cat("names of at most ", max_name_bytes, " bytes"), cat("one of ", name->size()));
  }
}

}  // namespace

WireBody encode_frame(const Frame& frame) {
  WireBody body = frame.body.to_wire();
  return {encode_header(frame_message, frame).append(body.header), std::move(body.parts)};
}

Result<WireBody> encode_to_send(Frame& frame, std::size_t max_bytes, std::size_t max_header_bytes) {
  Result<WireBody> message;
  try {
    message = encode_frame(frame);
  } catch (const Failure& failure) {
    message = fail(failure.error());
  }
  if (message && (size_of(*message) > max_bytes || message->header.size() > max_header_bytes))
    message =
        fail(Errc::bad_input,
             cat("'", frame.type, "' has ", size_of(*message), " bytes, ", message->header.size(),
                 " of them in its header; the limits are ", max_bytes, " and ", max_header_bytes));
  if (message || frame.kind == Kind::request) return message;
  frame.kind = Kind::error;
  frame.body =
      Body::of(Error{message.error().code, cat("cannot send the reply: ", message.error().what)});
  return encode_frame(frame);
}

WireBody encode_control(const Control& control) {
  return {encode_header(control_message, control), {}};
}

Result<std::variant<Frame, Control>> decode_message(WireBody message, std::string_view from) {
  using Decoded = std::variant<Frame, Control>;
  try {
    Reader reader(message, from);
    if (const auto found = reader.unsigned_integer(UINT64_MAX); found != version)
      reader.fail(
          cat("wire version ", version, " (all processes of a run must use the same build)"),
          cat("version ", found));
    if (reader.unsigned_integer(control_message) == control_message) {
      Control control;
      Codec<Control>::read(control, reader);
      reader.finish();
      return Decoded(control);
    }
    Frame frame;
    Codec<Frame>::read(frame, reader);
    check_names(reader, frame);
    message.header.erase(0, message.header.size() - reader.rest().size());
    std::string what = describe(frame);
    frame.body = Body::of_wire(std::move(message), std::move(what));
    return Decoded(std::move(frame));
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

bool may_bundle(const WireBody& message) {
  return message.parts.empty() && message.header.size() <= max_inline_bytes;
}

WireBody bundle(const std::vector<WireBody>& messages) {
  Writer writer(nullptr);
  writer.unsigned_integer(version);
  writer.unsigned_integer(bundle_message);
  writer.list(messages.size());
  for (const WireBody& message : messages)
    writer.numbers(Dtype::u8, message.header.data(), message.header.size());
  return std::move(writer).finish();
}

bool is_bundle(const WireBody& message) {
  return message.header.size() >= 2 && message.header[0] == char{version} &&
         message.header[1] == char{bundle_message};
}

Result<std::vector<WireBody>> unbundle(const WireBody& message, std::string_view from) {
  try {
    const std::size_t max_size = max_bundle_bytes + 2 * max_inline_bytes;
    Reader reader(message, from);
    if (message.header.size() > max_size)
      reader.fail(cat("a bundle of at most ", max_size, " bytes"), cat(message.header.size()));
    reader.unsigned_integer(version);
    reader.unsigned_integer(bundle_message);
    std::vector<WireBody> messages(reader.list(3));
    for (WireBody& one : messages) {
      const Reader::Numbers found = reader.numbers(Dtype::u8);
      one.header.assign(reinterpret_cast<const char*>(found.bytes.data), found.bytes.size);
    }
    reader.finish();
    return messages;
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

std::size_t size_of(const WireBody& message) {
  std::size_t bytes = message.header.size();
  for (const BodyPart& part : message.parts) bytes += part.size;
  return bytes;
}

}  // namespace wire
}  // namespace troupe::transports
