// flatten() and unflatten(): round trips and rejected inputs.
#include "transports/wire/flat.h"

#include <gtest/gtest.h>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"

namespace troupe::transports::wire {
namespace {

WireBody random_body(std::uint64_t seed) {
  const auto bytes = [&](std::uint64_t which) {
    std::string out(uniform_below(200, seed, which, 0), '\0');
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<char>(uniform_below(256, seed, which, i + 1));
    return out;
  };
  WireBody body{bytes(0), {}};
  for (std::uint64_t i = uniform_below(4, seed, 9, 0); i > 0; --i) {
    const auto owner = std::make_shared<const std::string>(bytes(i));
    body.parts.push_back({owner, reinterpret_cast<const std::byte*>(owner->data()), owner->size()});
  }
  return body;
}

TEST(Flat, ComesBackAsItWasWithPartsAligned) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const WireBody sent = random_body(seed),
                   got = value_or_throw(unflatten(flatten(sent), "a test"));
    EXPECT_EQ(got.header, sent.header);
    ASSERT_EQ(got.parts.size(), sent.parts.size());
    for (std::size_t i = 0; i < sent.parts.size(); ++i) {
      ASSERT_EQ(got.parts[i].size, sent.parts[i].size);
      EXPECT_TRUE(
          std::equal(got.parts[i].data, got.parts[i].data + got.parts[i].size, sent.parts[i].data));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.parts[i].data) % 64, 0u);
    }
  }
}

TEST(Flat, CutOrLyingBytesAreRefused) {
  const std::string good = flatten(random_body(3));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(unflatten(good.substr(0, length), "a test")) << "cut at " << length;
  EXPECT_FALSE(unflatten(good + "x", "a test"));
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::string lying = good;
    lying[uniform_below(40, seed, 1, 0)] = static_cast<char>(uniform_below(256, seed, 2, 0));
    if (lying == good) continue;
    const auto body = unflatten(lying, "a test");
    std::size_t sum = 0;
    if (body)
      for (const auto& part : body->parts) sum += part.size;
    EXPECT_LE(sum, good.size());
  }
}

}  // namespace
}  // namespace troupe::transports::wire
