#include "engine/jinja/token_cursor.h"

#include "engine/base/text.h"
#include "engine/jinja/value.h"

namespace troupe::engine::jinja {

bool TokenCursor::skip_op(std::string_view op) {
  if (!is_op(op)) return false;
  next();
  return true;
}
bool TokenCursor::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  next();
  return true;
}
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

}  // namespace troupe::engine::jinja
