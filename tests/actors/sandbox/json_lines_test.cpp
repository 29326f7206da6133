#include "actors/roles/rules/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/roles/rules/command_worker.h"
#include "engine/base/text/text.h"

namespace troupe::actors::rules {
namespace {

using testing::HasSubstr;

TEST(RewardLine, AQuestionIsOneLineOfJson) {
  EXPECT_EQ(encode_request(7, {"2+2?", "it is\n\"4\"", Json("4")}),
            "{\"id\":7,\"prompt\":\"2+2?\",\"completion\":\"it is\\n\\\"4\\\"\",\"answer\":\"4\","
            "\"row\":null,\"messages\":null}\n");
  protocol::RewardRequest request{"", "", Json()};
  request.row = value_or_throw(parse_json(R"({"level":[1,"\u00e9"]})", "a row"));
  request.messages = value_or_throw(parse_json(R"([{"role":"user","content":"a"}])", "messages"));
  EXPECT_EQ(encode_request(1, request),
            "{\"id\":1,\"prompt\":\"\",\"completion\":\"\",\"answer\":null,"
            "\"row\":{\"level\":[1,\"\xC3\xA9\"]},\"messages\":[{\"role\":\"user\",\"content\":"
            "\"a\"}]}\n");
}

TEST(RewardLine, AGroupIsOneLineWithListsOfCompletions) {
  protocol::RewardRequest one{"2+2?", "4", Json("4"), {}, {5, 6}};
  one.row = Json(Json::Object{{"level", 3}});
  auto two = one;
  two.completion = "3\xC3";
  two.completion_ids = {7};
  const std::vector<protocol::RewardRequest> group{one, two};
  EXPECT_EQ(encode_group(2, group),
            "{\"id\":2,\"prompt\":\"2+2?\",\"completions\":[\"4\",\"3\xEF\xBF\xBD\"],"
            "\"completion_ids\":[[5,6],[7]],\"answer\":\"4\",\"row\":{\"level\":3},"
            "\"messages\":null}\n");
  EXPECT_THAT(encode_group(3, {}), HasSubstr("\"completions\":[],"));
}

TEST(RewardLine, AnAnswerToAGroupHasAsManyRewardsWithPartsOrNull) {
  const auto answer = value_or_throw(parse_group_answer(
      R"({"id": 3, "rewards": [1, null, -0.5], "parts": [{"a": 2}, null, {}]})", 3));
  ASSERT_EQ(answer.scored.size(), 3u);
  EXPECT_EQ(answer.scored[0].reward, 1);
  EXPECT_EQ(answer.scored[0].parts[0].second, 2);
  EXPECT_TRUE(answer.scored[0].applies);
  EXPECT_FALSE(answer.scored[1].applies);
  EXPECT_EQ(answer.scored[2].reward, -0.5);
  const auto why = [](std::string_view line) {
    const auto wrong = parse_group_answer(line, 2);
    return wrong ? "read" : wrong.error().what;
  };
  EXPECT_EQ(why(R"({"id": 1, "rewards": [1]})"),
            "its answer should have \"rewards\", a list of 2, found a list of 1");
  EXPECT_EQ(why(R"({"id": 1, "reward": 1})"),
            "its answer should have \"rewards\", a list of 2, found none");
  EXPECT_EQ(why(R"({"id": 1, "rewards": [1, 2], "parts": {}})"),
            "its answer should have \"parts\", a list of 2, found object");
  EXPECT_EQ(why(R"({"id": 1, "rewards": [1, "2"]})"),
            "\"rewards[1]\" should be a number, it is \"\\\"2\\\"\"");
}

TEST(RewardLine, AProgramCanNameItsError) {
  EXPECT_EQ(value_or_throw(parse_answer(R"({"id": 1, "error": "no such file"})")).error,
            "no such file");
  EXPECT_EQ(value_or_throw(parse_group_answer(R"({"id": 1, "error": ""})", 2)).error,
            "it named no reason");
  const auto both =
      value_or_throw(parse_answer(R"({"id": 1, "reward": null, "error": "ignored"})"));
  EXPECT_EQ(both.error, "");
  EXPECT_FALSE(both.scored.at(0).applies);
}

TEST(RewardLine, ACompletionThatEndsInsideACharacterIsStillText) {
  EXPECT_THAT(encode_request(1, {"", "caf\xC3", Json()}), HasSubstr("\"caf\xEF\xBF\xBD\""));
  EXPECT_THAT(encode_request(1, {"",
                                 "\xFF\xFE"
                                 "a",
                                 Json()}),
              HasSubstr("\"\xEF\xBF\xBD\xEF\xBF\xBD"
                        "a\""));
}

TEST(RewardLine, AnAnswerHasAnIdARewardAndPerhapsParts) {
  const auto answer = value_or_throw(parse_answer(
      R"({"parts": {"style": 0.5, "length": -1}, "reward": 2, "id": 3, "note": [1]})"));
  EXPECT_EQ(answer.id, 3);
  EXPECT_EQ(answer.scored.at(0).reward, 2);
  EXPECT_EQ(answer.scored.at(0).parts,
            (std::vector<std::pair<std::string, double>>{{"style", 0.5}, {"length", -1}}));
  EXPECT_EQ(value_or_throw(parse_answer("{\"id\":1,\"reward\":-1e6}\r")).scored.at(0).reward, -1e6);
}

TEST(RewardLine, WhatIsWrongIsNamed) {
  const auto why = [](std::string_view line) {
    const auto answer = parse_answer(line);
    return answer ? "read" : answer.error().what;
  };
  EXPECT_EQ(why(R"({"id": 1, "reward": "1"})"),
            "\"reward\" should be a number, it is \"\\\"1\\\"\"");
  EXPECT_EQ(why(R"({"id": 1, "reward": true})"), "\"reward\" should be a number, it is \"true\"");
  EXPECT_EQ(why(R"({"id": 1, "reward": 1e7})"), "\"reward\" is 1e+07, beyond 1e+06");
  EXPECT_EQ(why(R"({"id": 1.5, "reward": 1})"), "its answer has no \"id\" that is a whole number");
  EXPECT_EQ(why(R"({"id": 1})"), "its answer has no \"reward\"");
  EXPECT_THAT(why("[]"), HasSubstr("it wrote the line \"[]\", which is not a JSON object"));
  EXPECT_EQ(why("loading the model"),
            "it wrote the line \"loading the model\", which is not a JSON object; only answers may "
            "be written to standard output");
  EXPECT_EQ(why(R"({"id": 1, "reward": 1, "parts": [1]})"),
            "\"parts\" should be an object of numbers, it is array");
  EXPECT_EQ(why(R"({"id": 1, "reward": 1, "parts": {"": 1}})"),
            "a part's name should have 1 to 64 bytes: \"\"");
  for (const char* name :
       {"a\\u001b]0;PWNED\\u0007", "a\\n--- step 1", "\\u202e", "h\\u00e9", "a,b"})
    EXPECT_THAT(why(cat("{\"id\": 1, \"reward\": 1, \"parts\": {\"", name, "\": 1}}")),
                testing::StartsWith("a part's name should consist of letters, digits and "))
        << name;
  EXPECT_TRUE(parse_answer(R"({"id": 1, "reward": 1, "parts": {"Az09_./ -": 1}})"));
  EXPECT_THAT(why(R"({"id": 1, "reward": NaN})"), HasSubstr("its answer"));
}

TEST(RewardLine, NewProcessesAreStartedEverMoreSlowly) {
  using std::chrono::milliseconds;
  EXPECT_EQ(restart_delay(0), milliseconds(0));
  EXPECT_EQ(restart_delay(2), milliseconds(0));
  EXPECT_EQ(restart_delay(3), milliseconds(10));
  EXPECT_EQ(restart_delay(5), milliseconds(40));
  EXPECT_EQ(restart_delay(10), milliseconds(200));
  EXPECT_EQ(restart_delay(1000000), milliseconds(200));
}

}  // namespace
}  // namespace troupe::actors::rules
