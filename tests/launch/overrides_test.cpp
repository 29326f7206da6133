// model_overrides: in every command that loads a model, and in the checkpoints of a run.
#include <gmock/gmock.h>

#include <filesystem>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/launch/program.h"

namespace troupe::launch {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string line = "{\"ids\": [1, 403, 407, 261, 5, 9, 200, 511, 3]}\n";
const std::string words =
    " model_overrides.rope_theta=500 "
    "'model_overrides.rope_scaling={rope_type: linear, factor: 2.0}' ";

class Overrides : public testing::Test {
 protected:
  Overrides() {
    fs::copy(original_, own_);
    Json config = value_or_throw(read_json(own_ + "/config.json"));
    config.set("rope_theta", 500)
        .set("rope_scaling", Json::Object{{"rope_type", "linear"}, {"factor", 2.0}});
    fs::remove(own_ + "/config.json");
    EXPECT_TRUE(write_file_durably(own_ + "/config.json", config.dump(2)));
  }

  static std::string out(const std::string& arguments, const std::string& input = line) {
    const ProgramOutput said = run_program(arguments, input);
    EXPECT_EQ(said.code, 0) << said.err;
    return said.out;
  }
  Json config_of(const std::string& folder) const {
    return value_or_throw(read_json(folder + "/config.json"));
  }
  void expect_written(const std::string& folder) const {
    const Json config = config_of(folder);
    EXPECT_EQ(config.find("rope_theta")->number(), 500) << folder;
    EXPECT_EQ(config.find("rope_scaling")->dump(), config_of(own_).find("rope_scaling")->dump())
        << folder;
  }
  std::string train(const std::string& model, const std::string& output,
                    const std::string& more) const {
    return cat("train --algorithm sft --model ", model, " --data ", root_, "/rows.jsonl --output ",
               root_, '/', output,
               " train.batch_size=4 train.max_length=64 train.learning_rate=1e-3 "
               "train.schedule=constant train.threads=1 ",
               more);
  }

  const std::string root_ = scratch_folder(), original_ = data("models/stories260k/hf");
  const std::string own_ = root_ + "/own";  ///< has the values in its config.json
};

TEST_F(Overrides, AreTheModelWhoseFileHasThem) {
  for (const std::string command : {"logprobs --model ", "generate --max-new-tokens 9 --model "}) {
    const std::string expected = out(command + own_);
    EXPECT_EQ(out(command + original_ + words), expected);
    EXPECT_EQ(out(command + original_ +
                  " --model-overrides rope_theta=500 --model-overrides "
                  "'rope_scaling={rope_type: linear, factor: 2.0}'"),
              expected);
    EXPECT_NE(out(command + original_), expected);
  }
  const std::string chat = "chat --template empty --max-new-tokens 9 --model ";
  EXPECT_EQ(out(chat + original_ + words, "Hello\n"), out(chat + own_, "Hello\n"));
}

TEST_F(Overrides, ThatCannotBeAreRefused) {
  const ProgramOutput shape =
      run_program("logprobs --model " + original_ + " model_overrides.hidden_size=8");
  EXPECT_EQ(shape.code, 2);
  EXPECT_THAT(shape.err, HasSubstr("in the files it has"));
  const ProgramOutput unknown =
      run_program("logprobs --model " + original_ + " model_overrides.rope_teta=8");
  EXPECT_THAT(unknown.err, HasSubstr("did you mean rope_theta?"));
  EXPECT_THAT(run_program("logprobs --model-overrides theta --model " + original_).err,
              HasSubstr("expected KEY=VALUE"));
  const ProgramOutput info = run_program(cat("info ", original_, " model_overrides.vocab_size=8"));
  EXPECT_NE(info.code, 0);
  EXPECT_THAT(info.out + info.err, HasSubstr("vocab_size"));
  EXPECT_EQ(run_program(cat("info ", original_, words)).code, 0);
}

TEST_F(Overrides, AreWrittenByConversions) {
  const std::string mg = root_ + "/mg";
  ASSERT_EQ(run_program(
                cat("convert --use-mcore-models --load-dir ", original_, " --save-dir ", mg, words))
                .code,
            0);
  expect_written(mg);
  fs::copy(original_, root_ + "/back");
  ASSERT_EQ(run_program(cat("convert --load-model-type mg --save-model-type hf --load-dir ", mg,
                            " --save-dir ", root_, "/back", words))
                .code,
            0);
  expect_written(root_ + "/back/mg2hf");
  EXPECT_EQ(out(cat("logprobs --model ", root_, "/back/mg2hf")), out("logprobs --model " + own_));
}

TEST_F(Overrides, OfARunAreInItsCheckpoints) {
  std::string rows;
  for (int i = 0; i < 12; ++i)
    rows +=
        cat("{\"prompt\":\"Tell a story ", i, "\",\"completion\":\" Once upon a time ", i, "\"}\n");
  ASSERT_TRUE(write_file_durably(root_ + "/rows.jsonl", rows));
  ASSERT_EQ(run_program(train(own_, "a", "train.steps=3")).code, 0);
  ASSERT_EQ(run_program(train(original_, "b", "train.steps=2 " + words)).code, 0);
  ASSERT_EQ(run_program(train(original_, "b", "train.steps=3 " + words)).code, 0);
  expect_written(root_ + "/b/latest");
  for (const char* file : {"/latest/model.safetensors", "/latest/config.json"})
    EXPECT_EQ(value_or_throw(read_file(cat(root_, "/a", file))),
              value_or_throw(read_file(cat(root_, "/b", file))))
        << file;
  EXPECT_THAT(value_or_throw(read_file(root_ + "/b/config.yaml")),
              HasSubstr("model_overrides: {rope_theta: 500"));
  const ProgramOutput other =
      run_program(train(original_, "b", "train.steps=4 model_overrides.rope_theta=400"));
  EXPECT_NE(other.code, 0);
  EXPECT_THAT(other.err, HasSubstr("model_overrides"));
}

TEST_F(Overrides, OfARunFileAreAMap) {
  ASSERT_TRUE(write_file_durably(
      root_ + "/run.yaml",
      cat("model: ", original_, "\ndata: {path: ", root_,
          "/rows.jsonl}\noutput: o\nmodel_overrides:\n  rope_theta: 500\n  rope_scaling: "
          "{rope_type: linear, factor: 2.0}\n")));
  ASSERT_TRUE(
      write_file_durably(root_ + "/rows.jsonl", "{\"prompt\":\"a\",\"completion\":\"b\"}\n"));
  const std::string shown = out(cat("explain --algorithm sft --no-data --config ", root_,
                                    "/run.yaml model_overrides.max_position_embeddings=256"));
  EXPECT_THAT(shown, HasSubstr("max_position_embeddings: 256"));
  EXPECT_THAT(shown, HasSubstr("rope_theta: 500"));
}

}  // namespace
}  // namespace troupe::launch
