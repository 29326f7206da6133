#include <algorithm>
#include <charconv>

#include "engine/base/text.h"
#include "engine/jinja/parser.h"

namespace troupe::engine::jinja {
namespace {
constexpr int highest = 600;
}  // namespace

void TokenCursor::wrong(std::string_view what) const {
  raise(cat("line ", peek().line, ": ", what));
}
void TokenCursor::expect_op(std::string_view op) {
  if (!skip_op(op))
    wrong(cat("expected '", op, "', found ",
              peek().kind == Token::Kind::end ? "the end" : quote(peek().text)));
}
std::string TokenCursor::expect_name() {
  if (peek().kind != Token::Kind::name) wrong(cat("expected a name, found ", quote(peek().text)));
  return next().text;
}
void TokenCursor::expect(Token::Kind kind, std::string_view what) {
  if (peek().kind != kind) wrong(cat("expected ", what, ", found ", quote(peek().text)));
  next();
}

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
  if (expr->height > highest) cursor_.wrong(cat("an expression of more than ", highest, " steps"));
  return expr;
}

ExprPtr ExpressionParser::expression() {
  const Depth depth(*this);
  const bool lenient_before = lenient;
  const std::string unknown_before = unknown;
  ExprPtr value = logical_or();
  if (cursor_.is_name("if")) unknown = unknown_before, lenient = true;
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
        cursor_.peek(1).text == "in")
      op = "not in", cursor_.next();
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
  caller_named |= name == "caller", kwargs_named |= name == "kwargs",
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
    std::int64_t value = 0;
    const auto read =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    if (read.ec != std::errc())
      cursor_.wrong(cat("the integer ", token.text, " does not fit 64 bits"));
    out->value = value;
  } else {
    double value = 0;
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    out->value = value;
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

}  // namespace troupe::engine::jinja
