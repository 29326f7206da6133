#include "engine/checkpoint/safetensors.h"

#include <gmock/gmock.h>

#include <ctime>
#include <string_view>

#include "engine/base/random/random.h"
#include "engine/base/text/text.h"
#include "tests/engine/checkpoint/scratch.h"
#include "tests/support/allocations.h"
#include "tests/support/sanitized.h"

namespace troupe::engine::checkpoint {
namespace {

using namespace std::string_view_literals;

using ::testing::HasSubstr;

TEST(Safetensors, ReadsEachFloatTypeExactly) {
  Scratch scratch;
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]},)"
      R"("c":{"dtype":"F16","shape":[],"data_offsets":[12,14]},"d":{"dtype":"F64","shape":[1],"data_offsets":[14,22]}})";
  const double third = 1.0 / 3;
  std::string data = bytes_of_floats({1.5f, -2.25f}) + std::string("\x80\x3f\x00\xc0", 4) +
                     std::string("\x00\x3c", 2);
  data.append(reinterpret_cast<const char*>(&third), 8);
  put(scratch / "x", safetensors_bytes(header, data));
  const auto file = SafetensorsFile::open(scratch / "x");
  ASSERT_TRUE(file) << file.error().what;
  std::vector<float> two(2), one(1);
  ASSERT_TRUE(file->read_f32("a", two));
  EXPECT_EQ(two, (std::vector<float>{1.5f, -2.25f}));
  ASSERT_TRUE(file->read_f32("b", two));
  EXPECT_EQ(two, (std::vector<float>{1, -2}));
  ASSERT_TRUE(file->read_f32("c", one));
  EXPECT_EQ(one[0], 1);
  ASSERT_TRUE(file->read_f32("d", one));
  EXPECT_EQ(one[0], 1.0f / 3);
  std::vector<double> exact(1);
  ASSERT_TRUE(file->read_f64("d", exact));
  EXPECT_EQ(exact[0], third);
  EXPECT_THAT(file->read_f32("a", one).error().what, HasSubstr("expected 1 elements, found [2]"));
  EXPECT_THAT(file->read_f32("zz", one).error().what, HasSubstr("no tensor \"zz\""));
}

TEST(Safetensors, ReadsRowsOrColumnsOfATensorAndRefusesThoseThatAreNotThere) {
  Scratch scratch;
  const std::string header =
      R"({"m":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},"h":{"dtype":"BF16","shape":[2,2],)"
      R"("data_offsets":[48,56]},"v":{"dtype":"F32","shape":[3],"data_offsets":[56,68]}})";
  const std::string halves("\x80\x3f\x00\x40\x40\x40\x80\x40", 8);  // 1 2 3 4
  put(scratch / "x",
      safetensors_bytes(header, bytes_of_floats({0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}) +
                                    halves + bytes_of_floats({7, 8, 9})));
  const auto file = value_or_throw(SafetensorsFile::open(scratch / "x"));
  const auto part = [&](std::string_view name, parallel::Shard which, std::size_t count) {
    std::vector<float> values(count, -1.0f);
    value_or_throw(file.read_part(name, which, values));
    return values;
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(part("m", {0, 1, 3, 3}, 8), (Floats{10, 11, 12, 13, 20, 21, 22, 23}));
  EXPECT_EQ(part("m", {1, 1, 3, 4}, 6), (Floats{1, 2, 11, 12, 21, 22}));
  EXPECT_EQ(part("m", {}, 12).back(), 23);
  EXPECT_EQ(part("h", {1, 1, 2, 2}, 2), (Floats{2, 4}));
  EXPECT_EQ(part("v", {0, 1, 2, 3}, 1), (Floats{8}));
  EXPECT_EQ(part("v", {0, 2, 2, 3}, 0), (Floats{}));
  Floats two(2);
  for (const parallel::Shard wrong :
       {parallel::Shard{0, 1, 3, 4}, {0, 2, 4, 3}, {0, -1, 1, 3}, {1, 0, 2, 3}, {0, 0, 1, 3}})
    EXPECT_THAT(file.read_part("v", wrong, two).error().what,
                HasSubstr("tensor \"v\": expected 2 elements"))
        << wrong.begin;
  EXPECT_EQ(file.read_part("w", {0, 0, 1, 3}, two).error().code, Errc::not_found);
}

TEST(Safetensors, ReadsIntegersAndRefusesThoseThatDoNotFit) {
  Scratch scratch;
  std::string data(16, '\0');
  const std::int64_t values[2] = {-7, std::int64_t{1} << 40};
  std::memcpy(data.data(), values, 16);
  put(scratch / "x",
      safetensors_bytes(
          R"({"a":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"e":{"dtype":"U8","shape":[0],"data_offsets":[16,16]}})",
          data));
  const auto file = SafetensorsFile::open(scratch / "x");
  ASSERT_TRUE(file) << file.error().what;
  std::vector<std::int64_t> wide(2);
  ASSERT_TRUE(file->read_i64("a", wide));
  EXPECT_EQ(wide, (std::vector<std::int64_t>{-7, std::int64_t{1} << 40}));
  std::vector<std::int32_t> narrow(2);
  EXPECT_EQ(file->read_i32("a", narrow).error().code, Errc::unsupported);
  std::vector<float> floats(2);
  EXPECT_THAT(file->read_f32("a", floats).error().what,
              HasSubstr("expected F32, BF16, F16 or F64, found I64"));
  EXPECT_TRUE(file->read_i32("e", {}));
}

struct Hostile {
  const char* name;
  std::string bytes;
  const char* words;  // must stand in the message
};

std::string length_then(std::uint64_t length, std::string_view rest) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out.append(rest);
}

std::vector<Hostile> hostile_files() {
  const auto of = [](const std::string& members, std::size_t data) {
    return safetensors_bytes("{" + members + "}", std::string(data, '\0'));
  };
  const std::string a = tensor("a", "F32", "[2]", "[0,8]");
  std::string many = "{" + a;
  for (int i = 0; i < 200000; ++i)
    many += "," + tensor("t" + std::to_string(i), "U8", "[0]", "[8,8]");
  const std::string zeros = [] {
    std::string s = "[1";
    for (int i = 0; i < 4'000'000; ++i) s += ",1";
    return s + "]";
  }();
  return {
      {"empty file", "", "8-byte header length"},
      {"seven bytes", std::string(7, '\0'), "8-byte header length"},
      {"no header", length_then(0, ""), "must be a JSON object"},
      {"N = 2^63", length_then(std::uint64_t{1} << 63, "{}"), "cut short"},
      {"N = 2^64 - 1", length_then(~std::uint64_t{0}, "{}"), "cut short"},
      {"N = 2^64 - 8, which wraps", length_then(~std::uint64_t{7}, "{}"), "cut short"},
      {"N one beyond the file", length_then(3, "{}"), "cut short"},
      {"header over the limit", safetensors_bytes("{" + std::string(17 << 20, ' ') + "}", ""),
       "at most 16777216 are read"},
      {"not JSON", safetensors_bytes("{nope}", ""), "not valid JSON"},
      {"an array", safetensors_bytes("[1,2]", ""), "must be a JSON object"},
      {"space before", safetensors_bytes(" {}", ""), "must be a JSON object"},
      {"a pickle", length_then(6, "\x80\x02}q\x01."), "must be a JSON object"},
      {"text after", safetensors_bytes("{}x", ""), "not valid JSON"},
      {"not UTF-8", safetensors_bytes("{\"\xff\":1}", ""), "UTF-8"},
      {"depth 1,000,000", safetensors_bytes("{\"a\":" + std::string(1'000'000, '['), ""),
       "nested deeper than 3"},
      {"nested objects", of("\"a\":{\"b\":{\"c\":{}}}", 0), "nested deeper than 3"},
      {"200,000 tensors", safetensors_bytes(many + "}", std::string(8, '\0')), "values; at most"},
      {"a shape of 4,000,000 axes", of(tensor("a", "U8", zeros, "[0,1]"), 1), "values; at most"},
      {"a shape of 100,000 axes", of(tensor("a", "U8", zeros.substr(0, 200000) + "]", "[0,2]"), 2),
       "needs 1 bytes, found 2"},
      {"duplicate names", of(a + "," + tensor("a", "F32", "[2]", "[8,16]"), 16), "occurs twice"},
      {"duplicate members",
       of(R"("a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})", 8),
       "occurs twice"},
      {"no dtype", of(R"("a":{"shape":[2],"data_offsets":[0,8]})", 8),
       "\"dtype\" must be a string"},
      {"dtype a number", of(R"("a":{"dtype":7,"shape":[2],"data_offsets":[0,8]})", 8),
       "\"dtype\" must be a string"},
      {"unknown dtype", of(tensor("a", "F31", "[2]", "[0,8]"), 8), "unknown dtype \"F31\""},
      {"no shape", of(R"("a":{"dtype":"F32","data_offsets":[0,8]})", 8),
       "\"shape\" must be a list of integers >= 0, found none"},
      {"shape a string", of(tensor("a", "F32", "\"2\"", "[0,8]"), 8), "\"shape\" must be a list"},
      {"negative size", of(tensor("a", "F32", "[-2]", "[0,8]"), 8), "found -2"},
      {"size 2.0", of(tensor("a", "F32", "[2.0]", "[0,8]"), 8), "found 2.0"},
      {"size 2^64", of(tensor("a", "F32", "[18446744073709551616]", "[0,8]"), 8),
       "\"shape\" must be a list"},
      {"size null", of(tensor("a", "F32", "[null]", "[0,8]"), 8), "found null"},
      {"product overflows to 0", of(tensor("a", "F32", "[4294967296,4294967296]", "[0,0]"), 0),
       "multiply to more than"},
      {"bits overflow", of(tensor("a", "F32", "[1152921504606846976]", "[0,0]"), 0),
       "multiply to more than"},
      {"overflow behind a zero", of(tensor("a", "F32", "[0,4294967296,4294967296]", "[0,0]"), 0),
       "multiply to more than"},
      {"overflow beside a zero", of(tensor("a", "F32", "[4294967296,4294967296,0]", "[0,0]"), 0),
       "multiply to more than"},
      {"half a byte", of(tensor("a", "F4", "[3]", "[0,2]"), 2), "whole bytes"},
      {"no offsets", of(R"("a":{"dtype":"F32","shape":[2]})", 8),
       "\"data_offsets\" must be a list"},
      {"one offset", of(tensor("a", "F32", "[2]", "[8]"), 8), "must be two numbers, found 1"},
      {"three offsets", of(tensor("a", "F32", "[2]", "[0,8,16]"), 16),
       "must be two numbers, found 3"},
      {"negative offset", of(tensor("a", "F32", "[2]", "[-8,0]"), 8), "found -8"},
      {"offsets reversed", of(tensor("a", "F32", "[2]", "[8,0]"), 8), "before it begins"},
      {"offset 2^63", of(tensor("a", "F32", "[2]", "[0,9223372036854775808]"), 8),
       "\"data_offsets\" must be a list"},
      {"size mismatch", of(tensor("a", "F32", "[3]", "[0,8]"), 8), "needs 12 bytes, found 8"},
      {"ends beyond the file", of(a, 4), "ends at byte 8 of the data, but the file holds 4"},
      {"far beyond the file",
       of(tensor("a", "U8", "[9223372036854775]", "[0,9223372036854775]"), 4),
       "but the file holds 4"},
      {"bytes after", of(a, 9), "end at byte 8 of the data, but the file holds 9"},
      {"data without tensors", of("", 8), "end at byte 0"},
      {"overlap", of(a + "," + tensor("b", "F32", "[2]", "[4,12]"), 12), "overlaps"},
      {"the same bytes twice", of(a + "," + tensor("b", "F32", "[2]", "[0,8]"), 8), "overlaps"},
      {"hole", of(a + "," + tensor("b", "F32", "[1]", "[12,16]"), 16), "hole"},
      {"hole before the first", of(tensor("a", "F32", "[1]", "[4,8]"), 8), "hole"},
      {"empty tensor inside another", of(a + "," + tensor("b", "F32", "[0]", "[4,4]"), 8),
       "overlaps"},
      {"metadata a list", of("\"__metadata__\":[]", 0), "__metadata__"},
      {"metadata of numbers", of("\"__metadata__\":{\"a\":1}", 0),
       "must be a string, found integer"},
      {"a tensor that is a number", of("\"a\":1", 0), "must be an object, found integer"},
      {"NUL in a name", of(tensor("a\\u0000b", "F32", "[2]", "[0,8]"), 8), "control characters"},
      {"no name", of(tensor("", "F32", "[2]", "[0,8]"), 8), "without a name"},
      {"two objects", safetensors_bytes("{}{}", ""), "not valid JSON"},
      {"offsets NaN", of(tensor("a", "F32", "[2]", "[NaN,8]"), 8), "not valid JSON"},
  };
}

#ifdef TROUPE_SANITIZED
constexpr double processor_seconds = 1;  // instrumented code takes several times as long
#else
constexpr double processor_seconds = 0.1;
#endif

TEST(Safetensors, RefusesEveryHostileFileInWordsAndWithinATenthOfASecond) {
  for (const auto& [name, bytes, words] : hostile_files()) {
    const std::span<const std::byte> view(reinterpret_cast<const std::byte*>(bytes.data()),
                                          bytes.size());
    const std::size_t asked = test::allocated_bytes();
    const std::clock_t before =
        std::clock();  // processor time: other programs on the machine do not count
    const auto header = parse_safetensors_header(view, "evil.safetensors");
    const double seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    ASSERT_FALSE(header) << name;
    EXPECT_THAT(header.error().what, HasSubstr(words)) << name;
    EXPECT_THAT(header.error().what, HasSubstr("evil.safetensors")) << name;
    EXPECT_LT(header.error().what.size(), 500u) << name;
    EXPECT_LT(seconds, processor_seconds) << name;
    // A lie costs nothing; a long header costs what its values cost.
    EXPECT_LT(test::allocated_bytes() - asked,
              bytes.size() < 1024 ? std::size_t{64} << 10 : std::size_t{32} << 20)
        << name;
  }
}

TEST(Safetensors, RefusesATruncationAtEveryLength) {
  const std::string whole =
      safetensors_bytes("{" + tensor("a", "F32", "[2]", "[0,8]") + "}", std::string(8, '\1'));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::span<const std::byte> view(reinterpret_cast<const std::byte*>(whole.data()), length);
    EXPECT_FALSE(parse_safetensors_header(view, "cut")) << length;
  }
  const std::span<const std::byte> view(reinterpret_cast<const std::byte*>(whole.data()),
                                        whole.size());
  EXPECT_TRUE(parse_safetensors_header(view, "whole"));
}

// Whatever passes the checks must be readable to the last byte and account for all of them.
void expect_consistent(const SafetensorsHeader& header, std::size_t file_bytes, std::size_t round) {
  std::size_t at = header.data_begin;
  for (const auto& tensor : header.tensors) {
    ASSERT_EQ(header.data_begin + tensor.begin, at) << round;
    ASSERT_EQ(static_cast<std::size_t>(tensor.count()) * bits_of(tensor.type),
              (tensor.end - tensor.begin) * 8)
        << round;
    at = header.data_begin + tensor.end;
  }
  ASSERT_EQ(at, file_bytes) << round;
}

TEST(Safetensors, MutatedFilesAreRefusedOrConsistent) {
  const std::string seed = safetensors_bytes(R"({"__metadata__":{"format":"pt"},)" +
                                                 tensor("a", "F32", "[2,3]", "[0,24]") + "," +
                                                 tensor("b.weight", "BF16", "[4]", "[24,32]") +
                                                 "," + tensor("c", "I64", "[]", "[32,40]") + "}",
                                             std::string(40, '\1'));
  constexpr std::string_view alphabet = "0123456789-[]{}\",:.eF \\\0\xff"sv;
  std::size_t accepted = 0;
  for (std::size_t round = 0; round < 50000; ++round) {
    std::string bytes = seed;
    const auto draw = [&](std::uint64_t n, std::uint64_t what) {
      return static_cast<std::size_t>(uniform_below(n, 3, round, what));
    };
    for (std::size_t change = 0; change <= draw(3, 0); ++change) {
      const std::size_t place = draw(bytes.size(), 10 * change + 1),
                        kind = draw(4, 10 * change + 2);
      if (kind == 0) bytes.erase(place, 1 + draw(4, 10 * change + 3));
      if (kind == 1) bytes.insert(place, 1, alphabet[draw(alphabet.size(), 10 * change + 3)]);
      if (kind == 2) bytes[place] = alphabet[draw(alphabet.size(), 10 * change + 3)];
      if (kind == 3) bytes.insert(place, bytes.substr(draw(bytes.size(), 10 * change + 3), 20));
    }
    if (bytes.size() >= 8 &&
        draw(4, 99) != 0) {  // mostly, the length is made to fit, so that the header is reached
      const std::uint64_t length = std::min<std::size_t>(
          bytes.size() - 8, bytes.rfind('}') == std::string::npos ? 0 : bytes.rfind('}') - 7);
      std::memcpy(bytes.data(), &length, 8);
    }
    const auto header = parse_safetensors_header(
        {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "mutant");
    if (!header) continue;
    ++accepted;
    expect_consistent(*header, bytes.size(), round);
  }
  EXPECT_GT(accepted, 500u);  // names and bytes may change freely; if nothing passed, the mutants
                              // would test nothing
}

TEST(Safetensors, AFileWithoutTensorsIsAFile) {
  Scratch scratch;
  put(scratch / "x", safetensors_bytes("{}", ""));
  const auto file = SafetensorsFile::open(scratch / "x");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->tensors().empty());
}

TEST(Safetensors, RefusesWhatIsNotAFile) {
  Scratch scratch;
  EXPECT_EQ(SafetensorsFile::open(scratch.path()).error().code, Errc::io);
  EXPECT_EQ(SafetensorsFile::open(scratch / "none").error().code, Errc::not_found);
  EXPECT_EQ(SafetensorsFile::open("/dev/zero").error().code, Errc::io);
}

}  // namespace
}  // namespace troupe::engine::checkpoint
