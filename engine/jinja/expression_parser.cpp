#include "engine/jinja/expression_parser.h"

#include <algorithm>

#include "engine/base/text/parse.h"
#include "engine/base/text/text.h"
#include "engine/jinja/filters.h"
#include "engine/jinja/tests.h"

namespace troupe::engine::jinja {
namespace {
constexpr int max_height = 600;
}  // namespace

ExprPtr ExpressionParser::make(Expr::Kind kind, std::string text) const {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->line = cursor_.peek().line;
  out->text = std::move(text);
  return out;
}

ExprPtr ExpressionParser::grown(ExprPtr expr) const {
  for (const auto& part : expr->parts)
    if (part) expr->height = std::max(expr->height, part->height + 1);
  for (const auto& keyword : expr->keywords)
    expr->height = std::max(expr->height, keyword.value->height + 1);
  if (expr->height > max_height)
    cursor_.wrong(cat("an expression of more than ", max_height, " steps"));
  return expr;
}

ExprPtr ExpressionParser::expression() {
  const Depth depth(*this);
  const bool lenient_before = lenient;
  const std::string unknown_before = unknown;
  ExprPtr value = logical_or();
  if (cursor_.is_name("if")) {
    unknown = unknown_before;
    lenient = true;
  }
  while (cursor_.skip_name("if")) {
    auto out = make(Expr::Kind::conditional);
    out->parts.push_back(std::move(value));
    out->parts.push_back(logical_or());
    out->parts.push_back(cursor_.skip_name("else") ? expression() : nullptr);
    value = grown(std::move(out));
  }
  lenient = lenient_before;
  return value;
}

bool ExpressionParser::at_tuple_end(std::string_view until_name) const {
  const auto kind = cursor_.peek().kind;
  return kind == Token::Kind::variable_end || kind == Token::Kind::block_end ||
         cursor_.is_op(")") || (!until_name.empty() && cursor_.is_name(until_name));
}

ExprPtr ExpressionParser::tuple(bool conditional, std::string_view until_name) {
  const auto one = [&] { return conditional ? expression() : logical_or(); };
  ExprPtr first = one();
  if (!cursor_.is_op(",")) return first;
  auto out = make(Expr::Kind::tuple);
  out->parts.push_back(std::move(first));
  while (cursor_.skip_op(",")) {
    if (at_tuple_end(until_name)) break;
    out->parts.push_back(one());
  }
  return grown(std::move(out));
}

ExprPtr ExpressionParser::binary_chain(ExprPtr (ExpressionParser::*operand)(),
                                       std::initializer_list<std::string_view> operators) {
  ExprPtr left = (this->*operand)();
  for (;;) {
    const auto found = std::find_if(operators.begin(), operators.end(),
                                    [&](std::string_view op) { return cursor_.is_op(op); });
    if (found == operators.end()) return left;
    auto out = make(Expr::Kind::binary, cursor_.next().text);
    out->parts.push_back(std::move(left));
    out->parts.push_back((this->*operand)());
    left = grown(std::move(out));
  }
}

ExprPtr ExpressionParser::logical_or() {
  ExprPtr left = logical_and();
  while (cursor_.skip_name("or")) {
    auto out = make(Expr::Kind::logical_or);
    out->parts.push_back(std::move(left));
    out->parts.push_back(logical_and());
    left = grown(std::move(out));
  }
  return left;
}

ExprPtr ExpressionParser::logical_and() {
  ExprPtr left = logical_not();
  while (cursor_.skip_name("and")) {
    auto out = make(Expr::Kind::logical_and);
    out->parts.push_back(std::move(left));
    out->parts.push_back(logical_not());
    left = grown(std::move(out));
  }
  return left;
}

ExprPtr ExpressionParser::logical_not() {
  if (!cursor_.is_name("not")) return comparison();
  const Depth depth(*this);
  cursor_.next();
  auto out = make(Expr::Kind::logical_not);
  out->parts.push_back(logical_not());
  return grown(std::move(out));
}

ExprPtr ExpressionParser::comparison() {
  ExprPtr first = sum();
  ExprPtr out;
  for (;;) {
    std::string op;
    for (const std::string_view known : {"==", "!=", "<=", ">=", "<", ">"})
      if (cursor_.is_op(known)) op = known;
    if (cursor_.is_name("in")) op = "in";
    if (cursor_.is_name("not") && cursor_.peek(1).kind == Token::Kind::name &&
        cursor_.peek(1).text == "in") {
      op = "not in";
      cursor_.next();
    }
    if (op.empty()) return out ? grown(std::move(out)) : std::move(first);
    cursor_.next();
    if (!out) {
      out = make(Expr::Kind::compare);
      out->parts.push_back(std::move(first));
    }
    out->operators.push_back(op);
    out->parts.push_back(sum());
  }
}

ExprPtr ExpressionParser::sum() {
  return binary_chain(&ExpressionParser::concatenation, {"+", "-"});
}
ExprPtr ExpressionParser::concatenation() {
  return binary_chain(&ExpressionParser::product, {"~"});
}
ExprPtr ExpressionParser::product() {
  return binary_chain(&ExpressionParser::power, {"*", "/", "//", "%"});
}
ExprPtr ExpressionParser::power() {
  ExprPtr left = unary(true);
  while (cursor_.is_op("**")) {
    auto out = make(Expr::Kind::binary, cursor_.next().text);
    out->parts.push_back(std::move(left));
    out->parts.push_back(unary(true));
    left = grown(std::move(out));
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  const Depth depth(*this);
  ExprPtr out;
  if (cursor_.is_op("-") || cursor_.is_op("+")) {
    out = make(cursor_.next().text == "-" ? Expr::Kind::negate : Expr::Kind::plus);
    out->parts.push_back(unary(false));
    out = grown(std::move(out));
  } else {
    out = primary();
  }
  out = postfix(std::move(out));
  return with_filters ? filters(std::move(out), false) : std::move(out);
}

ExprPtr ExpressionParser::primary() {
  const Depth depth(*this);
  switch (cursor_.peek().kind) {
    case Token::Kind::name:
      return name_or_constant();
    case Token::Kind::string:
    case Token::Kind::integer:
    case Token::Kind::real:
      return literal();
    default:
      break;
  }
  if (cursor_.skip_op("(")) {
    if (cursor_.skip_op(")")) return make(Expr::Kind::tuple);
    ExprPtr inner = tuple(true);
    cursor_.expect_op(")");
    return inner;
  }
  if (cursor_.skip_op("[")) return brackets("]", Expr::Kind::list);
  if (cursor_.skip_op("{")) return dict();
  cursor_.wrong(cat("expected an expression, found ", cursor_.peek().text.empty()
                                                          ? "the end of the tag"
                                                          : quote(cursor_.peek().text)));
}

ExprPtr ExpressionParser::name_or_constant() {
  const std::string name = cursor_.next().text;
  auto out = make(Expr::Kind::literal);
  if (name == "true" || name == "True")
    out->value = true;
  else if (name == "false" || name == "False")
    out->value = false;
  else if (name != "none" && name != "None")
    out = make(Expr::Kind::name, name);
  caller_named |= name == "caller";
  kwargs_named |= name == "kwargs";
  varargs_named |= name == "varargs";
  return out;
}

ExprPtr ExpressionParser::literal() {
  auto out = make(Expr::Kind::literal);
  const Token token = cursor_.next();
  if (token.kind == Token::Kind::string) {
    std::string text = token.text;
    while (cursor_.peek().kind == Token::Kind::string) text += cursor_.next().text;
    out->value = std::move(text);
  } else if (token.kind == Token::Kind::integer) {
    const auto value = parse_number<std::int64_t>(token.text);
    if (!value) cursor_.wrong(cat("the integer ", token.text, " does not fit 64 bits"));
    out->value = *value;
  } else {
    out->value = parse_number<double>(token.text).value_or(0);
  }
  return out;
}

ExprPtr ExpressionParser::brackets(std::string_view close, Expr::Kind kind) {
  auto out = make(kind);
  while (!cursor_.is_op(close)) {
    if (!out->parts.empty()) cursor_.expect_op(",");
    if (cursor_.is_op(close)) break;
    out->parts.push_back(expression());
  }
  cursor_.expect_op(close);
  return grown(std::move(out));
}

ExprPtr ExpressionParser::dict() {
  auto out = make(Expr::Kind::dict);
  while (!cursor_.is_op("}")) {
    if (!out->parts.empty()) cursor_.expect_op(",");
    if (cursor_.is_op("}")) break;
    out->parts.push_back(expression());
    cursor_.expect_op(":");
    out->parts.push_back(expression());
  }
  cursor_.expect_op("}");
  return grown(std::move(out));
}

ExprPtr ExpressionParser::postfix(ExprPtr start) {
  for (;;) {
    if (cursor_.skip_op(".")) {
      if (cursor_.peek().kind == Token::Kind::integer) {
        auto out = make(Expr::Kind::item);
        out->parts.push_back(std::move(start));
        out->parts.push_back(literal());
        start = grown(std::move(out));
        continue;
      }
      auto out = make(Expr::Kind::attribute, cursor_.expect_name());
      out->parts.push_back(std::move(start));
      start = grown(std::move(out));
    } else if (cursor_.skip_op("[")) {
      start = subscript(std::move(start));
    } else if (cursor_.is_op("(")) {
      start = call(std::move(start));
    } else {
      return start;
    }
  }
}

// An expression or start:stop:step between brackets.
ExprPtr ExpressionParser::subscribed() {
  ExprPtr first = cursor_.is_op(":") ? nullptr : expression();
  if (!cursor_.is_op(":")) return first;
  auto out = make(Expr::Kind::slice);
  out->parts.push_back(nullptr);
  out->parts.push_back(std::move(first));
  for (int i = 0; i < 2; ++i) {
    const bool given =
        cursor_.skip_op(":") && !cursor_.is_op(":") && !cursor_.is_op("]") && !cursor_.is_op(",");
    out->parts.push_back(given ? expression() : nullptr);
  }
  return out;
}

ExprPtr ExpressionParser::subscript(ExprPtr object) {
  ExprPtr inner = cursor_.is_op("]") ? make(Expr::Kind::tuple) : subscribed();
  if (cursor_.is_op(",")) {
    auto several = make(Expr::Kind::tuple);
    several->parts.push_back(std::move(inner));
    while (cursor_.skip_op(",") && !cursor_.is_op("]")) several->parts.push_back(expression());
    inner = grown(std::move(several));
  }
  cursor_.expect_op("]");
  if (inner->kind == Expr::Kind::slice && !inner->parts[0]) {
    inner->parts[0] = std::move(object);
    return grown(std::move(inner));
  }
  auto out = make(Expr::Kind::item);
  out->parts.push_back(std::move(object));
  out->parts.push_back(std::move(inner));
  return grown(std::move(out));
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  auto out = make(Expr::Kind::call);
  out->parts.push_back(std::move(callee));
  arguments(*out);
  return grown(std::move(out));
}

void ExpressionParser::arguments(Expr& into) {
  cursor_.expect_op("(");
  bool first = true;
  while (!cursor_.is_op(")")) {
    if (!std::exchange(first, false)) cursor_.expect_op(",");
    if (cursor_.is_op(")")) break;
    if (cursor_.skip_op("*")) {
      into.keywords.push_back({"", expression()});
    } else if (cursor_.skip_op("**")) {
      into.keywords.push_back({"**", expression()});
    } else if (cursor_.peek().kind == Token::Kind::name &&
               cursor_.peek(1).kind == Token::Kind::op && cursor_.peek(1).text == "=") {
      std::string name = cursor_.next().text;
      cursor_.next();
      into.keywords.push_back({std::move(name), expression()});
    } else {
      if (!into.keywords.empty()) cursor_.wrong("a positional argument after a keyword argument");
      into.parts.push_back(expression());
    }
  }
  cursor_.expect_op(")");
}

ExprPtr ExpressionParser::filters(ExprPtr start, bool first_without_pipe) {
  if (first_without_pipe) start = filter(std::move(start));
  for (;;) {
    if (cursor_.skip_op("|"))
      start = filter(std::move(start));
    else if (cursor_.is_name("is") && start)
      start = test(std::move(start));
    else if (cursor_.is_op("(") && start)
      start = call(std::move(start));
    else
      return start;
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = cursor_.expect_name();
  while (cursor_.skip_op(".")) name += "." + cursor_.expect_name();
  return name;
}

void ExpressionParser::expect_known(bool known, std::string_view what, const std::string& name) {
  if (!known && !lenient && unknown.empty())
    unknown = cat("line ", cursor_.peek().line, ": no ", what, " named ", quote(name));
}

ExprPtr ExpressionParser::filter(ExprPtr start) {
  auto out = make(Expr::Kind::filter, dotted_name());
  expect_known(find_filter(out->text), "filter", out->text);
  out->parts.push_back(std::move(start));
  if (cursor_.is_op("(")) arguments(*out);
  return grown(std::move(out));
}

ExprPtr ExpressionParser::test(ExprPtr start) {
  cursor_.next();  // is
  const bool negated = cursor_.skip_name("not");
  auto out = make(Expr::Kind::test, dotted_name());
  expect_known(find_test(out->text), "test", out->text);
  out->negated = negated;
  out->parts.push_back(std::move(start));
  const auto kind = cursor_.peek().kind;
  const bool operand = kind == Token::Kind::string || kind == Token::Kind::integer ||
                       kind == Token::Kind::real || cursor_.is_op("[") || cursor_.is_op("{") ||
                       (kind == Token::Kind::name && !cursor_.is_name("else") &&
                        !cursor_.is_name("or") && !cursor_.is_name("and"));
  if (cursor_.is_name("is")) cursor_.wrong("tests cannot be chained with is");
  if (cursor_.is_op("("))
    arguments(*out);
  else if (operand)
    out->parts.push_back(postfix(primary()));
  return grown(std::move(out));
}

// Targets of set, for and with, and the parameters of macros.
ExprPtr ExpressionParser::target() {
  const auto one = [&]() -> ExprPtr {
    const Depth depth(*this);
    if (cursor_.skip_op("(")) {
      ExprPtr inner = target();
      cursor_.expect_op(")");
      return inner;
    }
    auto name = make(Expr::Kind::name, cursor_.expect_name());
    if (!cursor_.skip_op(".")) return name;
    auto out = make(Expr::Kind::attribute, cursor_.expect_name());
    out->parts.push_back(std::move(name));
    return out;
  };
  ExprPtr first = one();
  if (!cursor_.is_op(",")) return first;
  auto out = make(Expr::Kind::tuple);
  out->parts.push_back(std::move(first));
  while (cursor_.skip_op(",")) {
    if (cursor_.is_name("in") || cursor_.is_op("=")) break;
    out->parts.push_back(one());
  }
  return out;
}

std::vector<Parameter> ExpressionParser::parameters() {
  std::vector<Parameter> out;
  cursor_.expect_op("(");
  while (!cursor_.is_op(")")) {
    if (!out.empty()) cursor_.expect_op(",");
    Parameter parameter{cursor_.expect_name(), nullptr};
    if (cursor_.skip_op("="))
      parameter.otherwise = expression();
    else if (!out.empty() && out.back().otherwise)
      cursor_.wrong("a parameter without a default follows one with a default");
    out.push_back(std::move(parameter));
  }
  cursor_.expect_op(")");
  return out;
}

}  // namespace troupe::engine::jinja
