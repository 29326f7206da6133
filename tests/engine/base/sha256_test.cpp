// SHA-256 against the vectors of FIPS 180-4 (NIST's examples) and at every length around a block.
#include "engine/base/random/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

std::string digest(const std::string& text, std::size_t first_part) {
  Sha256 hash;
  const auto bytes = std::as_bytes(std::span(text));
  hash.update(bytes.first(first_part));
  hash.update(bytes.subspan(first_part));
  return hash.finish();
}

TEST(Sha256, HasThePublishedDigests) {
  EXPECT_EQ(digest("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", 1), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 50),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a'), 77777),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnTheParts) {
  for (std::size_t length = 50; length < 140; ++length) {
    const std::string text(length, 'x');
    const std::string whole = digest(text, 0);
    for (std::size_t part = 1; part <= length; part += 7) EXPECT_EQ(digest(text, part), whole);
  }
}

}  // namespace
}  // namespace troupe
