// The codec: what goes in comes out to the bit, and nothing that is not exactly a message gets in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "actors/protocol/generate.h"
#include "actors/roles/rollout.h"
#include "actors/roles/scorer.h"
#include "actors/roles/trainer.h"
#include "actors/roles/verifier.h"
#include "tests/support/allocations.h"
#include "tests/transports/random_value.h"
#include "transports/body.h"

namespace troupe::transports {
namespace {

using namespace troupe::actors;  // NOLINT: the messages under test

template <class... Ms>
void for_messages(Messages<Ms...>, auto&& visit) {
  const auto visit_one = [&]<class M>(std::type_identity<M>) {
    visit(std::type_identity<M>{}, std::string(M::name));
    if constexpr (!std::is_void_v<typename M::Reply>)
      visit(std::type_identity<typename M::Reply>{}, cat("the reply to ", M::name));
  };
  (visit_one(std::type_identity<Ms>{}), ...);
}

/// Calls visit(type_identity<T>, name) for every message that a role handles, every reply, and
/// Error.
void for_all(auto&& visit) {
  for_messages(roles::Trainer::Handled{}, visit);
  for_messages(roles::Scorer::Handled{}, visit);
  for_messages(roles::Rollout::Handled{}, visit);
  for_messages(roles::Verifier::Handled{}, visit);
  visit(std::type_identity<Error>{}, std::string("error"));
}

/// Copies the parts to other addresses, as a transport does.
WireBody arrived(const WireBody& sent) {
  WireBody body{sent.header, {}};
  for (const auto& part : sent.parts) {
    auto copy = std::make_shared<const std::vector<std::byte>>(part.data, part.data + part.size);
    body.parts.push_back({copy, copy->data(), copy->size()});
  }
  return body;
}

template <class T>
T through(T value) {
  Body body = Body::of_wire(arrived(Body::of(std::move(value)).to_wire()), "a value");
  return body.take<T>();
}

/// The sentence with which `body` is refused as a T.
template <class T>
std::string refusal(WireBody body) {
  Result<T> taken = Body::of_wire(std::move(body), "message 'x'").try_take<T>();
  if (taken) return "taken";
  EXPECT_EQ(taken.error().code, Errc::bad_input);
  return taken.error().what;
}

TEST(Wire, EveryMessageAndReplyOfEveryRoleComesBackToTheBit) {
  for_all([]<class T>(std::type_identity<T>, const std::string& name) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const T value = RandomValue(seed).make<T>();
      EXPECT_TRUE(same(through(value), value)) << name << ", seed " << seed;
    }
  });
}

TEST(Wire, NumbersKeepTheirBits) {
  const float quiet = std::bit_cast<float>(0x7fc01234u),
              signalling = std::bit_cast<float>(0xff800001u);
  for (const float value : {0.0f, -0.0f, 1.0f, -3.0f, 1e-45f, INFINITY, quiet, signalling})
    EXPECT_EQ(std::bit_cast<std::uint32_t>(through(value)), std::bit_cast<std::uint32_t>(value));
  const double odd = std::bit_cast<double>(0x7ff0000000000001u);
  for (const double value : {0.0, -0.0, 2.0, -7.0, 1e300, 5e-324, odd})
    EXPECT_EQ(std::bit_cast<std::uint64_t>(through(value)), std::bit_cast<std::uint64_t>(value));
  for (const std::int64_t value :
       {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{200}, INT64_MAX})
    EXPECT_EQ(through(value), value);
  EXPECT_EQ(through(UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(through(std::vector<float>{quiet, 1, signalling}).size(), 3u);
}

TEST(Wire, AJsonDistinguishesIntegersFromDoublesAndKeepsMembersInOrder) {
  const Json value =
      Json(Json::Object{{"z", Json(1)},
                        {"a", Json(1.0)},
                        {"m", Json(Json::Array{Json(-5), Json(), Json(true), Json("x")})}});
  const Json back = through(value);
  EXPECT_EQ(back, value);
  EXPECT_TRUE(back.find("z")->is_integer());
  EXPECT_FALSE(back.find("a")->is_integer());
  EXPECT_EQ(back.dump(), value.dump());
}

TEST(Wire, AnArrayIsNotCopiedOnItsWayOut) {
  protocol::Logprobs message;
  message.batch.mask.assign(5000, 0.5f);
  Body body = Body::of(std::move(message));
  const float* where = body.peek<protocol::Logprobs>().batch.mask.data();
  const WireBody parts = body.to_wire();
  ASSERT_EQ(parts.parts.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(parts.parts[0].data), where);
  body = {};  // the part keeps the message alive
  EXPECT_EQ(reinterpret_cast<const float*>(parts.parts[0].data)[4999], 0.5f);
}

TEST(Wire, WeightsAreNotCopiedOnTheirWayInEither) {
  protocol::Weights weights;
  weights.values = std::make_shared<const std::vector<float>>(5000, 2.0f);
  const WireBody sent = Body::of(weights).to_wire();
  EXPECT_EQ(static_cast<const void*>(sent.parts[0].data), weights.values->data());
  WireBody come = arrived(sent);
  const void* where = come.parts[0].data;
  const auto taken = Body::of_wire(std::move(come), "weights").take<protocol::Weights>();
  EXPECT_EQ(static_cast<const void*>(taken.values->data()), where);
  EXPECT_EQ((*taken.values)[4999], 2.0f);
}

TEST(Wire, AnArrayAtAnOddAddressIsCopiedToAnEvenOne) {
  const auto bytes = std::make_shared<const std::vector<std::byte>>(4 * 1000 + 1);
  WireBody body =
      Body::of(SharedArray<float>(std::make_shared<const std::vector<float>>(1000, 0.0f)))
          .to_wire();
  body.parts[0] = {bytes, bytes->data() + 1, 4000};
  const auto taken = Body::of_wire(body, "array").take<SharedArray<float>>();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(taken->data()) % alignof(float), 0u);
  EXPECT_EQ(taken->size(), 1000u);
}

struct Small {
  std::int32_t count = 0;
  std::string text;
  std::vector<std::pair<std::string, double>> parts;
};
auto fields(Small& s) {
  return std::tie(s.count, s.text, s.parts);
}
struct Larger {
  std::int64_t count = 0;
  std::string text;
  std::vector<std::pair<std::string, double>> parts;
  bool more = false;
};
auto fields(Larger& s) {
  return std::tie(s.count, s.text, s.parts, s.more);
}

TEST(Wire, ARefusalNamesTheMessageTheFieldWhatWasExpectedAndWhatWasFound) {
  EXPECT_EQ(refusal<Small>(Body::of(Larger{}).to_wire()),
            "message 'x': expected a list of 3 fields, found a list of 4");
  EXPECT_EQ(refusal<Larger>(Body::of(Small{}).to_wire()),
            "message 'x': expected a list of 4 fields, found a list of 3");
  EXPECT_EQ(refusal<Small>(Body::of(std::string("hello")).to_wire()),
            "message 'x': expected a list of 3 fields, found the text \"hello\"");
  using Wide =
      std::pair<std::int64_t, std::pair<std::string, std::vector<std::pair<std::string, bool>>>>;
  using Narrow =
      std::pair<std::int32_t, std::pair<std::string, std::vector<std::pair<std::string, double>>>>;
  EXPECT_EQ(refusal<Narrow>(Body::of(Wide{1LL << 40, {}}).to_wire()),
            "message 'x', field 0: expected an integer from -2147483648 to 2147483647, found the "
            "number 1099511627776");
  EXPECT_EQ(refusal<Narrow>(
                Body::of(Wide{1, {"", {{"a", true}, {"as long as a double", true}}}}).to_wire()),
            "message 'x', field 1.1.0.1: expected a double, found a boolean");
  EXPECT_EQ(refusal<Small>(WireBody{}), "message 'x': expected a list of 3 fields, found the end");
}

TEST(Wire, LengthsTypesTextsDepthAndPartsAreChecked) {
  const auto with = [](auto change) {
    WireBody body = arrived(Body::of(std::vector<float>(1000, 1.0f)).to_wire());
    change(body);
    return refusal<std::vector<float>>(body);
  };
  EXPECT_EQ(with([](WireBody&) {}), "taken");
  EXPECT_THAT(with([](WireBody& b) { b.parts[0].size -= 1; }),
              testing::HasSubstr("found a part of 3999 bytes"));
  EXPECT_THAT(with([](WireBody& b) { b.parts[0].size -= 4; }),
              testing::HasSubstr("found a part of 3996 bytes"));
  EXPECT_THAT(with([](WireBody& b) { b.header[1] = 1; }),
              testing::HasSubstr("one of 1 parts, found part 1"));
  EXPECT_THAT(with([](WireBody& b) { b.header[2] = 7; }),
              testing::HasSubstr("an array of f32, found u64"));
  EXPECT_THAT(with([](WireBody& b) { b.header[2] = 100; }), testing::HasSubstr("an unknown dtype"));
  EXPECT_THAT(with([](WireBody& b) { b.header += "\x01"; }),
              testing::HasSubstr("expected the end, found 1 more bytes"));
  EXPECT_THAT(with([](WireBody& b) { b.parts.push_back(b.parts[0]); }),
              testing::HasSubstr("part 1 of 2 unused"));
  EXPECT_THAT(refusal<std::vector<float>>(WireBody{"\xd5\x09\x01\x02", {}}),
              testing::HasSubstr("2 bytes, which is not a multiple"));
  EXPECT_THAT(refusal<std::vector<float>>(WireBody{std::string("\xc7\x00\x03", 3), {}}),
              testing::HasSubstr("found an array of dtype 3"));
  EXPECT_THAT(refusal<std::string>(WireBody{"\xa3"
                                            "a\xff"
                                            "b",
                                            {}}),
              testing::HasSubstr("expected a UTF-8 string, found an invalid byte at offset 1"));
  EXPECT_THAT(refusal<std::string>(WireBody{"\xa9"
                                            "ab",
                                            {}}),
              testing::HasSubstr("truncated msgpack"));
  EXPECT_THAT(refusal<Json>(WireBody{std::string(100, '\x91'), {}}),
              testing::HasSubstr("nested at most 64 levels deep"));
  EXPECT_THAT(refusal<Json>(WireBody{"\x82\xa1"
                                     "k\xc0\xa1"
                                     "k\xc0",
                                     {}}),
              testing::HasSubstr("unique keys, found a second \"k\""));
  EXPECT_THAT(
      refusal<std::vector<std::string>>(WireBody{std::string("\xdd\xff\xff\xff\xff", 5), {}}),
      testing::HasSubstr("at most 0 elements in the 0 remaining bytes, found 4294967295"));
  EXPECT_THAT(refusal<Errc>(WireBody{"\x0b", {}}),
              testing::HasSubstr("an integer from 0 to 10, found the number 11"));
  EXPECT_THAT(refusal<std::optional<int>>(WireBody{"\x92\x01\x02", {}}),
              testing::HasSubstr("at most one value, found 2 values"));
}

TEST(Wire, AnErrorTravelsWithItsKind) {
  const Error back = through(Error{Errc::full, "the mailbox is full"});
  EXPECT_EQ(back.code, Errc::full);
  EXPECT_EQ(back.what, "the mailbox is full");
}

TEST(Wire, ATypeWithoutFieldsStaysInItsProcess) {
  EXPECT_THROW(Body::of(std::make_unique<int>(7)).to_wire(), Bug);
  EXPECT_THROW(Body::of_wire({}, "x").take<std::unique_ptr<int>>(), Bug);
  EXPECT_THROW(Body::of(std::string("\xff")).to_wire(), Failure);
}

/// One random change of an encoding: a bit, a byte, a cut, an insertion, a part cut, doubled,
/// swapped or emptied.
void mutate(WireBody& body, RandomValue& random) {
  std::string& header = body.header;
  auto& parts = body.parts;
  const std::uint64_t kind = random.below(parts.empty() ? 5 : 9);
  const std::size_t at = header.empty() ? 0 : random.below(header.size());
  if (kind == 0 && !header.empty())
    header[at] = static_cast<char>(header[at] ^ (1 << random.below(8)));
  if (kind == 1 && !header.empty()) header[at] = static_cast<char>(random.below(256));
  if (kind == 2) header.resize(at);
  if (kind == 3) header.insert(at, 1 + random.below(4), static_cast<char>(random.below(256)));
  if (kind == 4 && !header.empty()) header.erase(at, 1 + random.below(4));
  if (kind < 5) return;
  const std::size_t which = random.below(parts.size());
  if (kind == 5) parts[which].size = random.below(parts[which].size + 1);
  if (kind == 6) parts.push_back(parts[which]);
  if (kind == 7) std::swap(parts[which], parts[random.below(parts.size())]);
  if (kind == 8) parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(which));
}

TEST(Wire, ThousandsOfDamagedMessagesAreRefusedOrTakenNeverMore) {
  std::size_t refused = 0, taken = 0;
  for_all([&]<class T>(std::type_identity<T>, const std::string& name) {
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
      RandomValue random(seed, 6);
      WireBody body = arrived(Body::of(random.make<T>()).to_wire());
      for (std::uint64_t n = 1 + random.below(3); n > 0; --n) mutate(body, random);
      std::size_t size = 4096 + body.header.size();
      for (const auto& part : body.parts) size += part.size;
      Body damaged = Body::of_wire(body, name);
      const std::size_t before = test::allocated_bytes();
      const bool ok = damaged.try_take<T>().has_value();
      EXPECT_LE(test::allocated_bytes() - before, 64 * size) << name << ", seed " << seed;
      ++(ok ? taken : refused);
    }
  });
  EXPECT_GT(refused, 5000u);
  EXPECT_GT(taken, 500u);  // a flipped bit of a number is another number
}

}  // namespace
}  // namespace troupe::transports
