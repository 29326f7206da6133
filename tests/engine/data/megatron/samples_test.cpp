// The order of Megatron's samples. Oracle: what GPTDataset and BlendedDataset of Megatron core drew
// (golden/megatron/golden.json, made with megatron-core 0.16.1).
#include <gmock/gmock.h>

#include <numeric>

#include "engine/base/json/json.h"
#include "engine/base/text/text.h"
#include "engine/data/megatron/gpt_dataset.h"
#include "engine/data/megatron/pretraining_data.h"
#include "tests/engine/data/megatron/indexed_files.h"
#include "tests/support/golden.h"

namespace troupe::engine::data::megatron {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<std::int32_t>;

// RandomState(seed).permutation(10) of numpy.
std::vector<int> permuted(std::uint32_t seed) {
  std::vector<int> out(10);
  std::iota(out.begin(), out.end(), 0);
  NumpyRandom(seed).shuffle(std::span(out));
  return out;
}

TEST(NumpyRandom, ShufflesAsNumpy) {
  EXPECT_THAT(permuted(0), ElementsAre(2, 8, 4, 9, 1, 6, 7, 3, 0, 5));
  EXPECT_THAT(permuted(42), ElementsAre(8, 1, 5, 0, 7, 2, 9, 4, 3, 6));
}

TEST(NumpyRandom, DrawsTwoWordsBeyond32Bits) {
  NumpyRandom random(1), same(1);
  const std::uint64_t high = same.interval(0xffffffffu), low = same.interval(0xffffffffu);
  EXPECT_EQ(random.interval(~std::uint64_t{0}), (high << 32) | low);
  EXPECT_EQ(random.interval(0), 0u);
}

Json golden() {
  return value_or_throw(read_json(test::golden_folder() + "/megatron/golden.json"));
}

PretrainingOptions options_of(const Json& config, std::int64_t eod) {
  PretrainingOptions out;
  const Json& weights = *config.find("weights");
  out.has_weights = !weights.is_null();
  for (std::size_t i = 0; i < config.find("sets")->array().size(); ++i)
    out.parts.push_back(
        {test::golden_folder() + "/megatron/" + config.find("sets")->array()[i].string(),
         out.has_weights ? weights.array()[i].number() : 0});
  out.split = config.find("split")->string();
  for (std::size_t i = 0; i < split_count; ++i)
    if (const Json& count = config.find("requested")->array()[i]; !count.is_null())
      out.samples[i] = count.integer();
  out.sample = {
      .sequence_length = static_cast<std::int32_t>(config.find("sequence_length")->integer()),
      .seed = static_cast<std::uint32_t>(config.find("seed")->integer()),
      .end_of_document = static_cast<std::int32_t>(eod),
      .reset_position_ids = config.find("reset_position_ids")->boolean(),
      .mask_end_of_document = config.find("eod_mask_loss")->boolean()};
  return out;
}

template <class T>
std::vector<T> numbers(const Json& list) {
  std::vector<T> out;
  for (const Json& each : list.array()) out.push_back(static_cast<T>(each.integer()));
  return out;
}

void expect_samples(const PretrainingSplit& split, const Json& expected) {
  std::int64_t index = 0;
  for (const Json& each : expected.array()) {
    const auto sample = value_or_throw(split.sample(index++));
    EXPECT_EQ(sample.tokens, numbers<std::int32_t>(*each.find("tokens"))) << index;
    EXPECT_EQ(sample.labels, numbers<std::int32_t>(*each.find("labels"))) << index;
    EXPECT_EQ(sample.loss_mask, numbers<std::uint8_t>(*each.find("loss_mask"))) << index;
    EXPECT_EQ(sample.position_ids, numbers<std::int32_t>(*each.find("position_ids"))) << index;
  }
  EXPECT_GT(index, 0);
}

template <class T>
std::vector<T> head(std::vector<T> values, std::size_t count) {
  values.resize(std::min(values.size(), count));
  return values;
}

void expect_indices(const PretrainingSplit& train, const Json& expected) {
  const GptDataset& first = train.datasets().front();
  const auto documents = numbers<std::int32_t>(*expected.find("document_index_head"));
  EXPECT_EQ(head(first.documents(), documents.size()), documents);
  const auto shuffle = numbers<std::int64_t>(*expected.find("shuffle_index_head"));
  EXPECT_EQ(head(first.shuffle(), shuffle.size()), shuffle);
  std::size_t at = 0;
  for (const Json& start : expected.find("sample_index_head")->array()) {
    EXPECT_EQ(first.starts()[at].document, start.array()[0].integer()) << at;
    EXPECT_EQ(first.starts()[at++].offset, start.array()[1].integer()) << at;
  }
  ASSERT_EQ(train.blend().has_value(), expected.find("blend_dataset_index_head") != nullptr);
  if (!train.blend()) return;
  const auto sets = numbers<std::int32_t>(*expected.find("blend_dataset_index_head"));
  const auto samples = numbers<std::int64_t>(*expected.find("blend_sample_index_head"));
  for (std::size_t i = 0; i < sets.size(); ++i)
    EXPECT_EQ((*train.blend())[i], (BlendedSample{sets[i], samples[i]})) << i;
}

TEST(MegatronSamples, EqualThoseOfMegatron) {
  SKIP_WITHOUT_GOLDEN("megatron/golden.json");
  const Json all = golden();
  int cases = 0;
  for (const auto& [name, expected] : all.find("cases")->object()) {
    SCOPED_TRACE(name);
    ++cases;
    const auto data = value_or_throw(
        PretrainingData::open(options_of(*expected.find("config"), all.find("eod")->integer())));
    for (std::size_t i = 0; i < split_count; ++i) {
      const Json& length = expected.find("lengths")->array()[i];
      ASSERT_EQ(data.split(i) == nullptr, length.is_null()) << i;
      if (data.split(i)) {
        EXPECT_EQ(data.split(i)->size(), length.integer()) << i;
      }
    }
    expect_samples(*data.split(0), *expected.find("train"));
    if (data.split(1)) expect_samples(*data.split(1), *expected.find("valid"));
    expect_indices(*data.split(0), expected);
  }
  EXPECT_GE(cases, 6);
}

TEST(MegatronSamples, MaskAndRestartBehindEachEndToken) {
  const SampleOptions options{.sequence_length = 5,
                              .end_of_document = 2,
                              .reset_position_ids = true,
                              .mask_end_of_document = true};
  const auto sample = sample_of({7, 2, 8, 9, 2, 4}, options);
  EXPECT_THAT(sample.labels, ElementsAre(2, 8, 9, 2, 4));
  EXPECT_THAT(sample.loss_mask, ElementsAre(1, 0, 1, 1, 0));
  EXPECT_THAT(sample.position_ids, ElementsAre(0, 1, 0, 1, 2));
}

// A plain loop over the stream: sample i has tokens [i L, i L + L].
TEST(MegatronSamples, AreCutFromOneStreamAcrossEmptyDocuments) {
  const Scratch scratch;
  const auto prefix =
      write_documents(scratch, "a", TokenType::u16, {{1, 2, 3}, {}, {4}, {5, 6, 7, 8, 9}, {}});
  const auto set =
      std::make_shared<const IndexedDataset>(value_or_throw(IndexedDataset::open(prefix)));
  for (const std::int32_t length : {1, 2, 3, 5, 11}) {
    const auto data =
        value_or_throw(GptDataset::build(set, {0, 5}, 40, {.sequence_length = length, .seed = 5}));
    Tokens stream;
    for (const auto i : data.documents())
      for (const auto token : value_or_throw(set->sequence(i))) stream.push_back(token);
    ASSERT_GE(data.size(), 40);
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const auto from = data.shuffle()[static_cast<std::size_t>(i)] * length;
      const Tokens expected(stream.begin() + from, stream.begin() + from + length);
      EXPECT_EQ(value_or_throw(data.sample(i)).tokens, expected) << length << " " << i;
    }
  }
}

TEST(MegatronSamples, NeedEnoughTokens) {
  const Scratch scratch;
  PretrainingOptions options;
  options.parts = {{write_documents(scratch, "a", TokenType::u16, {{1, 2, 3}}), 0}};
  options.sample.sequence_length = 3;
  options.split = "1";
  EXPECT_THAT(PretrainingData::open(options).error().what,
              AllOf(HasSubstr("the training part of pretrain.split: "),
                    HasSubstr("sequences 0 to 1 have 3 tokens: no sample of 3 + 1 tokens")));
  options.sample.sequence_length = 2;
  EXPECT_EQ(value_or_throw(PretrainingData::open(options)).split(0)->size(), 1);
  options.samples[0] = std::int64_t{1} << 40;
  EXPECT_THAT(PretrainingData::open(options).error().what, HasSubstr("more than 2^31 documents"));
  options.samples[0] = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(PretrainingData::open(options).error().what, HasSubstr("are too many"));
}

}  // namespace
}  // namespace troupe::engine::data::megatron
