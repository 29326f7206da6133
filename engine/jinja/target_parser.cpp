// What is assigned to: the targets of set, for and with, and the parameters of macros.
#include "engine/jinja/parser.h"

namespace troupe::engine::jinja {

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
