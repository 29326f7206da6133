#include "engine/constraints/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/constraints/schema_validator.h"
#include "tests/engine/constraints/texts.h"

namespace troupe::engine::constraints {
namespace {

using testing::HasSubstr;

Json schema_of(std::string_view text) {
  return value_or_throw(parse_json(text, "schema"));
}

struct Case {
  const char* schema;
  std::vector<const char*> good, bad;
};

void expect_texts(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    const Json schema = schema_of(each.schema);
    Automaton automaton(value_or_throw(compile_schema(schema)), {});
    for (const char* text : each.good) {
      EXPECT_TRUE(test::matches(automaton, text)) << each.schema << " on " << text;
      EXPECT_TRUE(test::is_instance(schema_of(text), schema, schema)) << text;
    }
    for (const char* text : each.bad)
      EXPECT_FALSE(test::matches(automaton, text)) << each.schema << " on " << text;
  }
}

TEST(JsonSchema, ValuesWithoutParts) {
  expect_texts({
      {R"({"type": "null"})", {"null"}, {"nul", "0"}},
      {R"({"type": "boolean"})", {"true", "false"}, {"1"}},
      {R"({"type": ["null", "integer"]})", {"null", "-12"}, {"-0", "01", "1.0", "\"1\""}},
      {R"({"type": "number"})", {"0", "-1.5e-7", "1E+10", "-0"}, {"1.", ".5", "01", "+1", "1e999"}},
      {R"({"type": "string"})",
       {R"("")", R"("a\n\u00e9\"é")", R"("\\/\/")", R"("\uD7ff")"},
       {R"(")", "\"\n\"", R"("\x")", R"("\ud800")", R"("a"b")", "\"\xFF\""}},
      {R"({"type": "string", "minLength": 1, "maxLength": 2})",
       {R"("a")", R"("é\n")", "\"😀😀\""},
       {R"("")", R"("abc")"}},
      {R"({"pattern": "[\"\\n]{2}x?"})", {R"("\"\n")", R"("\n\nx")"}, {"\"\n\n\"", R"("a")"}},
      {R"({"const": {"a": [1, "x"]}})", {R"({"a":[1,"x"]})"}, {"{}"}},
      {R"({"enum": ["a", 1, null], "type": ["string", "null"]})", {R"("a")", "null"}, {"1"}},
      {"true", {"{}", "[1, [2], {\"a\":null}]"}, {"", "[1,]", "{\"a\"}"}},
  });
}

TEST(JsonSchema, NumbersWithinBounds) {
  expect_texts({
      {R"({"type": "integer", "minimum": -12, "maximum": 105})",
       {"-12", "-9", "0", "9", "10", "99", "105"},
       {"-13", "-0", "106", "200", "1000", "-100", "00"}},
      {R"({"type": "integer", "exclusiveMinimum": 0})", {"1", "999999999999999"}, {"0", "-1"}},
      {R"({"type": "integer", "maximum": -5.5})", {"-6", "-1000"}, {"-5", "6"}},
      {R"({"type": "number", "minimum": 0, "maximum": 1})",
       {"0", "1", "0.5", "0.001"},
       {"1.5", "-0.5", "0.", "2"}},
      {R"({"type": "number", "exclusiveMinimum": -1.5, "exclusiveMaximum": 2})",
       {"-1", "-0.25", "0.5", "1.75", "1"},
       {"-1.25", "2", "2.5", "-2"}},
  });
  for (std::int64_t low = -120; low <= 120; low += 7) {
    for (std::int64_t high = low; high <= 130; high += 11) {
      const Json schema = Json::Object{{"type", "integer"}, {"minimum", low}, {"maximum", high}};
      Automaton automaton(value_or_throw(compile_schema(schema)), {});
      for (std::int64_t x = -140; x <= 140; ++x)
        EXPECT_EQ(test::matches(automaton, std::to_string(x)), low <= x && x <= high) << x;
    }
  }
}

TEST(JsonSchema, ListsAndObjects) {
  expect_texts({
      {R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
       {"[1]", "[1,2, 3]"},
       {"[]", "[1,2,3,4]", "[1,]", "[1  ,2]"}},
      {R"({"items": false})", {"[]"}, {"[1]"}},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}})",
       {"[]", "[1]", "[1, 2]", "[1,2,3,3]"},
       {"[2]", "[1,3]"}},
      {R"({"properties": {"a": {"type": "integer"}, "b": {"type": "null"}}, "required": ["b"]})",
       {R"({"a": 1, "b": null})", R"({"b":null})"},
       {R"({"a": 1})", R"({"b":null,"a":1})", R"({})", R"({"b":null,})"}},
      {R"({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2})",
       {"{}", R"({"x":1})", R"({"x":1,"y":2})"},
       {R"({"x":"1"})", R"({"x":1,"y":2,"z":3})"}},
      {R"({"type": "object"})", {"{}", R"({"a": {"b": []}})"}, {"[]"}},
      {R"({"properties": {"a": false}})", {"{}"}, {R"({"a":1})"}},
      {R"({"required": ["x"], "additionalProperties": {"type": "null"}})",
       {R"({"x": null})"},
       {"{}", R"({"x": 1})"}},
  });
}

TEST(JsonSchema, AlternativesAndReferences) {
  expect_texts({
      {R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})", {"1", "null"}, {"true"}},
      {R"({"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}], "$defs": {
            "cat": {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]},
            "dog": {"type": "object", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]}}})",
       {R"({"kind": "cat"})", R"({"kind": "dog"})"},
       {"{}"}},
      {R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
            "value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["value"]}}})",
       {R"({"value": 1})",
        R"({"value": 1, "children": [{"value": 2, "children": []}, {"value": 3}]})"},
       {R"({"value": 1, "children": [1]})"}},
      {R"({"allOf": [{"type": "boolean"}]})", {"true"}, {"1"}},
  });
}

TEST(JsonSchema, Formats) {
  expect_texts({
      {R"({"type": "string", "format": "date"})", {R"("2024-12-31")"}, {R"("2024-02-30")"}},
      {R"({"type": "string", "format": "date-time"})",
       {R"("2024-01-02T03:04:05Z")"},
       {R"("2024")"}},
      {R"({"type": "string", "format": "ipv4"})", {R"("127.0.0.1")"}, {R"("256.0.0.1")"}},
      {R"({"type": "string", "format": "uuid"})",
       {R"("123e4567-e89b-12d3-a456-426614174000")"},
       {R"("123")"}},
      {R"({"type": "string", "format": "email"})", {R"("a.b@c.org")"}, {R"("a.b")"}},
  });
}

TEST(JsonSchema, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(5)", "expected an object or a boolean"},
      {R"({"type": "text"})", "#: type: expected one of null, boolean"},
      {R"({"properties": {"a": {"contains": {}}}})", "#/properties/a: the keyword \"contains\""},
      {R"({"type": "array", "uniqueItems": true})", "uniqueItems is supported for"},
      {R"({"type": "string", "maxLength": -1})", "maxLength: expected"},
      {R"({"type": "string", "minLength": 100000})", "at most 65536"},
      {R"({"minItems": 3, "maxItems": 2})", "minItems is above maxItems"},
      {R"({"$ref": "#/nothing"})", "there is no \"#/nothing\""},
      {R"({"$ref": "http://example.org"})", "within the schema"},
      {R"({"$ref": "#"})", "no text satisfies"},
      {R"({"enum": []})", "enum: expected"},
      {R"({"enum": [1], "minimum": 2})", "no text satisfies"},
      {R"({"enum": [12345678901234567890]})", "a constant beyond 64 bits is not supported"},
      {R"({"type": "integer", "const": -92233720368547758080})", "a constant beyond 64 bits"},
      {R"({"minItems": 12345678901234567890})", "minItems is beyond 64 bits; at most 65536"},
      {R"({"multipleOf": 12345678901234567890})", "multipleOf: beyond 64 bits is not supported"},
      {R"({"oneOf": [{"format": "date"}, {"format": "time"}]})", "the negation of \"format\""},
      {R"({"not": {"additionalProperties": false}})", "negation of \"additionalProperties\""},
      {R"({"multipleOf": 12345})", "multipleOf: 12345 is not supported"},
      {R"x({"pattern": "(?=a)"})x", "not supported"},
      {R"({"pattern": "a", "maxLength": 0})", "no text satisfies"},
      {R"({"type": "integer", "minimum": 2.1, "maximum": 2.9})", "no text satisfies"},
      {R"({"type": "integer", "minimum": 1e300})", "beyond 2^63"},
      {"false", "no text satisfies"},
      {R"({"properties": {"a": {}}, "minProperties": 3})", "names of other members may repeat"}};
  for (const auto& [schema, message] : cases) {
    const auto found = compile_schema(schema_of(schema));
    ASSERT_FALSE(found) << schema;
    EXPECT_THAT(found.error().what, HasSubstr(message)) << schema;
  }
}

TEST(JsonSchema, CountsFromAboveThatAreTooLargeAreNoted) {
  std::vector<std::string> notes;
  const Json schema = schema_of(R"({"type": "object", "properties": {
      "a": {"type": "string", "maxLength": 65536}, "b": {"type": "array", "maxItems": 65537}},
      "maxProperties": 1e9})");
  ASSERT_TRUE(compile_schema(schema, Reasoning::none, &notes));
  EXPECT_THAT(notes, testing::ElementsAre(HasSubstr("maxProperties is above 65536"),
                                          HasSubstr("maxItems is above 65536")));
  // A count from below may not be lowered.
  for (const char* text : {R"({"type": "string", "minLength": 65537})",
                           R"({"type": "string", "not": {"maxLength": 65536}})"}) {
    const auto found = compile_schema(schema_of(text));
    ASSERT_FALSE(found) << text;
    EXPECT_THAT(found.error().what, HasSubstr("at most 65536")) << text;
  }
}

TEST(JsonSchema, KeywordsOfNoDraftAreAnnotations) {
  std::vector<std::string> notes;
  const Json schema = schema_of(R"({"id": "http://x/y", "type": "object", "x-order": 1,
      "properties": {"a": {"type": "string", "example": "b", "x-order": 2}, "b": {"const": 1, "x-c": 0}},
      "required": ["b"], "minProperties": null, "javaType": {"not": {}}})");
  Json known = schema;
  std::erase_if(known.object(), [](const auto& each) { return each.first == "minProperties"; });
  Automaton automaton(value_or_throw(compile_schema(known, Reasoning::none, &notes)), {});
  EXPECT_TRUE(test::matches(automaton, R"({"a":"b","b":1})"));
  EXPECT_FALSE(test::matches(automaton, R"({"a":1,"b":1})"));
  EXPECT_THAT(notes, testing::ElementsAre(HasSubstr("\"x-order\""), HasSubstr("\"javaType\""),
                                          HasSubstr("\"example\""), HasSubstr("\"x-c\"")));
  for (const char* keyword : {"contains", "unevaluatedItems", "extends", "$dynamicRef"}) {
    const auto found = compile_schema(Json::Object{{keyword, Json::Object{}}});
    ASSERT_FALSE(found) << keyword;
    EXPECT_THAT(found.error().what, HasSubstr("is not supported")) << keyword;
  }
}

TEST(JsonSchema, TheDraftDecidesWhatStandsBesideAReference) {
  Json schema = schema_of(
      R"({"definitions": {"n": {"type": "integer"}}, "$ref": "#/definitions/n", "minimum": 3})");
  EXPECT_FALSE(test::matches(compile_schema(schema), "1"));
  EXPECT_TRUE(test::matches(compile_schema(schema), "3"));
  schema.set("$schema", "http://json-schema.org/draft-07/schema#");
  EXPECT_TRUE(test::matches(compile_schema(schema), "1"));
  schema.set("$schema", "https://json-schema.org/draft/2019-09/schema");
  EXPECT_FALSE(test::matches(compile_schema(schema), "1"));
}

TEST(JsonSchema, ACountMayBeWrittenWithAFraction) {
  EXPECT_TRUE(test::matches(
      compile_schema(schema_of(R"({"items": {"const": 1}, "minItems": 2.0})")), "[1,1]"));
  EXPECT_THAT(compile_schema(schema_of(R"({"minItems": 2.5})")).error().what,
              HasSubstr("minItems: expected an integer"));
}

TEST(JsonSchema, HostileSchemasEndAtALimit) {
  Json deep = Json::Object{{"type", "integer"}};
  for (int i = 0; i < 200; ++i) deep = Json::Object{{"items", deep}};
  EXPECT_THAT(compile_schema(deep).error().what, HasSubstr("nested deeper"));
  Json::Array many(1000, Json::Object{{"const", std::string(300, 'x')}});
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = Json::Object{{"const", std::to_string(i) + std::string(300, 'x')}};
  EXPECT_EQ(compile_schema(Json::Object{{"anyOf", many}}).error().code, Errc::full);
  many.emplace_back(Json::Object{});
  EXPECT_THAT(compile_schema(Json::Object{{"anyOf", many}}).error().what,
              HasSubstr("at most 1000 are supported"));
}

TEST(JsonSchema, RandomTextsOf1000RandomSchemasAreInstances) {
  const auto table = test::small_vocabulary();
  std::mt19937 random(7);
  int bytes = 0;
  for (int n = 0; n < 1000; ++n) {
    const Json schema = test::random_schema(random, 3);
    auto grammar = compile_schema(schema);
    ASSERT_TRUE(grammar) << schema.dump() << ": " << grammar.error().what;
    Constraint constraint(std::move(*grammar), table);
    for (int k = 0; k < 3; ++k) {
      const auto [text, whole] = test::draw(constraint, *table, random, 4000);
      ASSERT_TRUE(whole) << schema.dump() << ": " << text;
      const auto value = parse_json(text, "text");
      ASSERT_TRUE(value) << schema.dump() << ": " << text;
      EXPECT_TRUE(test::is_instance(*value, schema, schema)) << schema.dump() << ": " << text;
      bytes += static_cast<int>(text.size());
    }
  }
  EXPECT_GT(bytes, 50'000);
}

}  // namespace
}  // namespace troupe::engine::constraints
