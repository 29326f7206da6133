// Keywords of JSON schemas, each with instances that its grammar has and texts that it must not
// have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/constraints/schema_source.h"
#include "tests/engine/constraints/texts.h"

namespace troupe::engine::constraints::schema_keywords_test {
namespace {

struct Case {
  const char* schema;
  std::vector<const char*> good, bad;
};

void expect_texts(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    auto grammar = compile_schema(value_or_throw(parse_json(each.schema, "schema")));
    ASSERT_TRUE(grammar) << each.schema << ": " << grammar.error().what;
    Automaton automaton(std::move(*grammar), {});
    for (const char* text : each.good)
      EXPECT_TRUE(test::matches(automaton, text)) << each.schema << " on " << text;
    for (const char* text : each.bad)
      EXPECT_FALSE(test::matches(automaton, text)) << each.schema << " on " << text;
  }
}

TEST(SchemaKeywords, SeveralSchemasHoldTogether) {
  expect_texts({
      {R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                     {"properties": {"a": {"minimum": 3}, "b": {"type": "null"}}}]})",
       {R"({"a":3})", R"({"a":12,"b":null})"},
       {R"({"a":2})", R"({"b":null})", "{}"}},
      {R"({"type": "object", "properties": {"k": {"enum": ["x", "y"]}}, "required": ["k"],
           "anyOf": [{"properties": {"k": {"const": "x"}, "n": {"type": "integer"}}, "required": ["n"]},
                     {"properties": {"k": {"const": "y"}}}]})",
       {R"({"k":"x","n":1})", R"({"k":"y"})"},
       {R"({"k":"x"})", R"({"k":"z"})"}},
      {R"({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "minimum": 5})", {"5"}, {"4"}},
      {R"({"enum": [1, "a", "abc", 7, null], "type": ["string", "integer"], "minLength": 2, "maximum": 5})",
       {"1", R"("abc")"},
       {"7", R"("a")", "null"}},
      {R"({"allOf": [{"pattern": "^[a-z]+$"}, {"pattern": "^[m-z0-9]+$"}, {"type": "string"}]})",
       {R"("mz")"},
       {R"("a")", R"("0")", R"("")"}},
      {R"({"allOf": [{"type": "integer"}, {"type": "number", "minimum": 0.5}]})",
       {"1"},
       {"0", "1.5"}},
      {R"({"allOf": [{"items": {"type": "integer"}}, {"maxItems": 1}, {"type": "array"}]})",
       {"[]", "[1]"},
       {"[1,2]", "[null]"}},
  });
}

TEST(SchemaKeywords, LengthsBesidePatternsAndFormats) {
  expect_texts({
      {R"({"pattern": "^[a-z]+$", "minLength": 2, "maxLength": 3})",
       {R"("ab")", R"("abc")"},
       {R"("a")", R"("abcd")"}},
      {R"({"pattern": "^é*\"?$", "maxLength": 2})", {R"("éé")", R"("é\"")"}, {R"("ééé")"}},
      {R"({"pattern": "^x-", "minLength": 4})", {R"("x-ab")"}, {R"("x-")", R"("yx-ab")"}},
      {R"({"format": "email", "maxLength": 6})", {R"("a@b.cd")"}, {R"("aa@b.cd")"}},
      {R"({"format": "date", "pattern": "^2024"})", {R"("2024-05-06")"}, {R"("2023-05-06")"}},
      {R"({"type": "string", "maxLength": 100000})", {R"("a")"}, {}},
  });
}

TEST(SchemaKeywords, MembersByPattern) {
  expect_texts({
      {R"({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false})",
       {"{}", R"({"x-a":1})", R"({"x-":1, "x-b": 2})"},
       {R"({"a":1})", R"({"x-a":"1"})"}},
      {R"({"properties": {"a": {"type": "null"}}, "patternProperties": {"^a": {}, "b$": {"type": "integer"}},
           "additionalProperties": {"type": "boolean"}})",
       {R"({"a":null,"ab":1,"zb":2,"c":true})", R"({"ac":"x"})"},
       {R"({"a":1})", R"({"ab":"x"})", R"({"c":1})", R"({"a":null,"a":null})",
        R"({"\u0061":true})"}},
      {R"({"patternProperties": {"^[0-9]+$": {"type": "string"}}, "properties": {"12": {"minLength": 1}},
           "required": ["12"], "additionalProperties": false})",
       {R"({"12":"a"})"},
       {R"({"12":""})", R"({"12":1})", R"({})"}},
      {R"({"type": "object", "propertyNames": {"pattern": "^[a-c]$"}, "additionalProperties": {"type": "null"}})",
       {R"({"a":null,"b":null})"},
       {R"({"d":null})"}},
      {R"({"properties": {"a": {"const": 1}}, "additionalProperties": {"const": 2}})",
       {R"({"a":1})", R"({"a":1,"b":2})"},
       {R"({"a":2})", R"({"b":1})"}},
      {R"({"patternProperties": {"^\\W": false}, "additionalProperties": {"const": 2}})",
       {R"({"a":2})"},
       {R"({"-":2})", R"({"é":2})"}},
  });
}

TEST(SchemaKeywords, NumbersOfMembers) {
  expect_texts({
      {R"({"properties": {"a": {"const": 1}, "b": {"const": 1}, "c": {"const": 1}},
           "additionalProperties": false, "minProperties": 2, "maxProperties": 2})",
       {R"({"a":1,"c":1})", R"({"b":1,"c":1})"},
       {R"({"a":1})", R"({"a":1,"b":1,"c":1})"}},
      {R"({"properties": {"a": {"const": 1}}, "minProperties": 2, "additionalProperties": {"const": 2}})",
       {R"({"a":1,"x":2})"},
       {R"({"a":1})", R"({"x":2,"y":2})"}},
      {R"({"properties": {"a": {"const": 1}}, "maxProperties": 2, "additionalProperties": {"const": 2}})",
       {"{}", R"({"a":1,"x":2})", R"({"x":2,"y":2})"},
       {R"({"a":1,"x":2,"y":2})"}},
  });
}

TEST(SchemaKeywords, ExactlyOneOption) {
  expect_texts({
      {R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 1}},
           "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})",
       {R"({"a":1})", R"({"b":1})"},
       {R"({"a":1,"b":1})", "{}"}},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", {"1.5"}, {"1", R"("a")"}},
      {R"({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "maxLength": 1}]})",
       {R"("ab")", R"("b")", R"("")"},
       {R"("a")", R"("bb")"}},
      {R"({"oneOf": [{"enum": [1, 2, 3]}, {"enum": [3, 4]}]})", {"1", "2", "4"}, {"3"}},
      {R"({"oneOf": [{"minimum": 2, "type": "integer"}, {"maximum": 5, "type": "integer"}]})",
       {"1", "6"},
       {"2", "3", "5"}},
      {R"({"oneOf": [{"properties": {"a": {"const": 1}}}, {"type": "string"}]})",
       {R"({"a":1})"},
       {R"("a")"}},
  });
}

TEST(SchemaKeywords, NegationsAndConditions) {
  expect_texts({
      {R"({"not": {"type": ["string", "object", "array"]}})",
       {"1", "null"},
       {R"("a")", "{}", "[]"}},
      {R"({"type": "string", "not": {"enum": ["a", "b"]}})",
       {R"("c")", R"("ab")"},
       {R"("a")", R"("b")"}},
      {R"({"type": "integer", "not": {"const": 5}})", {"4", "6", "-5"}, {"5"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}}, "not": {"required": ["a"]}})",
       {"{}"},
       {R"({"a":1})"}},
      {R"({"type": "string", "not": {"pattern": "b"}})", {R"("ac")"}, {R"("abc")", R"("b")"}},
      {R"({"properties": {"k": {"enum": ["x", "y"]}, "n": {"type": "integer"}}, "required": ["k"],
           "if": {"properties": {"k": {"const": "x"}}}, "then": {"required": ["n"]}, "else": {"not": {"required": ["n"]}}})",
       {R"({"k":"x","n":1})", R"({"k":"y"})"},
       {R"({"k":"x"})", R"({"k":"y","n":1})"}},
      {R"({"properties": {"a": {"const": 1}, "b": {"const": 1}}, "dependentRequired": {"a": ["b"]}})",
       {"{}", R"({"b":1})", R"({"a":1,"b":1})"},
       {R"({"a":1})"}},
      {R"({"properties": {"a": {"const": 1}, "b": {"type": "integer"}},
           "dependencies": {"a": {"properties": {"b": {"minimum": 3}}, "required": ["b"]}}})",
       {R"({"b":1})", R"({"a":1,"b":3})"},
       {R"({"a":1})", R"({"a":1,"b":2})"}},
  });
}

TEST(SchemaKeywords, ListsOfElements) {
  expect_texts({
      {R"({"type": "array", "items": [{"const": 1}, {"const": 2}], "additionalItems": {"const": 3}})",
       {"[]", "[1,2]", "[1,2,3,3]"},
       {"[2]", "[1,2,1]"}},
      {R"({"items": [{"const": 1}], "additionalItems": false})", {"[]", "[1]"}, {"[1,1]"}},
      {R"({"uniqueItems": true, "items": {"enum": ["a", "b", 3]}, "minItems": 2})",
       {R"(["b","a"])", R"(["a",3,"b"])"},
       {R"(["a"])", R"(["a","a"])"}},
      {R"({"uniqueItems": true, "items": {"enum": [1,2,3,4,5,6,7,8,9,10]}, "maxItems": 3})",
       {"[]", "[2,3,9]"},
       {"[2,2]", "[1,2,3,4]"}},
      {R"({"uniqueItems": true, "maxItems": 1, "items": {"type": "integer"}})", {"[5]"}, {"[5,6]"}},
  });
}

TEST(SchemaKeywords, LargeNumbersAndMultiples) {
  expect_texts({
      {R"({"type": "integer"})",
       {"1234567890123456789", "-9223372036854775807"},
       {"9223372036854775808"}},
      {R"({"type": "integer", "minimum": 9007199254740993, "maximum": 9223372036854775807})",
       {"9007199254740993", "9223372036854775807"},
       {"9007199254740992", "9223372036854775808"}},
      {R"({"type": "integer", "multipleOf": 7, "minimum": -20, "maximum": 100})",
       {"-14", "0", "7", "98"},
       {"1", "105", "-21", "-0"}},
      {R"({"type": "number", "multipleOf": 0.01})", {"1.25", "3", "-0.5"}, {"0.001", "1.234"}},
      {R"({"type": "number", "multipleOf": 2.5})", {"5", "-10"}, {"1", "3"}},
      {R"({"minimum": 1, "exclusiveMinimum": true, "type": "integer"})", {"2"}, {"1"}},
  });
}

TEST(SchemaKeywords, MoreFormats) {
  expect_texts({
      {R"({"format": "uri"})",
       {R"("https://a.b/c?d=e#f")", R"("urn:isbn:1")"},
       {R"("a b")", R"("/x")"}},
      {R"({"format": "uri-reference"})", {R"("/a/b")", R"("a#b")"}, {R"("a b")"}},
      {R"({"format": "hostname"})", {R"("a-b.example.org")"}, {R"("-a")", R"("a_b")"}},
      {R"({"format": "ipv6"})", {R"("::1")", R"("1:2:3:4:5:6:7:8")"}, {R"("1:2")", R"(":::")"}},
      {R"({"format": "duration"})", {R"("P1Y")", R"("PT5M")", R"("P2W")"}, {R"("P")", R"("1Y")"}},
      {R"({"format": "json-pointer"})", {R"("/a~1b")", R"("")"}, {R"("a")", R"("/~")"}},
      {R"({"format": "regex"})", {R"("^a+.*$")"}, {R"("(")"}},
      {R"({"type": "string", "format": "color"})", {R"("any")"}, {"1"}},
  });
}

TEST(SchemaKeywords, UnevaluatedMembers) {
  expect_texts({
      {R"({"type": "object", "allOf": [{"properties": {"a": {"const": 1}}}], "properties": {"b": {"const": 2}},
           "unevaluatedProperties": false, "required": ["b"]})",
       {R"({"b":2})", R"({"b":2,"a":1})"},
       {R"({"c":2})"}},
      {R"({"type": "object", "anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"minProperties": 1}],
           "required": ["a"], "unevaluatedProperties": {"type": "null"}})",
       {R"({"a":1})"},
       {R"({"a":2})"}},
  });
}

TEST(SchemaKeywords, ReferencesToAnchorsAndIdentifiers) {
  expect_texts({
      {R"({"$ref": "#n", "$defs": {"a": {"$anchor": "n", "type": "null"}}})", {"null"}, {"1"}},
      {R"({"$id": "http://x.org/root.json", "$ref": "item.json#/$defs/i",
           "$defs": {"a": {"$id": "item.json", "$defs": {"i": {"$ref": "#/$defs/j"}, "j": {"type": "integer"}}}}})",
       {"1"},
       {"null"}},
  });
  EXPECT_EQ(resolved_uri("http://a/b/c/d?q", "../g"), "http://a/b/g");
  EXPECT_EQ(resolved_uri("http://a/b/c/d?q", "g?y"), "http://a/b/c/g?y");
  EXPECT_EQ(resolved_uri("http://a/b/c/d?q", "/g"), "http://a/g");
  EXPECT_EQ(resolved_uri("http://a/b/c/d?q", "//g"), "http://g");
  EXPECT_EQ(resolved_uri("http://a/b/c/d?q", "."), "http://a/b/c/");
}

}  // namespace
}  // namespace troupe::engine::constraints::schema_keywords_test
