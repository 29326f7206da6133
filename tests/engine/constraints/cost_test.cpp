// Cost of what a client may send: each keyword of a schema and each construct of an expression or
// grammar, as often as a request of 1 MB can hold it, and half as often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <set>

#include "engine/base/text/text.h"
#include "engine/base/text/utf8.h"
#include "engine/base/threads/work_budget.h"
#include "engine/constraints/compile.h"
#include "engine/constraints/json_schema.h"
#include "tests/engine/constraints/texts.h"
#include "tests/support/sanitized.h"

namespace troupe::engine::constraints {
namespace {

constexpr std::int64_t request_bytes = 1'000'000;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Run>
double seconds_of(Run run) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double begin = processor_seconds();
    run();
    best = std::min(best, processor_seconds() - begin);
    if (best > 1) break;
  }
  return best;
}

/// Compiles, and makes the states of the first bytes of some texts.
void use(Result<Grammar> grammar) {
  if (!grammar) return;
  try {
    Automaton automaton(std::move(*grammar), {});
    for (const std::string_view text : {"{\"a\":\"", "[1,2,3,", "aaaaaaaa", "\"x\\n"}) {
      auto state = automaton.start();
      for (const char byte : text) {
        for (int other = 0; other < 256; ++other)
          automaton.step(state, static_cast<unsigned char>(other));
        state = automaton.step(state, static_cast<unsigned char>(byte));
        if (state == Automaton::dead) break;
      }
    }
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, Errc::full);
  }
}

/// `run(n)` takes at most a second, and about twice as long as for n / 2, or refuses. Sanitizers
/// see a sixteenth of it once.
void expect_linear(const std::string& name, std::int64_t n,
                   const std::function<std::function<void()>(std::int64_t)>& runner) {
  if (test::sanitized) return runner(n / 16)();  // ten times slower: what it finds is no time
  const auto half = runner(n / 2), whole = runner(n);
  const double of_half = seconds_of(half), of_whole = seconds_of(whole);
  EXPECT_LT(of_whole, 1) << name << ", " << n << " times";
  EXPECT_LT(of_whole, 3 * of_half + 0.03) << name << ", " << n << " times";
}

std::string number(std::int64_t i) {
  return std::to_string(i);
}
template <class Make>
Json list(std::int64_t n, Make make) {
  Json::Array out;
  for (std::int64_t i = 0; i < n; ++i) out.emplace_back(make(i));
  return out;
}
template <class Make>
Json members(std::int64_t n, Make make) {
  Json::Object out;
  for (std::int64_t i = 0; i < n; ++i) out.emplace_back("p" + number(i), make(i));
  return out;
}
std::string repeated(std::int64_t n, const std::function<std::string(std::int64_t)>& part) {
  std::string out;
  for (std::int64_t i = 0; i < n; ++i) out += part(i);
  return out;
}

using Schema = Json::Object;
struct SchemaCase {
  std::vector<std::string_view> keywords;
  std::int64_t bytes;  // of one more
  std::function<Json(std::int64_t)> make;
};

Json constant(std::int64_t i) {
  return Schema{{"const", i}};
}

std::vector<SchemaCase> schema_cases() {
  const auto whole = [](std::string key, Json value) { return Json(Schema{{key, value}}); };
  const auto elements = [](std::int64_t n, const Json& each) {
    return Json(Schema{{"prefixItems", list(n, [&](std::int64_t) { return each; })}});
  };
  const auto described = [](std::int64_t n, const Json& each) {
    return Json(Schema{{"properties", members(n, [&](std::int64_t) { return each; })}});
  };
  return {
      {{"not"},
       40,
       [=](auto n) {
         return elements(n, Schema{{"not", Schema{{"type", "string"}}}});
       }},
      {{"not", "enum"},
       8,
       [=](auto n) {
         return whole("not", Schema{{"enum", list(n, [](auto i) { return Json(number(i)); })}});
       }},
      {{"if", "then", "else"},
       90,
       [=](auto n) {
         const Json condition = Schema{{"required", Json::Array{"a"}}};
         return elements(n, Schema{{"if", condition}, {"then", constant(1)}, {"else", condition}});
       }},
      {{"uniqueItems"},
       8,
       [=](auto n) {
         const Json items = Schema{{"enum", list(n, [](auto i) { return Json(i); })}};
         return Json(Schema{{"uniqueItems", true}, {"items", items}});
       }},
      {{"multipleOf"},
       60,
       [=](auto n) {
         return elements(n, Schema{{"type", "integer"}, {"multipleOf", 7}, {"maximum", 999}});
       }},
      {{"additionalItems"},
       60,
       [=](auto n) {
         return elements(
             n, Schema{{"items", Json::Array{constant(1)}}, {"additionalItems", constant(2)}});
       }},
      {{"patternProperties"},
       20,
       [=](auto n) { return whole("patternProperties", members(n, constant)); }},
      {{"propertyNames"},
       60,
       [=](auto n) {
         return elements(n, Schema{{"propertyNames", Schema{{"pattern", "^a"}}}});
       }},
      {{"dependencies", "dependentRequired", "dependentSchemas"},
       70,
       [=](auto n) {
         const Json needed = Schema{{"a", Json::Array{"b"}}};
         return elements(n, Schema{{"dependencies", needed},
                                   {"dependentRequired", needed},
                                   {"dependentSchemas", Schema{{"a", constant(1)}}}});
       }},
      {{"dependentRequired"},
       20,
       [=](auto n) {
         return whole("dependentRequired", members(n, [](auto) { return Json(Json::Array{"b"}); }));
       }},
      {{"unevaluatedProperties"},
       60,
       [=](auto n) {
         return elements(n, Schema{{"properties", Schema{{"a", constant(1)}}},
                                   {"unevaluatedProperties", false}});
       }},
      {{"pattern", "minLength"},
       60,
       [=](auto n) {
         return elements(n, Schema{{"pattern", "^[a-z]+x"}, {"minLength", 9}, {"maxLength", 99}});
       }},
      {{"oneOf", "const"}, 15, [=](auto n) { return whole("oneOf", list(n, constant)); }},
      {{"oneOf"},
       18,
       [=](auto n) {
         return whole("oneOf", list(n, [](auto) { return Json(Schema{{"type", "string"}}); }));
       }},
      {{"oneOf", "properties", "required"},
       80,
       [=](auto n) {
         return whole(
             "oneOf", list(std::min<std::int64_t>(n, 1000), [&](auto i) {
               const auto more = n / 1000;
               Json names = list(more, [](auto k) { return Json("p" + number(k)); });
               Json props = members(more, [&](auto) { return constant(i % 7); });
               return Json(Schema{{"type", "object"}, {"properties", props}, {"required", names}});
             }));
       }},
      {{"anyOf"}, 15, [=](auto n) { return whole("anyOf", list(n, constant)); }},
      {{"allOf"}, 15, [=](auto n) { return whole("allOf", list(n, constant)); }},
      {{"enum"}, 8, [=](auto n) { return whole("enum", list(n, [](auto i) { return Json(i); })); }},
      {{"enum", "type"},
       16,
       [](auto n) {
         Json types = list(n, [](auto) { return Json("null"); });
         Json values = list(n, [](auto i) { return Json(i); });
         return Json(Schema{{"type", types}, {"enum", values}});
       }},
      {{"type"},
       9,
       [](auto n) {
         Json types = list(n, [](auto) { return Json("object"); });
         return Json(
             Schema{{"type", types}, {"properties", Schema{{"a", Schema{{"type", types}}}}}});
       }},
      {{"required"},
       8,
       [=](auto n) { return whole("required", list(n, [](auto i) { return Json(number(i)); })); }},
      {{"properties", "required"},
       30,
       [](auto n) {
         Json names = list(n, [&](auto) { return Json("p" + number(n - 1)); });
         return Json(Schema{{"properties", members(n, constant)}, {"required", names}});
       }},
      {{"properties"},
       1000,
       [](auto n) {  // below a long name
         return Json(
             Schema{{"properties", Schema{{std::string(static_cast<std::size_t>(900 * n), 'x'),
                                           Schema{{"properties", members(n, constant)}}}}}});
       }},
      {{"$ref"},
       60,
       [](auto n) {
         Json references = members(n, [](auto i) {
           return Json(Schema{{"$ref", "#/$defs/p" + number(i)}});
         });
         return Json(Schema{{"properties", references}, {"$defs", members(n, constant)}});
       }},
      {{"$ref", "oneOf"},
       60,
       [](auto n) {
         Json references = list(n, [](auto i) {
           return Json(Schema{{"$ref", "#/$defs/p" + number(i)}});
         });
         return Json(Schema{{"oneOf", references}, {"$defs", members(n, constant)}});
       }},
      {{"items", "minItems", "maxItems"},
       70,
       [=](auto n) {
         return described(n, Schema{{"items", constant(1)}, {"minItems", 9}, {"maxItems", 65536}});
       }},
      {{"prefixItems"}, 12, [=](auto n) { return whole("prefixItems", list(n, constant)); }},
      {{"additionalProperties", "maxProperties", "minProperties"},
       90,
       [=](auto n) {
         return described(n, Schema{{"additionalProperties", constant(1)},
                                    {"minProperties", 1},
                                    {"maxProperties", 65536}});
       }},
      {{"minLength", "maxLength"},
       50,
       [=](auto n) {
         return described(n, Schema{{"minLength", 5}, {"maxLength", 65536}});
       }},
      {{"pattern"},
       8,
       [=](auto n) { return whole("pattern", repeated(n, [](auto) { return "[^x-z]{0,9}"; })); }},
      {{"format"},
       30,
       [=](auto n) {
         return described(n, Schema{{"format", "ipv4"}});
       }},
      {{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
       60,
       [=](auto n) {
         return described(n, Schema{{"minimum", -123456789},
                                    {"maximum", 987654321},
                                    {"exclusiveMinimum", -123456790.5},
                                    {"exclusiveMaximum", 987654322.5}});
       }},
      {{"const"},
       4,
       [=](auto n) { return whole("const", list(n, [](auto) { return Json("x"); })); }},
  };
}

TEST(Cost, OfEachKeywordIsLinear) {
  std::set<std::string_view> covered;
  for (const SchemaCase& each : schema_cases()) {
    covered.insert(each.keywords.begin(), each.keywords.end());
    const std::vector<std::string> names(each.keywords.begin(), each.keywords.end());
    expect_linear(join(names, ", "), request_bytes / each.bytes, [&](std::int64_t n) {
      return [schema = each.make(n)] { use(compile_schema(schema)); };
    });
  }
  for (const std::string_view keyword : schema_keywords())
    EXPECT_TRUE(covered.contains(keyword)) << "no case for " << keyword;
}

std::string supplementary(std::int64_t i) {  // every second character above U+10000
  std::string out;
  append_utf8(out, static_cast<char32_t>(0x10000 + 2 * (i % 500'000)));
  return out;
}

struct TextCase {
  const char* name;
  std::int64_t bytes;  // of one more
  std::function<std::string(std::int64_t)> make;
};

TEST(Cost, OfEachConstructOfAnExpressionIsLinear) {
  const auto times = [](const char* part) {
    return [part](std::int64_t n) { return repeated(n, [part](auto) { return part; }); };
  };
  const auto nest = [](const char* open, const char* close) {
    return [open, close](std::int64_t n) {
      return repeated(n, [&](auto) { return open; }) + "a" +
             repeated(n, [&](auto) { return close; });
    };
  };
  const TextCase cases[] = {
      {"a class of distant characters", 4,
       [](auto n) { return "[" + repeated(n, supplementary) + "]"; }},
      {"a negated class", 4, [](auto n) { return "[^" + repeated(n, supplementary) + "]"; }},
      {"a class of ranges", 3,
       [](auto n) { return "[" + repeated(n, [](auto) { return "a-y"; }) + "]"; }},
      {"a class of shorthands", 2,
       [](auto n) { return "[" + repeated(n, [](auto) { return "\\W"; }) + "]"; }},
      {"characters", 1, times("a")},
      {"any characters", 1, times(".")},
      {"alternatives", 2, times("a|")},
      {"different alternatives", 7,
       [](auto n) { return repeated(n, [](auto i) { return number(i) + "|"; }); }},
      {"options", 2, times("a?")},
      {"stars", 2, times("a*")},
      {"groups", 4, times("(a)?")},
      {"named groups", 8, times("(?<n>a)*")},
      {"a long name of a group", 1,
       [](auto n) { return "(?<" + std::string(static_cast<std::size_t>(n), 'n') + ">a)"; }},
      {"counts", 8, times("a{0,999}")},
      {"exact counts", 8, times("a{9,999}")},
      {"counts of what may be empty", 10, times("(b?){0,99}")},
      {"escapes", 6, times("\\u0061")},
      {"nested groups", 2, nest("(", ")")},
      {"nested counts", 10,
       [](auto n) {
         const auto levels = std::min<std::int64_t>(n, 90);
         return repeated(levels, [](auto) { return "("; }) + "a?" +
                repeated(levels, [](auto) { return "){0,99}"; });
       }},
      {"a mistake at the end", 1,
       [](auto n) { return std::string(static_cast<std::size_t>(n), 'a') + ")"; }},
  };
  for (const auto& [name, bytes, make] : cases) {
    expect_linear(name, request_bytes / bytes,
                  [&](std::int64_t n) { return [text = make(n)] { use(compile_regex(text)); }; });
  }
}

TEST(Cost, OfEachConstructOfAGrammarIsLinear) {
  const auto times = [](const char* part) {
    return [part](std::int64_t n) {
      return "root ::= " + repeated(n, [part](auto) { return part; }) + "\"x\"";
    };
  };
  const TextCase cases[] = {
      {"a chain of rules", 25,
       [](auto n) {
         return "root ::= r0\n" +
                repeated(n,
                         [](auto i) { return "r" + number(i) + " ::= r" + number(i + 1) + "\n"; }) +
                "r" + number(n) + " ::= \"x\"";
       }},
      {"a chain of rules that may be empty", 30,
       [](auto n) {
         return "root ::= r0\n" +
                repeated(n,
                         [](auto i) {
                           return "r" + number(i) + " ::= r" + number(i + 1) + "? \"\"\n";
                         }) +
                "r" + number(n) + " ::= \"x\"";
       }},
      {"a chain of counts", 30,
       [](auto n) {
         return "root ::= r0\n" +
                repeated(
                    n,
                    [](auto i) { return "r" + number(i) + " ::= r" + number(i + 1) + "{0,9}\n"; }) +
                "r" + number(n) + " ::= \"x\"?";
       }},
      {"references to one rule", 2,
       [](auto n) {
         return "root ::= " + repeated(n, [](auto) { return "a "; }) + "\na ::= \"a\"?";
       }},
      {"rules that are not defined", 8,
       [](auto n) {
         return "root ::= " + repeated(n, [](auto i) { return "a" + number(i) + " "; });
       }},
      {"rules of long names", 2000,
       [](auto n) {
         return "root ::= \"x\"\n" + repeated(n, [](auto i) {
                  return std::string(1990, 'x') + number(i) + "::=\"x\"\n";
                });
       }},
      {"alternatives", 4, times("\"a\"|")},
      {"groups", 3, times("()?")},
      {"a class of distant characters", 4,
       [](auto n) { return "root ::= [" + repeated(n, supplementary) + "]"; }},
      {"a literal", 1,
       [](auto n) { return "root ::= \"" + std::string(static_cast<std::size_t>(n), 'a') + "\""; }},
      {"literals", 4, times("\"a\" ")},
      {"any characters", 2, times(". ")},
      {"counts", 11, times("\"a\"{0,999} ")},
      {"comments", 2,
       [](auto n) { return repeated(n, [](auto) { return "#\n"; }) + "root ::= \"a\""; }},
      {"a mistake at the end", 1,
       [](auto n) {
         return "root ::= \"a\"" + std::string(static_cast<std::size_t>(n), '\n') + ")";
       }},
      {"recursion", 10, times("(root | ) ")},
  };
  for (const auto& [name, bytes, make] : cases) {
    expect_linear(name, request_bytes / bytes,
                  [&](std::int64_t n) { return [text = make(n)] { use(compile_ebnf(text)); }; });
  }
}

TEST(Cost, OfChoicesIsLinear) {
  expect_linear("choices", request_bytes / 8, [](std::int64_t n) {
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < n; ++i) texts.push_back(number(i));
    return [texts] { use(compile_choice(texts)); };
  });
  expect_linear("long choices", request_bytes / 2000, [](std::int64_t n) {
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < n; ++i) texts.push_back(std::string(1990, 'x') + number(i));
    return [texts] { use(compile_choice(texts)); };
  });
}

/// Many parts that match the same text, all different.
std::string ambiguous(int parts) {
  return repeated(parts, [](auto i) {
    return "|.{" + number(i) + "}" + std::string(1, static_cast<char>('a' + i % 26));
  });
}

TEST(Cost, OfTheStatesOfATextIsBounded) {
  const std::string patterns[] = {"(.?){0,1500}",
                                  "(.?.?){0,1000}x",
                                  "((a|.)?){0,900}",
                                  "([^\\x01]{0,6}[^\\x02]{0,6}[^\\x03]{0,6}){0,100}",
                                  "(.{0,9}a){0,99}",
                                  "(.*a){900}",
                                  "(a|b)*a(a|b){40}",
                                  ".{0,65536}",
                                  "((.{0,99}){0,99}){0,99}",
                                  "(.{9,99}){9,99}",
                                  "(.{1,50}x?){3,50}y",
                                  "(((.?){0,50}){0,50}){50}",
                                  "((.*){0,99}.{0,99}x?){0,99}",
                                  "(.?x?){0,999}(.?y?){0,999}(.?z?){0,999}",
                                  ambiguous(1500),
                                  "(" + ambiguous(99) + "){0,99}"};
  const auto table = test::small_vocabulary();
  for (const std::string& pattern : patterns) {
    auto grammar = compile_regex(pattern);
    ASSERT_TRUE(grammar) << pattern << ": " << grammar.error().what;
    const double begin = processor_seconds();
    try {
      Constraint constraint(std::move(*grammar), table);
      std::mt19937 random(5);
      test::draw(constraint, *table, random, 300);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.error().code, Errc::full);
    }
    EXPECT_LT(processor_seconds() - begin, 2) << pattern.substr(0, 80);
  }
}

TEST(Cost, WorkThatNobodyWaitsForEnds) {
  WorkBudget gone;
  gone.cancel();
  const WorkBudget late(WorkBudget::Clock::now());
  for (const auto& [budget, code] :
       {std::pair(&std::as_const(gone), Errc::cancelled), std::pair(&late, Errc::timeout)}) {
    const WorkBudget::Scope scope(*budget);
    EXPECT_EQ(compile_regex(std::string(100'000, '.')).error().code, code);
    const Json schema = Schema{{"required", list(100'000, [](auto i) { return Json(number(i)); })}};
    EXPECT_EQ(compile_schema(schema).error().code, Errc::unsupported);  // a limit comes first
  }
}

}  // namespace
}  // namespace troupe::engine::constraints
