// troupe tokenize and troupe logprobs on real stories, compared with a float64 reference.
#include <algorithm>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "tests/system/runs.h"

namespace troupe::test {
namespace {

TEST(Stories, TheProgramsLogLikelihoodsAreThoseOfAFloat64Pass) {
  const std::string stories =
      value_or_throw(read_file(launch::data("datasets/pretrain/tinystories_train_head.txt")));
  const std::string first = stories.substr(0, stories.find("\n<|endoftext|>"));
  const Json expected = value_or_throw(read_json(launch::data("expected/models/nll.json")));
  for (const Json& entry : expected.array()) {
    const std::string model = entry.find("model")->string();
    const std::string folder =
        launch::data("models/" + model + (model == "stories260k" ? "/hf" : ""));
    const std::string question = Json(Json::Object{{"text", first}}).dump() + "\n";
    const auto tokens =
        launch::json_lines(launch::run_program("tokenize --model " + folder, question).out);
    Json::Array ids{Json(1)};
    for (const Json& id : tokens.at(0).find("ids")->array()) ids.push_back(id);
    const auto said = launch::run_program("logprobs --model " + folder,
                                          Json(Json::Object{{"ids", ids}}).dump() + "\n");
    const auto answer = launch::json_lines(said.out);
    const double count = entry.find("tokens")->array()[0].number(),
                 nll = entry.find("nll")->array()[0].number();
    EXPECT_EQ(static_cast<double>(ids.size()), count + 1);
    EXPECT_NEAR(answer.at(0).find("nll")->number() / count, nll / count, 1e-5) << model << said.err;
  }
}

}  // namespace
}  // namespace troupe::test
