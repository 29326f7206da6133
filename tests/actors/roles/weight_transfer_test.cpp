// Weights between processes: every coding keeps every bit, and what is damaged, lost, repeated or
// of a wrong length is refused before memory is taken for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "actors/roles/weight_assembly.h"
#include "actors/roles/weight_coding.h"
#include "engine/base/random/random.h"
#include "engine/checkpoint/half.h"
#include "transports/wire/codec.h"

namespace troupe::actors::roles {
namespace {

using protocol::LoadWeights, protocol::ReadWeights, protocol::WeightPart;
using testing::HasSubstr;
using Values = std::vector<float>;

constexpr std::uint64_t seed = 2409;

float rounded(float value) {
  return engine::checkpoint::bf16_to_float(engine::checkpoint::float_to_bf16(value));
}

Values normal_values(std::size_t count, std::uint64_t stream) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(0.02 * std::sqrt(-2 * std::log(1 - uniform(seed, stream, i))) *
                                   std::cos(6.283185 * uniform(seed, stream + 1, i)));
  return values;
}

// After a step of AdamW at a learning rate of 1e-6, whose updates have about its size.
Values after_a_step(const Values& before) {
  Values values = before;
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] -= static_cast<float>(1e-6 * (2 * uniform(seed, 90, i) - 1));
  return values;
}

Values in_bf16(Values values) {
  for (float& value : values) value = rounded(value);
  return values;
}

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

Values round_trip(WeightCoding coding, const Values& values, const Values& base) {
  Values found(values.size(), 7.0f);
  const auto bytes = encode_values(coding, values, base);
  value_or_throw(decode_values(coding, bytes, base, found));
  return found;
}

SharedArray<float> shared(Values values) {
  return std::make_shared<const Values>(std::move(values));
}

class WeightCodings : public testing::TestWithParam<WeightCoding> {};

TEST_P(WeightCodings, KeepEveryBitOfEveryLength) {
  for (const std::size_t count : {1u, 2u, 63u, 64u, 65u, 511u, 513u, 4095u, 4096u, 4097u, 9001u}) {
    const Values base = normal_values(count, 1);
    for (Values values : {base, after_a_step(base), in_bf16(base), normal_values(count, 5)}) {
      values[count / 2] = std::numeric_limits<float>::quiet_NaN();
      values[count - 1] = -0.0f;
      ASSERT_EQ(bits_of(round_trip(GetParam(), values, base)), bits_of(values)) << count;
    }
  }
}

TEST_P(WeightCodings, RefuseEveryOtherLength) {
  const Values base = normal_values(700, 1), values = after_a_step(base);
  const auto bytes = encode_values(GetParam(), values, base);
  Values found(values.size());
  for (std::size_t length = 0; length < bytes.size(); length += 1 + length / 50)
    EXPECT_FALSE(decode_values(GetParam(), std::span(bytes).first(length), base, found)) << length;
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_values(GetParam(), longer, base, found));
}

TEST_P(WeightCodings, SurviveAnyBytes) {
  const Values base = normal_values(5000, 1);
  Values found(base.size());
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes(uniform_below(9000, seed, 7, round));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(uniform_below(256, seed, 100 + round, i));
    static_cast<void>(decode_values(GetParam(), bytes, base, found));
  }
}

std::string coding_name(const testing::TestParamInfo<WeightCoding>& of) {
  return std::string(name_of(of.param));
}
INSTANTIATE_TEST_SUITE_P(All, WeightCodings,
                         testing::Values(WeightCoding::f32, WeightCoding::bf16,
                                         WeightCoding::delta),
                         coding_name);

TEST(WeightCoding, OfBf16TakesHalfTheBytes) {
  const Values values = in_bf16(normal_values(100000, 1));
  EXPECT_LT(encode_values(WeightCoding::bf16, values, {}).size(), 2.01 * 100000);
}

TEST(WeightCoding, OfADeltaOfBf16IsAFifthAtMostAfterAStep) {
  const Values before = normal_values(1000000, 1);
  const auto bytes =
      encode_values(WeightCoding::delta, in_bf16(after_a_step(before)), in_bf16(before));
  EXPECT_LT(bytes.size(), 2 * 1000000 / 5);
  EXPECT_GT(bytes.size(), 1000u) << "something has changed";
}

// A model of 1,000 values in parts of 300.
struct Arriving : testing::Test {
  Values before = normal_values(1000, 1), values = after_a_step(before);
  BaseWeights base{4, shared(before)};
  WeightAssembly assembly{1000};

  WeightPart part(std::size_t first, WeightCoding coding = WeightCoding::f32,
                  std::uint64_t count = 300) const {
    const ReadWeights wanted{5, first, std::min<std::uint64_t>(count, 1000 - first), coding, 4};
    return value_or_throw(weight_part(wanted, values, base));
  }
  Error refusal(const WeightPart& of) {
    const auto loaded = assembly.load(of, base);
    return loaded ? Error{Errc::internal, "taken"} : loaded.error();
  }
};

TEST_F(Arriving, InPartsIsWhatWasSentInEveryCoding) {
  for (const auto coding : {WeightCoding::f32, WeightCoding::bf16, WeightCoding::delta}) {
    for (std::size_t first = 0; first < 1000; first += 300)
      value_or_throw(assembly.load(part(first, coding), base));
    EXPECT_EQ(bits_of(*value_or_throw(assembly.take(5))), bits_of(values));
  }
}

TEST_F(Arriving, APartThatIsLostIsNamed) {
  value_or_throw(assembly.load(part(0), base));
  EXPECT_THAT(refusal(part(600)).what, HasSubstr("expected the part that begins at 300"));
  EXPECT_FALSE(assembly.take(5));
}

TEST_F(Arriving, AByteThatChangesOnTheWayIsNoticed) {
  for (const auto coding : {WeightCoding::f32, WeightCoding::bf16, WeightCoding::delta}) {
    value_or_throw(assembly.load(part(0, coding), base));
    WeightPart damaged = part(300, coding);
    std::vector<std::byte> bytes(damaged.bytes->begin(), damaged.bytes->end());
    bytes.back() ^= std::byte{1};
    damaged.bytes = std::make_shared<const std::vector<std::byte>>(bytes);
    EXPECT_EQ(refusal(damaged).code, Errc::corrupt);
    EXPECT_FALSE(assembly.take(5));
  }
}

TEST_F(Arriving, TheFirstPartBeginsAgain) {
  value_or_throw(assembly.load(part(0), base));
  value_or_throw(assembly.load(part(0), base));
  for (const std::size_t first : {300u, 600u, 900u})
    value_or_throw(assembly.load(part(first), base));
  EXPECT_TRUE(assembly.take(5));
  EXPECT_FALSE(assembly.take(5)) << "once";
}

TEST_F(Arriving, PartsOfTwoVersionsAreNotMixed) {
  value_or_throw(assembly.load(part(0), base));
  WeightPart other = part(300);
  other.version = 6;
  EXPECT_EQ(refusal(other).code, Errc::bad_input);
}

TEST_F(Arriving, PositionsOutsideOfTheModelAreRefused) {
  constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [first, count] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 0}, {0, 1001}, {0, huge}, {huge, 1}, {900, 101}, {huge, huge}}) {
    WeightPart hostile = part(0);
    hostile.first = first;
    hostile.count = count;
    EXPECT_EQ(refusal(hostile).code, Errc::bad_input) << first << " " << count;
    EXPECT_FALSE(weight_part({5, first, count, WeightCoding::f32, 0}, values, base) && count != 0);
  }
}

TEST_F(Arriving, ADeltaNeedsTheVersionThatItRefersTo) {
  base.version = 3;
  WeightPart delta = part(0);
  EXPECT_EQ(part(0, WeightCoding::delta).coding, WeightCoding::bf16) << "the sender lacks it";
  delta.coding = WeightCoding::delta;
  delta.base = 4;
  EXPECT_THAT(refusal(delta).what, HasSubstr("a difference to version 4, found version 3"));
  base = {};
  EXPECT_THAT(refusal(delta).what, HasSubstr("not kept"));
}

TEST_F(Arriving, TheMessageHasAWireForm) {
  const LoadWeights message{part(300, WeightCoding::delta)};
  const auto come = transports::wire::decode<LoadWeights>(
      transports::wire::encode(message, nullptr), "load_weights");
  EXPECT_EQ(come.part.checksum, message.part.checksum);
  EXPECT_TRUE(std::ranges::equal(*come.part.bytes, *message.part.bytes));
}

TEST_F(Arriving, InSharedMemoryIsNotCopied) {
  auto memory = value_or_throw(SharedMemory::create(1000 * sizeof(float)));
  value_or_throw(memory->append(std::as_bytes(std::span(values))));
  EXPECT_FALSE(assembly.map({5, memory->name()})) << "it is not sealed yet";
  value_or_throw(memory->seal());
  value_or_throw(assembly.map({5, memory->name()}));
  const auto found = value_or_throw(assembly.take(5));
  memory.reset();
  EXPECT_EQ(bits_of(*found), bits_of(values));
}

}  // namespace
}  // namespace troupe::actors::roles
