#include "transports/wire/flat.h"

#include <cstring>
#include <memory>

#include "engine/base/text/text.h"

namespace troupe::transports::wire {

namespace {

constexpr std::size_t alignment = 64;
std::size_t aligned(std::size_t at) {
  return (at + alignment - 1) / alignment * alignment;
}

std::uint64_t number_at(std::string_view bytes, std::size_t index) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + 8 * index, 8);
  return value;
}

}  // namespace

// [n: u64] [n sizes: u64] then n sections, each at the next multiple of 64: the header first, then
// the parts.
std::string flatten(const WireBody& body) {
  std::vector<std::string_view> sections{body.header};
  for (const BodyPart& part : body.parts)
    sections.emplace_back(reinterpret_cast<const char*>(part.data), part.size);
  std::vector<std::uint64_t> sizes{sections.size()};
  std::size_t whole = 8 * (sections.size() + 1);
  for (const auto section : sections) {
    sizes.push_back(section.size());
    whole = aligned(whole) + section.size();
  }
  std::string out;
  out.reserve(whole);
  out.append(reinterpret_cast<const char*>(sizes.data()), 8 * sizes.size());
  for (const auto section : sections) {
    out.resize(aligned(out.size()));
    out.append(section);
  }
  return out;
}

Result<WireBody> unflatten(std::string given, std::string_view what) {
  // A copy, because a short string stores its bytes inside the object, at any alignment.
  const auto bytes =
      std::make_shared<std::vector<std::uint64_t>>((given.size() + alignment) / 8 + 1);
  std::size_t room = bytes->size() * 8;
  void* start = bytes->data();
  std::align(alignment, given.size(), start, room);
  std::memcpy(start, given.data(), given.size());
  const std::string_view text(static_cast<const char*>(start), given.size());
  const auto broken = [&](std::string_view why) {
    return fail(Errc::bad_input, cat(what, ": ", text.size(), " bytes, but ", why));
  };
  if (text.size() < 16) return broken("the shortest message has 16");
  const std::uint64_t sections = number_at(text, 0);
  if (sections < 1 || sections > text.size() / 8 - 1)
    return broken(cat(sections, " sections cannot be in them"));
  WireBody body;
  std::size_t at = 8 * (static_cast<std::size_t>(sections) + 1);
  for (std::size_t i = 0; i < sections; ++i) {
    at = aligned(at);
    const std::uint64_t size = number_at(text, i + 1);
    if (size > text.size() || at > text.size() - size)
      return broken(cat("section ", i, " has ", size, " from ", at));
    if (i == 0)
      body.header = text.substr(at, size);
    else
      body.parts.push_back({bytes, reinterpret_cast<const std::byte*>(text.data() + at), size});
    at += size;
  }
  if (at != text.size()) return broken(cat("the sections end at ", at));
  return body;
}

}  // namespace troupe::transports::wire
