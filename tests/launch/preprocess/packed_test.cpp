// Packed files: their tokens are those of training on the rows themselves. Oracles: the data
// library's own examples, and `troupe tokenize` of texts written out by hand.
#include <gmock/gmock.h>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/data/megatron/indexed_dataset.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using engine::data::megatron::IndexedDataset;
using engine::data::megatron::TokenType;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Tokens = std::vector<std::int32_t>;

class Packed : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    value_or_throw(write_file_durably(folder_ + "/" + name, text));
  }
  ProgramOutput run(const std::string& arguments) const {
    return run_program(cat("preprocess --input ", folder_, "/a.jsonl --output-prefix ", folder_,
                           "/o --tokenizer-name-or-path ", data("models/stories260k/hf"),
                           " --handler-name ", arguments));
  }
  void run_ok(const std::string& arguments) const {
    const ProgramOutput said = run(arguments);
    ASSERT_EQ(said.code, 0) << said.err;
  }
  std::vector<Tokens> rows(const std::string& key) const {
    const auto set =
        value_or_throw(IndexedDataset::open(cat(folder_, "/o_packed_", key, "_document")));
    EXPECT_EQ(set.type(), TokenType::i32);
    EXPECT_EQ(set.documents(), set.sequences());
    std::vector<Tokens> out;
    for (std::int64_t i = 0; i < set.sequences(); ++i)
      out.push_back(value_or_throw(set.sequence(i)));
    return out;
  }
  Tokens tokens(const std::string& text) const {
    const ProgramOutput said = run_program(cat("tokenize --model ", data("models/stories260k/hf")),
                                           Json(Json::Object{{"text", text}}).dump() + "\n");
    Tokens out;
    const auto lines = json_lines(said.out);
    for (const Json& id : lines.at(0).find("ids")->array())
      out.push_back(static_cast<std::int32_t>(id.integer()));
    return out;
  }
  // The tokens of chatml text, and labels: -100 but for what follows `answer_from`.
  static Tokens masked(const Tokens& ids, std::size_t trained) {
    Tokens out(ids.size(), -100);
    std::copy(ids.end() - static_cast<std::ptrdiff_t>(trained), ids.end(),
              out.end() - static_cast<std::ptrdiff_t>(trained));
    return out;
  }
  std::string folder_ = scratch_folder();
};

const std::string chat_prompt = "<|im_start|>user\nSay it.\nNow<|im_end|>\n<|im_start|>assistant\n";

TEST_F(Packed, InstructionsHaveIdsMaskAndLabels) {
  write("a.jsonl", R"({"instruction":"Say it.","input":"Now","output":"It."})"
                   "\n");
  run_ok("AlpacaStyleInstructionHandler --prompt-type chatml");
  const Tokens ids = rows("input_ids").at(0), labels = rows("labels").at(0);
  EXPECT_EQ(ids, tokens(chat_prompt + "It.<|im_end|>"));
  EXPECT_EQ(rows("attention_mask").at(0), Tokens(ids.size(), 1));
  const auto trained = static_cast<std::size_t>(
      std::count_if(labels.begin(), labels.end(), [](auto label) { return label != -100; }));
  EXPECT_EQ(labels, masked(ids, trained));
  EXPECT_GT(trained, 0u);
  EXPECT_LT(trained, ids.size());
}

TEST_F(Packed, MapKeysNamesTheColumns) {
  write("a.jsonl", R"({"problem":"Say it.","input":"never","answer":"It.","more":"Now"})"
                   "\n");
  run_ok(
      "AlpacaStyleInstructionHandler --prompt-type chatml --map-keys "
      R"('{"prompt":"problem","query":"more","response":"answer"}')");
  EXPECT_EQ(rows("input_ids").at(0), tokens(chat_prompt + "It.<|im_end|>"));
}

TEST_F(Packed, PairsHaveBothSides) {
  write("a.jsonl", R"({"instruction":"Say it.","input":"Now","chosen":"It.","rejected":"No."})"
                   "\n");
  run_ok("AlpacaStylePairwiseHandler --prompt-type chatml");
  EXPECT_EQ(rows("chosen_input_ids").at(0), tokens(chat_prompt + "It.<|im_end|>"));
  EXPECT_EQ(rows("rejected_input_ids").at(0), tokens(chat_prompt + "No.<|im_end|>"));
  EXPECT_EQ(rows("chosen_labels").at(0).front(), -100);
  EXPECT_EQ(rows("rejected_labels").at(0).back(), rows("rejected_input_ids").at(0).back());
}

TEST_F(Packed, PromptsHaveTheirAnswers) {
  write("a.jsonl", R"({"problem":"Say it.\nNow","answer":"It.","level":"7"})"
                   "\n");
  run_ok(
      "R1AlpacaStyleInstructionHandler --prompt-type chatml --dataset-additional-keys labels "
      R"(level --map-keys '{"prompt":"problem","query":"","response":"answer","system":""}')");
  EXPECT_EQ(rows("input_ids").at(0), tokens(chat_prompt));
  EXPECT_EQ(rows("labels").at(0), tokens("It."));
  EXPECT_EQ(rows("level").at(0), tokens("7"));
}

TEST_F(Packed, ConversationsUseTheirTags) {
  write("a.jsonl", R"({"talk":[{"r":"u","c":"Say it.\nNow"},{"r":"a","c":"It."}]})"
                   "\n");
  const std::string map =
      R"(--map-keys '{"messages":"talk","tags":{"role_tag":"r","content_tag":"c",)"
      R"("user_tag":"u","assistant_tag":"a"}}')";
  run_ok("SharegptStyleInstructionHandler --prompt-type chatml " + map);
  EXPECT_EQ(rows("input_ids").at(0), tokens(chat_prompt + "It.<|im_end|>"));
  run_ok(
      "R1SharegptStyleInstructionHandler --prompt-type chatml --dataset-additional-keys labels " +
      map);
  EXPECT_EQ(rows("input_ids").at(0), tokens(chat_prompt));
  EXPECT_EQ(rows("labels").at(0), tokens("It."));
}

TEST_F(Packed, ProcessRewardsHaveATokenAtEachPlaceholder) {
  write("a.jsonl", R"({"input":"a\tb\t","value":["+","-"]})"
                   "\n");
  const ProgramOutput said = run_program(
      cat("preprocess --input ", folder_, "/a.jsonl --output-prefix ", folder_,
          "/o --tokenizer-name-or-path ", data("tokenizers/gpt2"),
          " --handler-name AlpacaStyleProcessRewardHandler --placeholder-token \"$(printf '\\t')\" "
          "--reward-tokens=+ --reward-tokens=-"));
  ASSERT_EQ(said.code, 0) << said.err;
  // GPT-2: 64 is "a", 65 is "b", 197 is the tab, 10 is "+", 12 is "-".
  EXPECT_EQ(rows("input_ids").at(0), (Tokens{64, 197, 65, 197}));
  EXPECT_EQ(rows("labels").at(0), (Tokens{-100, 10, -100, 12}));
}

TEST_F(Packed, RowsOfTheSequenceLengthAreLeftOut) {
  write("a.jsonl", R"({"instruction":"Say it.","output":"It."})"
                   "\n"
                   R"({"instruction":"Say it.","output":"It. It. It. It. It. It. It."})"
                   "\n");
  run_ok("AlpacaStyleInstructionHandler --prompt-type chatml");
  const auto all = rows("input_ids");
  ASSERT_EQ(all.size(), 2u);
  const ProgramOutput said =
      run(cat("AlpacaStyleInstructionHandler --prompt-type chatml --seq-length ", all[1].size()));
  EXPECT_EQ(rows("labels").size(), 1u);
  EXPECT_THAT(said.err, HasSubstr("left out 1 rows"));
}

TEST_F(Packed, AYamlFileHasTheOptionsAsKeys) {
  write("a.jsonl", R"({"problem":"Say it.\nNow","answer":"It."})"
                   "\n");
  write("run.yaml",
        cat("input: ", folder_, "/a.jsonl\ntokenizer_name_or_path: ", data("models/stories260k/hf"),
            "\noutput_prefix: ", folder_, "/o\ncache_dir: ", folder_,
            "/cache\nhandler_name: R1AlpacaStyleInstructionHandler\n"
            "tokenizer_type: HuggingFaceTokenizer\nworkers: 8\nlog_interval: 1000\n"
            "prompt_type: chatml\ndataset_additional_keys: [labels]\n"
            R"(map_keys: {"prompt":"problem", "query":"", "response": "answer", )"
            R"("system":""})"
            "\n"));
  const ProgramOutput said = run_program(cat("preprocess ", folder_, "/run.yaml"));
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(rows("input_ids").at(0), tokens(chat_prompt));
  EXPECT_EQ(rows("labels").at(0), tokens("It."));
}

TEST_F(Packed, AYamlFileWithAnUnknownKeyIsRefused) {
  write("run.yaml", "inputt: a\n");
  const ProgramOutput said = run_program(cat("preprocess ", folder_, "/run.yaml"));
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.err, AllOf(HasSubstr("run.yaml: "), HasSubstr("--input")));
  write("run.yaml", "input: {a: [1\n");
  EXPECT_EQ(run_program(cat("preprocess ", folder_, "/run.yaml")).code, 2);
  write("run.yaml", "- a\n");
  EXPECT_THAT(run_program(cat("preprocess ", folder_, "/run.yaml")).err,
              HasSubstr("run.yaml: expected keys and values, found a list"));
}

TEST_F(Packed, OptionsThatHaveNoEffectAreRefused) {
  write("a.jsonl", "{}\n");
  const auto said = [&](const std::string& arguments) {
    const ProgramOutput out = run(arguments);
    EXPECT_EQ(out.code, 2) << arguments << out.err;
    return out.err;
  };
  EXPECT_THAT(said("AlpacaStyleInstructionHandler --append-eod"),
              HasSubstr("--append-eod has no effect with --handler-name"));
  EXPECT_THAT(said("GeneralPretrainHandler --prompt-type chatml"),
              HasSubstr("--prompt-type has no effect"));
  EXPECT_THAT(said("AlpacaStyleInstructionHandler --map-keys '{\"promt\":\"x\"}'"),
              HasSubstr("\"promt\" is not known to AlpacaStyleInstructionHandler; known: prompt"));
  EXPECT_THAT(said("AlpacaStyleInstructionHandler --dataset-additional-keys labels"),
              HasSubstr("writes none"));
  EXPECT_THAT(said("AlpacaStyleInstructionHandler --token-type uint16"),
              HasSubstr("labels can be -100"));
  EXPECT_THAT(said("R1AlpacaStyleInstructionHandler --dataset-additional-keys labels labels"),
              HasSubstr("expected another name"));
}

}  // namespace
}  // namespace troupe::launch
