// Packed files as the data of a run: the examples are those of the rows themselves.
#include <gmock/gmock.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/data/loader/dataset.h"
#include "engine/data/megatron/indexed_dataset_writer.h"
#include "engine/models/spec.h"
#include "launch/run/text_model.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using engine::data::DataOptions;
using engine::data::PairExample;
using engine::data::PromptRow;
using engine::data::SftExample;
using engine::data::megatron::IndexedDatasetWriter;
using engine::data::megatron::TokenType;
using ::testing::HasSubstr;

std::shared_ptr<run::TextModel> chat_model() {
  engine::models::DecoderSpec spec;
  spec.vocabulary = 512;
  return value_or_throw(run::TextModel::load(data("models/stories260k/hf"), "chatml", spec));
}

// Writes packed files of the rows and returns their prefix.
std::string packed(const std::string& folder, const std::string& rows, const std::string& handler) {
  value_or_throw(write_file_durably(folder + "/rows.jsonl", rows));
  const ProgramOutput said =
      run_program(cat("preprocess --input ", folder, "/rows.jsonl --output-prefix ", folder,
                      "/o --tokenizer-name-or-path ", data("models/stories260k/hf"),
                      " --prompt-type chatml --handler-name ", handler));
  EXPECT_EQ(said.code, 0) << said.err;
  return folder + "/o";
}

template <class T>
std::vector<T> examples(const std::string& path) {
  DataOptions options;
  options.paths = {path};
  return value_or_throw(engine::data::load<T>(options, *chat_model())).examples;
}

void write_sequences(const std::string& prefix,
                     const std::vector<std::vector<std::int32_t>>& sequences) {
  auto writer = value_or_throw(IndexedDatasetWriter::create(prefix, TokenType::i32));
  for (const auto& sequence : sequences) {
    value_or_throw(writer.add_sequence(sequence));
    value_or_throw(writer.end_document());
  }
  value_or_throw(writer.finish());
}

TEST(ReadPacked, InstructionsAreTheSameExamples) {
  const std::string folder = scratch_folder();
  const std::string rows =
      R"({"instruction":"Say it.","input":"Now","output":"It."})"
      "\n"
      R"({"instruction":"One day","output":"there was a cat.","history":[["Hi","Ho"]]})"
      "\n";
  const auto read = examples<SftExample>(packed(folder, rows, "AlpacaStyleInstructionHandler"));
  const auto direct = examples<SftExample>(folder + "/rows.jsonl");
  ASSERT_EQ(read.size(), 2u);
  for (std::size_t i = 0; i < direct.size(); ++i) {
    EXPECT_EQ(read[i].ids, direct[i].ids);
    EXPECT_EQ(read[i].weights, direct[i].weights);
  }
}

TEST(ReadPacked, PairsAreTheSameExamples) {
  const std::string folder = scratch_folder();
  const std::string rows =
      R"({"instruction":"Say it.","input":"Now","chosen":"It.","rejected":"No."})"
      "\n";
  const auto read = examples<PairExample>(packed(folder, rows, "AlpacaStylePairwiseHandler"));
  const auto direct = examples<PairExample>(folder + "/rows.jsonl");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].chosen.ids, direct[0].chosen.ids);
  EXPECT_EQ(read[0].chosen.weights, direct[0].chosen.weights);
  EXPECT_EQ(read[0].rejected.ids, direct[0].rejected.ids);
}

TEST(ReadPacked, PromptsAreTheSameExamples) {
  const std::string folder = scratch_folder();
  const auto read = examples<PromptRow>(packed(folder,
                                               R"({"instruction":"Say it.","input":"Now"})"
                                               "\n",
                                               "PPOAlpacaStyleInstructionHandler"));
  const auto direct = examples<PromptRow>(folder + "/rows.jsonl");
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].ids, direct[0].ids);
}

TEST(ReadPacked, ARunTakesThePrefixAsItsData) {
  const std::string folder = scratch_folder();
  const std::string prefix = packed(folder,
                                    R"({"instruction":"Say it.","output":"It."})"
                                    "\n",
                                    "AlpacaStyleInstructionHandler");
  const std::string explain = cat("explain --algorithm sft --model ", data("models/stories260k/hf"),
                                  " --set output=", folder, "/out --data ");
  const ProgramOutput said = run_program(explain + prefix);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(run_program(explain + folder + "/none").code, 0);
}

TEST(ReadPacked, RefusesNeatPackedRows) {
  const std::string folder = scratch_folder();
  write_sequences(folder + "/n_packed_input_ids_document", {{5, 6, 7}});
  write_sequences(folder + "/n_packed_labels_document", {{-100, 6, 7}});
  write_sequences(folder + "/n_packed_attention_mask_document", {{1, 1, 2}});
  DataOptions options;
  options.paths = {folder + "/n"};
  const auto loaded = engine::data::load<SftExample>(options, *chat_model());
  EXPECT_THAT(loaded.error().what, HasSubstr("neat-packed files are not supported"));
}

TEST(ReadPacked, RefusesFilesOfDifferentNumbersOfRows) {
  const std::string folder = scratch_folder();
  write_sequences(folder + "/n_packed_input_ids_document", {{5, 6, 7}, {5, 6}});
  write_sequences(folder + "/n_packed_labels_document", {{-100, 6, 7}});
  DataOptions options;
  options.paths = {folder + "/n"};
  const auto loaded = engine::data::load<SftExample>(options, *chat_model());
  EXPECT_THAT(loaded.error().what, HasSubstr("n_packed_labels_document.idx: has 1 rows, but "));
}

}  // namespace
}  // namespace troupe::launch
