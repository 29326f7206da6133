// Data that is read as the run goes: the same rows as with all of it in memory, and the same again
// after any interruption.
#include <gmock/gmock.h>

#include <set>

#include "engine/base/json/fields.h"
#include "engine/data/loader/loader.h"
#include "tests/engine/data/scratch.h"

namespace troupe::engine::data {
namespace {

using ::testing::HasSubstr;
using Batches = std::vector<std::pair<std::uint64_t, std::string>>;

std::string row(int i) {
  return "{\"text\":\"row " + std::to_string(i) + "\"}\n";
}

int number_of(const std::string& text) {
  return std::stoi(text.substr(std::string("<s>row ").size()));
}

class Streams : public ::testing::Test {
 protected:
  // 23 rows in three files, one of them malformed, one too short to train on.
  Streams() {
    std::string a, b = "bad\n", c;
    for (int i = 0; i < 9; ++i) a += row(i);
    for (int i = 9; i < 12; ++i) b += row(i);
    for (int i = 12; i < 23; ++i) c += row(i);
    options_.paths = {scratch_.write("a.jsonl", a),
                      scratch_.write("b.jsonl", b + "{\"text\":\"\"}\n"),
                      scratch_.write("c.jsonl", c)};
    options_.bad_row_limit = 1;
    options_.encode.append_end_token = false;
  }

  Loader<SftExample> loader(std::int64_t stream_rows, bool shuffle = true,
                            std::int64_t batch = 3) const {
    return value_or_throw(make_loader<SftExample>(
        options_, encoder_,
        {.batch_size = batch, .shuffle = shuffle, .seed = 5, .stream_rows = stream_rows}));
  }

  static Batches take(Loader<SftExample>& from, int batches) {
    Batches out;
    for (int b = 0; b < batches; ++b) {
      const auto batch = from.next();
      if (!batch) break;
      for (std::size_t i = 0; i < batch->ids.size(); ++i)
        out.emplace_back(batch->ids[i], text_of_ids(batch->examples[i]->ids));
    }
    return out;
  }

  Scratch scratch_;
  ByteEncoder encoder_;
  DataOptions options_;
};

TEST_F(Streams, OfOneBlockAreWhatMemoryGivesBitForBit) {
  auto memory = loader(0), stream = loader(100);
  EXPECT_TRUE(stream.streams());
  EXPECT_EQ(take(stream, 40), take(memory, 40));  // five passes
  auto in_order = loader(0, false), streamed = loader(4, false);
  EXPECT_EQ(take(streamed, 40), take(in_order, 40));
}

// The 21 usable rows in batches of 4: the sizes and rows are those of the data in memory, also
// after a restart between any two batches.
TEST_F(Streams, EndEpochsAsDataInMemoryDoes) {
  for (const auto last_batch : {LastBatch::join, LastBatch::keep, LastBatch::drop}) {
    const auto made = [&](std::int64_t stream_rows) {
      return value_or_throw(make_loader<SftExample>(options_, encoder_,
                                                    {.batch_size = 4,
                                                     .shuffle = false,
                                                     .seed = 5,
                                                     .stream_rows = stream_rows,
                                                     .last_batch = last_batch}));
    };
    auto memory = made(0), stream = made(5);
    for (int step = 0; step < 20; ++step) {
      EXPECT_EQ(take(stream, 1), take(memory, 1)) << name_of(last_batch) << ", batch " << step;
      const Json state = value_or_throw(parse_json(stream.state().dump(), "state", {}));
      stream = made(5);
      ASSERT_TRUE(stream.restore(state));
    }
  }
}

TEST_F(Streams, DropNeedsEnoughRowsForABatch) {
  auto stream = value_or_throw(make_loader<SftExample>(
      options_, encoder_, {.batch_size = 100, .stream_rows = 5, .last_batch = LastBatch::drop}));
  try {
    stream.next();
    ADD_FAILURE() << "a batch";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("fewer than a batch of 100"));
  }
}

TEST_F(Streams, OfManyBlocksHaveEveryRowOnceAPassUnderItsOwnId) {
  auto memory = loader(0), stream = loader(4);
  const auto all = take(memory, 23), drawn = take(stream, 23);  // three passes
  ASSERT_EQ(drawn.size(), 69u);
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()), std::set(all.begin(), all.end()));
  for (int pass = 0; pass < 3; ++pass) {
    std::set<std::string> rows;
    for (int i = 0; i < 23; ++i) rows.insert(drawn[static_cast<std::size_t>(23 * pass + i)].second);
    EXPECT_EQ(rows.size(), 23u);
  }
  EXPECT_NE(Batches(drawn.begin(), drawn.begin() + 23),
            Batches(drawn.begin() + 23, drawn.begin() + 46));
}

TEST_F(Streams, StoppedAnywhereGoOnAsIfUndisturbed) {
  for (const bool shuffle : {false, true}) {
    auto whole = loader(4, shuffle);
    const auto expected = take(whole, 20);
    for (int stop = 0; stop <= 20; ++stop) {
      auto before = loader(4, shuffle), after = loader(4, shuffle);
      auto drawn = take(before, stop);
      const auto state = before.state().dump();
      const auto restored = after.restore(value_or_throw(parse_json(state, "state")));
      ASSERT_TRUE(restored) << restored.error().what;
      EXPECT_EQ(after.state().dump(), state) << stop;
      const auto rest = take(after, 20 - stop);
      drawn.insert(drawn.end(), rest.begin(), rest.end());
      EXPECT_EQ(drawn, expected) << stop;
    }
  }
}

TEST_F(Streams, BatchesKeepTheirRowsAlive) {
  auto stream = loader(2);
  const auto first = *stream.next();
  const auto text = text_of_ids(first.examples[0]->ids);
  take(stream, 10);
  EXPECT_EQ(text_of_ids(first.examples[0]->ids), text);
}

TEST_F(Streams, OfAMixKeepTheirWeightsAndGoOn) {
  const auto paths = std::exchange(options_.paths, {});
  options_.mix = {{.paths = {paths[0]}, .weight = 2, .epochs = 2},
                  {.paths = {paths[1], paths[2]}, .weight = 1}};
  auto whole = loader(4), memory = loader(0);
  const auto expected = take(whole, 15), in_memory = take(memory, 15);
  // The blocks are others, the sources are drawn from in the same turn.
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(number_of(expected[i].second) < 9, number_of(in_memory[i].second) < 9)
        << i << expected[i].second;
  for (int stop = 0; stop <= 15; ++stop) {
    auto before = loader(4), after = loader(4);
    auto drawn = take(before, stop);
    ASSERT_TRUE(after.restore(value_or_throw(parse_json(before.state().dump(), "state"))));
    const auto rest = take(after, 15 - stop);
    drawn.insert(drawn.end(), rest.begin(), rest.end());
    EXPECT_EQ(drawn, expected) << stop;
  }
}

TEST_F(Streams, RefuseAStateOfOtherDataOrAnotherOrder) {
  auto stream = loader(4);
  take(stream, 2);
  const auto state = stream.state();
  const auto why = [](Loader<SftExample> other, const Json& from) {
    const auto restored = other.restore(from);
    return restored ? std::string() : restored.error().what;
  };
  EXPECT_EQ(why(loader(4), state), "");
  EXPECT_THAT(why(loader(5), state), HasSubstr("data.shuffle_buffer was 4, now it is 5"));
  EXPECT_THAT(why(loader(4, false), state), HasSubstr("data.shuffle was true"));
  EXPECT_THAT(why(loader(4), loader(0).state()), HasSubstr("data.stream was false"));
  EXPECT_FALSE(loader(0).restore(state));
  for (const char* key : {"epoch", "at", "row", "file", "first", "drawn", "bad", "weight"}) {
    auto damaged = value_or_throw(parse_json(state.dump(), "state"));
    for (auto& [name, value] : damaged.object())
      if (name == "sources") value.array()[0].set(key, "x");
    EXPECT_NE(why(loader(4), damaged), "") << key;
  }
  scratch_.write("c.jsonl", row(1));
  EXPECT_THAT(why(loader(4), state), HasSubstr("c.jsonl has changed"));
}

TEST_F(Streams, NoticeAFileThatIsReplacedDuringTheRun) {
  const auto read_on = [&](const std::string& content, bool in_place) {
    auto stream = loader(4);
    take(stream, 2);
    if (!in_place) std::filesystem::remove(scratch_.path("c.jsonl"));
    scratch_.write("c.jsonl", content);
    take(stream, 20);  // three passes
  };
  std::string same, other;
  for (int i = 12; i < 23; ++i) same += row(i);
  for (int i = 12; i < 23; ++i) other += row(i + 20);
  EXPECT_NO_THROW(read_on(same, false)) << "a copy with the same content";
  EXPECT_NO_THROW(read_on(same, true));
  for (const bool in_place : {false, true}) {
    scratch_.write("c.jsonl", same);
    try {
      read_on(other, in_place);
      ADD_FAILURE() << "other rows of the same number were read";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.error().code, Errc::bad_input);
      EXPECT_THAT(failure.what(), AllOf(HasSubstr(scratch_.path("c.jsonl")),
                                        HasSubstr("was replaced while the run reads it")));
    }
  }
}

TEST_F(Streams, StopAtARowBeyondTheLimitOfMalformedOnes) {
  options_.bad_row_limit = 0;
  auto stream = loader(4);
  EXPECT_THROW(take(stream, 9), Failure);
  options_.paths = {scratch_.write("none.jsonl", "\n")};
  auto none = loader(4);
  EXPECT_THROW(none.next(), Failure);
}

}  // namespace
}  // namespace troupe::engine::data
