// Finished samples are read from the ledger as they were recorded, and damage is found.
#include "launch/run/recorded_samples.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "algorithms/training/sample_ledger.h"
#include "engine/base/database/database.h"
#include "engine/base/files/file.h"
#include "tests/launch/run/finished_samples.h"

namespace troupe::launch {
namespace {

using algorithms::FinishedSample, algorithms::SampleLedger;
using engine::ledger::Anchor, engine::ledger::Ledger;
using finished_samples::expect_equal, finished_samples::samples;
using testing::HasSubstr;

class RecordedSamples : public testing::Test {
 protected:
  RecordedSamples() {
    std::string name = testing::TempDir() + "recorded-samples-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~RecordedSamples() override { std::filesystem::remove_all(folder_); }

  std::string checkpoint() const { return folder_ + "/checkpoint-7"; }
  SampleLedger open(const std::optional<Anchor>& anchor = {}) const {
    const auto output = value_or_throw(OutputFolder::open(folder_));
    SampleLedger ledger(value_or_throw(Ledger::open(output, anchor)));
    ledger.started(anchor ? 7 : 0, anchor, Json::Object{});
    return ledger;
  }
  static void record(SampleLedger& ledger, const std::vector<FinishedSample>& finished) {
    for (const auto& each : finished) ledger.sampled(each.batch, {&each.completion});
  }
  /// A checkpoint with the rows so far, after seven batches.
  Anchor save(SampleLedger& ledger) const {
    const Json anchor = ledger.anchor(7, 7);
    std::filesystem::create_directories(checkpoint() + "/training");
    value_or_throw(write_file_durably(checkpoint() + "/training/journal.json",
                                      Json(Json::Object{{"ledger", anchor}}).dump()));
    return *run::anchor_of(checkpoint());
  }
  std::optional<run::RecordedSamples> read() const {
    return run::read_recorded_samples(checkpoint(),
                                      {{.vocabulary = 100'000, .longest = 64, .newest = 7}, 40});
  }
  std::string refusal() const {
    try {
      read();
      return "";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.error().code, Errc::corrupt);
      return failure.error().what;
    }
  }
  void edit(const std::string& sql) const {
    auto database = value_or_throw(Database::open(folder_ + "/ledger.db", Database::Access::write));
    value_or_throw(database.run(sql));
  }

  std::string folder_;
};

TEST_F(RecordedSamples, AreThoseOfTheCheckpoint) {
  std::vector<FinishedSample> finished = samples(), trained(1, samples()[3]);
  trained[0].batch = 6;
  Anchor anchor;
  {
    auto ledger = open();
    record(ledger, trained);
    record(ledger, {finished.begin(), finished.begin() + 12});
    ledger.sampled(finished[12].batch, {&finished[12].completion, &finished[13].completion});
    anchor = save(ledger);
    record(ledger, {finished.begin() + 14, finished.end()});  // lost with the process
  }
  finished.resize(14);
  expect_equal(read()->samples, finished);
  {
    auto ledger = open(anchor);
    auto again = samples();
    record(ledger, {again.begin() + 14, again.begin() + 16});
    save(ledger);
  }
  const auto all = samples();
  expect_equal(read()->samples, {all.begin(), all.begin() + 16});
}

TEST_F(RecordedSamples, OfASegmentThatWasRemovedAreCounted) {
  const auto finished = samples();
  auto ledger = open();
  record(ledger, {finished.begin(), finished.begin() + 5});
  save(ledger);  // begins the second segment
  record(ledger, {finished.begin() + 5, finished.end()});
  save(ledger);
  edit("INSERT INTO events(sequence, kind, segment, chain) VALUES(1000, 'removed', 1, '')");
  std::filesystem::remove(folder_ + "/ledger/000001.seg");
  const auto found = read();
  EXPECT_EQ(found->removed, 5);
  expect_equal(found->samples, {finished.begin() + 5, finished.end()});
}

TEST_F(RecordedSamples, WithoutALedgerThereAreNone) {
  EXPECT_FALSE(read());
  {
    auto ledger = open();
    record(ledger, samples());
    save(ledger);
  }
  ASSERT_TRUE(read());
  std::filesystem::remove(folder_ + "/ledger.db");
  EXPECT_FALSE(read());
}

TEST_F(RecordedSamples, ThatAreDamagedAreNamed) {
  {
    auto ledger = open();
    record(ledger, samples());
    save(ledger);
  }
  const std::string segment = folder_ + "/ledger/000001.seg",
                    whole = value_or_throw(read_file(segment));
  std::string flipped = whole;
  flipped[whole.size() - 1] ^= 1;
  value_or_throw(write_file_durably(segment, flipped));
  EXPECT_THAT(refusal(), HasSubstr("expected a payload with the hash"));
  value_or_throw(write_file_durably(segment, whole.substr(0, whole.size() - 1)));
  EXPECT_THAT(refusal(), HasSubstr("000001.seg: row 21: expected"));
  std::filesystem::remove(segment);
  EXPECT_THAT(refusal(), HasSubstr("000001.seg"));
  value_or_throw(write_file_durably(segment, whole));
  EXPECT_EQ(refusal(), "");
  edit("UPDATE events SET detail = json_set(detail, '$.bytes[0]', 1 << 40) WHERE sequence = 9");
  EXPECT_THAT(refusal(), HasSubstr("row 9: expected ids and sizes within the payload"));
  edit("UPDATE events SET detail = '{}' WHERE sequence = 9");
  EXPECT_THAT(refusal(), HasSubstr("row 9: expected as many `bytes`"));
  edit("UPDATE events SET chain = 'x' WHERE sequence = 21");
  EXPECT_THAT(refusal(), HasSubstr("row 21: expected the hash"));
  edit("DELETE FROM events WHERE sequence = 21");
  EXPECT_THAT(refusal(), HasSubstr("expected 21 rows or more"));
}

}  // namespace
}  // namespace troupe::launch
