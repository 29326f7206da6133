// What may follow an operand: attributes, items, slices, calls, filters and tests.
#include "engine/base/text.h"
#include "engine/jinja/machine.h"
#include "engine/jinja/parser.h"

namespace troupe::engine::jinja {

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

// One place between brackets: an expression, or start:stop:step.
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

}  // namespace troupe::engine::jinja
