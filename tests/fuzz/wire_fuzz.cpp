// Any bytes as a body of any type: they are refused with a Failure, or taken; what is taken can be
// sent again and comes back the same. Input: a byte for the type (from 128 on: a message with its
// frame), a byte for the number of parts, then (a length of 2 bytes, the bytes) for each part, then
// the header.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "actors/protocol/generate.h"
#include "actors/protocol/reward.h"
#include "actors/protocol/train.h"
#include "tests/transports/random_value.h"
#include "transports/frame.h"

namespace {

using namespace troupe;  // NOLINT: a program of one page
using namespace troupe::actors::protocol;

struct Input {
  std::string_view bytes;
  std::string_view cut(std::size_t size) {
    const std::string_view piece = bytes.substr(0, size);
    bytes.remove_prefix(piece.size());
    return piece;
  }
  std::uint8_t byte() {
    const auto piece = cut(1);
    return piece.empty() ? 0 : static_cast<std::uint8_t>(piece[0]);
  }
};

template <class T>
void try_as(const transports::WireBody& body) {
  auto taken = transports::Body::of_wire(body, "fuzz").try_take<T>();
  if (!taken) {
    if (taken.error().code != Errc::bad_input) std::abort();
    return;
  }
  transports::Body resent =
      transports::Body::of_wire(transports::Body::of(*taken).to_wire(), "fuzz");
  const auto again = resent.template try_take<T>();
  if (!again || !transports::same(*taken, *again)) std::abort();
}

template <class... Ts>
void try_nth(std::size_t n, const transports::WireBody& body) {
  std::size_t index = 0;
  const auto one = [&]<class T>(std::type_identity<T>) {
    if (index++ == n % sizeof...(Ts)) try_as<T>(body);
  };
  (one(std::type_identity<Ts>{}), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{{reinterpret_cast<const char*>(data), size}};
  const std::size_t type = input.byte(), parts = input.byte() % 8;
  transports::WireBody body;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t high = input.byte(), length = high * 256 + input.byte();
    const std::string_view bytes = input.cut(length);
    auto copy = std::make_shared<const std::string>(bytes);
    body.parts.push_back({copy, reinterpret_cast<const std::byte*>(copy->data()), copy->size()});
  }
  body.header = input.bytes;
  if (type >= 128) {  // a whole message, as it comes from a socket
    if (const auto several = transports::wire::unbundle(body, "fuzz");
        !several && several.error().code != Errc::bad_input)
      std::abort();
    const auto message = transports::wire::decode_message(body, "fuzz");
    if (!message && message.error().code != Errc::bad_input) std::abort();
    return 0;
  }
  try_nth<TrainStep, StepStats, Logprobs, std::vector<float>, Save, Weights, Score, Generate,
          std::vector<Completion>, ComputeRewards, std::vector<RewardResult>, Error, Json,
          std::vector<std::optional<std::string>>, CancelSamples>(type, body);
  return 0;
}
