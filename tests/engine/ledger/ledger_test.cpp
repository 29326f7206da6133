// What a ledger keeps, and what it notices when it is opened again.
#include "tests/engine/ledger/ledger_fixture.h"

namespace troupe::engine::ledger {
namespace {

using testing::HasSubstr;

TEST_F(LedgerTest, RowsAndPayloadsAreThereWhenItIsOpenedAgain) {
  Anchor anchor;
  {
    auto ledger = value_or_throw(open());
    append_samples(*ledger, 1, 3);
    anchor = value_or_throw(ledger->anchor());
    EXPECT_EQ(anchor.length, 3);
  }
  auto ledger = value_or_throw(open(anchor));
  append_samples(*ledger, 4, 1);
  EXPECT_EQ(payloads(),
            (std::vector<std::string>{payload_of(1), payload_of(2), payload_of(3), payload_of(4)}));
  EXPECT_TRUE(std::filesystem::exists(path("ledger/000001.seg")));
  EXPECT_TRUE(std::filesystem::exists(path("ledger/000002.seg")));  // never another process's
}

TEST_F(LedgerTest, TheHashOfARowIsThatOfItsTextAndOfTheRowBefore) {
  auto ledger = value_or_throw(open());
  value_or_throw(ledger->append({.kind = Kind::dropped,
                                 .samples = {7, 9},
                                 .batch = 2,
                                 .step = {},
                                 .hash = {},
                                 .detail = R"({"reason":"a|b"})"}));
  value_or_throw(ledger->append(
      {.kind = Kind::committed, .samples = {}, .batch = 2, .step = 3, .hash = {}, .detail = {}}));
  const Anchor anchor = value_or_throw(ledger->anchor());
  const std::string first = chain_hash(first_hash(), R"(1|dropped|[7,9]|2|||{"reason":"a|b"}|||)");
  EXPECT_EQ(anchor.head, chain_hash(first, "2|committed||2|3|||||"));
}

TEST_F(LedgerTest, ManyRowsAreOneTransaction) {
  auto ledger = value_or_throw(open());
  append_samples(*ledger, 1, 1000);
  EXPECT_EQ(ledger->counts().rows, 1000);
  EXPECT_LE(ledger->counts().syncs, 12);
  EXPECT_EQ(ledger->counts().waits, 1);
}

TEST_F(LedgerTest, RowsThatNobodyWaitsForAreWrittenToo) {
  auto ledger = value_or_throw(open());
  value_or_throw(ledger->append(sampled(1), payload_of(1)));
  for (int tries = 0; tries < 6000 && ledger->counts().rows == 0; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(ledger->counts().rows, 1);
  EXPECT_EQ(ledger->counts().waits, 0);
}

TEST_F(LedgerTest, AReaderSeesTheRowsWhileItIsWritten) {
  auto ledger = value_or_throw(open());
  append_samples(*ledger, 1, 2);
  auto reader = value_or_throw(Database::open(path("ledger.db"), Database::Access::read));
  auto rows = value_or_throw(reader.prepare("SELECT count(*), max(state) FROM samples"));
  ASSERT_TRUE(value_or_throw(rows.next()));
  EXPECT_EQ(rows.integer(0), 2);
  EXPECT_EQ(rows.text(1), "sampled");
}

TEST_F(LedgerTest, ASegmentIsRemovedAfterItsRowIsDurable) {
  auto ledger = value_or_throw(open());
  append_samples(*ledger, 1, 2);
  ledger->start_segment();
  append_samples(*ledger, 3, 1);
  value_or_throw(ledger->remove_segment(1));
  value_or_throw(ledger->anchor());
  ledger.reset();
  EXPECT_FALSE(std::filesystem::exists(path("ledger/000001.seg")));
  EXPECT_TRUE(std::filesystem::exists(path("ledger/000002.seg")));
}

TEST_F(LedgerTest, AnErrorOfTheWritingThreadIsThatOfEveryLaterCall) {
  LedgerOptions options;
  options.before = [](std::string_view operation) -> Result<> {
    if (operation == "commit") return fail(Errc::io, "no space left on the disk");
    return {};
  };
  auto ledger = value_or_throw(open({}, options));
  const auto sequence = value_or_throw(ledger->append(sampled(1), payload_of(1)));
  EXPECT_THAT(ledger->wait_durable(sequence).error().what, HasSubstr("no space left"));
  EXPECT_EQ(ledger->append(sampled(2), payload_of(2)).error().code, Errc::io);
  EXPECT_EQ(ledger->anchor().error().code, Errc::io);
}

TEST_F(LedgerTest, WhatWasChangedIsNamedWhenItIsOpened) {
  Anchor anchor;
  {
    auto ledger = value_or_throw(open());
    append_samples(*ledger, 1, 5);
    anchor = value_or_throw(ledger->anchor());
    append_samples(*ledger, 6, 5);
  }
  const auto expect_refused = [&](const std::string& sql, const std::string& what) {
    SCOPED_TRACE(sql);
    const std::string copy = value_or_throw(read_file(path("ledger.db")));
    edit(sql);
    const auto opened = open(anchor);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::corrupt);
    EXPECT_THAT(opened.error().what, HasSubstr(what));
    value_or_throw(write_file_durably(path("ledger.db"), copy));
  };
  expect_refused("DELETE FROM events WHERE sequence > 4", "expected 5 rows or more, found 4");
  expect_refused("UPDATE events SET chain = 'x' WHERE sequence = 5", "row 5: expected the hash");
  expect_refused("UPDATE events SET samples = '[9]' WHERE sequence = 7",
                 "row 7: expected the hash");
  expect_refused("UPDATE events SET hash = 'x' WHERE sequence = 10", "row 10: expected the hash");
  expect_refused("DELETE FROM events WHERE sequence = 8", "row 8 is missing");
  EXPECT_TRUE(open(anchor));
}

TEST_F(LedgerTest, AFileThatIsNoDatabaseIsRefused) {
  value_or_throw(write_file_durably(path("ledger.db"), std::string(9000, 'x')));
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_THAT(opened.error().what, HasSubstr("ledger.db"));
}

TEST_F(LedgerTest, ALinkInPlaceOfTheDatabaseIsNotFollowed) {
  value_or_throw(write_file_durably(path("elsewhere"), ""));
  std::filesystem::create_symlink(path("elsewhere"), path("ledger.db"));
  EXPECT_FALSE(open());
  EXPECT_EQ(value_or_throw(read_file(path("elsewhere"))), "");
}

TEST_F(LedgerTest, AnotherFormatIsRefused) {
  { value_or_throw(open()); }
  edit("PRAGMA user_version = 7");
  EXPECT_EQ(open().error().code, Errc::unsupported);
}

}  // namespace
}  // namespace troupe::engine::ledger
