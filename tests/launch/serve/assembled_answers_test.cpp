// Answers that are assembled from pieces: their blocks, their failures, and the events that wait.
#include <gtest/gtest.h>

#include "engine/base/text/text.h"
#include "launch/serve/formats/conversation_builder.h"
#include "launch/serve/formats/message_answer.h"
#include "launch/serve/formats/output_blocks.h"
#include "launch/serve/formats/response_answer.h"
#include "launch/serve/formats/translation.h"
#include "launch/serve/http/exchange.h"

namespace troupe::launch::serve::api {
namespace {

/// What a listener heard: "+text0 text0=a -text0".
struct Heard : serve::formats::OutputBlocks::Listener {
  static std::string name_of(const serve::formats::OutputBlock& block) {
    const char* kinds[] = {"reasoning", "text", "call"};
    return cat(kinds[static_cast<int>(block.kind)], block.index, block.name);
  }
  void opened(const serve::formats::OutputBlock& block) override {
    text += cat("+", name_of(block), " ");
  }
  void grown(const serve::formats::OutputBlock& block, const std::string& piece) override {
    text += cat(name_of(block), "=", piece, " ");
  }
  void closed(const serve::formats::OutputBlock& block) override {
    text += cat("-", name_of(block), " ");
  }
  std::string text;
};

std::string heard(const std::vector<serve::api::ChoicePart>& parts) {
  serve::formats::OutputBlocks blocks;
  Heard listener;
  for (const serve::api::ChoicePart& part : parts) blocks.add(part, listener);
  blocks.finish(listener);
  return listener.text;
}

TEST(OutputBlocks, FollowTheOrderOfThePieces) {
  EXPECT_EQ(heard({{.reasoning = "a"}, {.reasoning = "b"}, {.text = "c"}, {}, {.text = "d"}}),
            "+reasoning0 reasoning0=a reasoning0=b -reasoning0 +text1 text1=c text1=d -text1 ");
  EXPECT_EQ(heard({{.text = "a", .calls = {{0, "f", "{"}}},
                   {.calls = {{0, "", "}"}, {1, "g", ""}}},
                   {.calls = {{1, "", "{}"}}}}),
            "+text0 text0=a -text0 +call1f call1f={ call1f=} -call1f +call2g call2g={} -call2g ");
}

TEST(OutputBlocks, ATextBehindACallInTheSamePieceFollowsIt) {
  EXPECT_EQ(
      heard({{.calls = {{0, "f", "{"}}}, {.text = "b", .calls = {{0, "", "}"}, {1, "g", ""}}}}),
      "+call0f call0f={ call0f=} -call0f +text1 text1=b -text1 +call2g -call2g ");
}

TEST(OutputBlocks, AnEmptyAnswerHasAText) {
  EXPECT_EQ(heard({{}}), "+text0 -text0 ");
}

TEST(ConversationBuilder, KeepsTurnsOfTheAssistantTogether) {
  serve::formats::ConversationBuilder builder;
  builder.add_reasoning("r");
  builder.add_text("a");
  builder.add_call("1", "f", Json::Object{});
  builder.add_text("b");
  builder.add_result("1", "5");
  builder.add_text("c");
  builder.add_text("d");
  builder.add_reasoning("s");
  EXPECT_TRUE(builder.ends_with_assistant());
  const Json all = builder.take();
  ASSERT_EQ(all.array().size(), 5u);
  EXPECT_EQ(all.array()[0].dump(),
            R"({"role":"assistant","reasoning_content":"r","content":"ab","tool_calls":[)"
            R"({"id":"1","type":"function","function":{"name":"f","arguments":{}}}]})");
  EXPECT_EQ(all.array()[1].dump(), R"({"role":"tool","tool_call_id":"1","content":"5"})");
  EXPECT_EQ(all.array()[4].dump(),
            R"({"role":"assistant","reasoning_content":"s","content":null})");
}

TEST(TranslatedRequest, ErrorsNameTheFieldsOfTheOtherFormat) {
  constexpr serve::api::FieldName names[] = {{"max_tokens", "max_output_tokens"},
                                             {"response_format.json_schema", "text.format"}};
  const serve::api::ApiFailure failure(
      400, {"response_format.json_schema.schema: not; lower max_tokens. my_max_tokens",
            "invalid_request_error", "response_format.json_schema.schema", ""});
  const serve::api::ApiFailure found = serve::api::renamed(failure, names);
  EXPECT_EQ(found.error().param, "text.format.schema");
  EXPECT_EQ(found.error().message,
            "text.format.schema: not; lower max_output_tokens. my_max_tokens");
}

serve::api::GenerationRequest streamed() {
  serve::api::GenerationRequest request;
  request.stream = true;
  return request;
}

TEST(ResponseAnswer, AFailureIsItsLastEvent) {
  serve::formats::ResponseAnswer answer(Json::Object{{"tools", Json::Array{}}}, streamed(), "m",
                                        "x");
  EXPECT_EQ(answer.add({.text = "a"}, {}).size(), 5u);
  const serve::http::Event event = answer.failed({Errc::timeout, "too late"});
  EXPECT_EQ(event.name, "response.failed");
  const auto data = parse_json(event.data, "data");
  ASSERT_TRUE(data);
  EXPECT_EQ(data->find("sequence_number")->integer(), 5);
  const Json& response = *data->find("response");
  EXPECT_EQ(response.find("status")->string(), "failed");
  EXPECT_EQ(response.find("error")->dump(), R"({"code":"server_error","message":"too late"})");
  EXPECT_EQ(response.find("output")->array().size(), 1u);
}

TEST(MessageAnswer, AFailureIsItsLastEvent) {
  serve::formats::MessageAnswer answer(streamed(), "m", "x");
  EXPECT_EQ(answer.add({.text = "a"}, {}).size(), 4u);
  const serve::http::Event event = answer.failed({Errc::timeout, "too late"});
  EXPECT_EQ(event.name, "error");
  EXPECT_EQ(event.data,
            R"({"type":"error","error":{"type":"overloaded_error","message":"too late"}})");
}

TEST(MessageAnswer, ErrorsKeepTheirStatusAndFields) {
  serve::http::Response response = serve::http::error_response(429, {.message = "later"});
  response.headers = {{"retry-after", "1"}};
  const serve::http::Response found = serve::formats::anthropic_error(response);
  EXPECT_EQ(found.status, 429);
  EXPECT_EQ(found.headers.size(), 1u);
  EXPECT_EQ(found.body,
            R"({"type":"error","error":{"type":"rate_limit_error","message":"later"}})");
  const serve::http::Response named = serve::formats::anthropic_error(
      serve::http::error_response(400, {.message = "too long", .param = "system"}));
  EXPECT_NE(named.body.find("system: too long"), std::string::npos);
}

TEST(SendEvents, AListMayBeLongerThanWhatWaitsForASlowReader) {
  serve::http::Exchange exchange(
      {.stream_bytes = 1000, .draining = std::make_shared<std::atomic<bool>>(false)}, [] {});
  exchange.begin_stream();
  exchange.take();
  exchange.written();
  EXPECT_TRUE(exchange.send_events({{"a", std::string(3000, 'x')}, {"b", std::string(3000, 'y')}}));
  EXPECT_TRUE(exchange.send_event("z"));
  const std::string bytes = exchange.take().bytes;
  EXPECT_NE(bytes.find("event: a\ndata: xxx"), std::string::npos);
  EXPECT_NE(bytes.find("\n\nevent: b\ndata: yyy"), std::string::npos);
  EXPECT_NE(bytes.find("\n\n\r\n"), std::string::npos);
  // The reader has not taken them yet.
  EXPECT_FALSE(exchange.send_event(std::string(1000, 'z')));
  EXPECT_TRUE(exchange.overflowed());
}

}  // namespace
}  // namespace troupe::launch::serve::api
