#include "engine/jinja/statement_parser.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "engine/jinja/expression_parser.h"

namespace troupe::engine::jinja {
namespace {

constexpr int max_block_depth = 60;
constexpr int max_branches = 200;

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens)
      : cursor_(std::move(tokens)), expressions_(cursor_) {}

  Block run() {
    Block out = block({});
    if (cursor_.peek().kind != Token::Kind::end)
      cursor_.wrong(cat("unexpected tag ", quote(cursor_.peek(1).text)));
    return out;
  }

 private:
  using Kind = Stmt::Kind;

  StmtPtr make(Kind kind) const {
    auto out = std::make_unique<Stmt>();
    out->kind = kind;
    out->line = cursor_.peek().line;
    return out;
  }

  // Statements up to a tag whose name is in `ends` (which stays), or the end of the template when
  // `ends` is empty.
  Block block(std::initializer_list<std::string_view> ends) {
    if (++depth_ > max_block_depth)
      cursor_.wrong(cat("blocks nested deeper than ", max_block_depth));
    Block out;
    for (;;) {
      const auto kind = cursor_.peek().kind;
      if (kind == Token::Kind::end) {
        if (ends.size())
          cursor_.wrong(cat("the template ends where {% ", *(ends.end() - 1), " %} is missing"));
        break;
      }
      if (kind == Token::Kind::text) {
        out.push_back(make(Kind::text));
        out.back()->text = cursor_.next().text;
      } else if (kind == Token::Kind::variable_begin) {
        cursor_.next();
        out.push_back(make(Kind::print));
        out.back()->expr = expressions_.tuple(true);
        cursor_.expect(Token::Kind::variable_end, "}}");
      } else {
        const std::string& name = cursor_.peek(1).text;
        if (std::find(ends.begin(), ends.end(), name) != ends.end()) break;
        cursor_.next();
        out.push_back(statement());
      }
      if (!expressions_.unknown.empty()) raise(expressions_.unknown);
    }
    --depth_;
    return out;
  }

  void end_tag() { cursor_.expect(Token::Kind::block_end, "%}"); }

  // A body with its end tag.
  Block body_until(std::string_view end) {
    end_tag();
    Block out = block({end});
    cursor_.next();
    cursor_.next();
    end_tag();
    return out;
  }

  StmtPtr statement() {
    const std::string name = cursor_.expect_name();
    const bool before = expressions_.lenient;
    expressions_.lenient =
        name == "if" || (before && (name == "set" || name == "for" || name == "with" ||
                                    name == "call" || name == "elif"));
    StmtPtr out = statement_named(name);
    expressions_.lenient = before;
    return out;
  }

  StmtPtr statement_named(const std::string& name) {
    if (name == "if") return if_statement();
    if (name == "for") return for_statement();
    if (name == "set") return set_statement();
    if (name == "macro") return macro_statement();
    if (name == "call") return call_statement();
    if (name == "with") return with_statement();
    if (name == "filter") {
      auto out = make(Kind::filter);
      out->expr = expressions_.filters(nullptr, true);
      out->body = body_until("endfilter");
      return out;
    }
    if (name == "generation") {
      auto out = make(Kind::generation);
      out->body = callable_body("endgeneration");
      return out;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) cursor_.wrong(cat("{% ", name, " %} outside a loop"));
      auto out = make(name == "break" ? Kind::break_ : Kind::continue_);
      end_tag();
      return out;
    }
    cursor_.wrong(cat("the tag {% ", name, " %} is not one that chat templates have here"));
  }

  // if, any number of elif (each an if in the else of the one before), else, endif
  StmtPtr if_statement() {
    StmtPtr out = make(Kind::if_);
    Stmt* current = out.get();
    for (int branches = 0;; ++branches) {
      if (branches > max_branches) cursor_.wrong(cat("more than ", max_branches, " elif"));
      current->expr = expressions_.tuple(false);
      end_tag();
      current->body = block({"elif", "else", "endif"});
      cursor_.next();
      const std::string name = cursor_.expect_name();
      if (name == "else") current->otherwise = body_until("endif");
      if (name == "endif") end_tag();
      if (name != "elif") return out;
      current->otherwise.push_back(make(Kind::if_));
      current = current->otherwise.back().get();
    }
  }

  StmtPtr for_statement() {
    auto out = make(Kind::for_);
    out->target = expressions_.target();
    if (!cursor_.skip_name("in")) cursor_.wrong("expected 'in'");
    out->expr = expressions_.tuple(false, "recursive");
    expressions_.lenient = false;
    if (cursor_.skip_name("if")) out->condition = expressions_.expression();
    out->recursive = cursor_.skip_name("recursive");
    end_tag();
    ++loops_;
    out->body = block({"else", "endfor"});
    --loops_;
    cursor_.next();
    if (cursor_.expect_name() == "else")
      out->otherwise = body_until("endfor");
    else
      end_tag();
    return out;
  }

  StmtPtr set_statement() {
    auto out = make(Kind::set);
    out->target = expressions_.target();
    if (cursor_.skip_op("=")) {
      out->expr = expressions_.tuple(true);
      end_tag();
      return out;
    }
    out->kind = Kind::set_block;
    expressions_.lenient = false;
    out->expr = expressions_.filters(nullptr, false);
    out->body = body_until("endset");
    return out;
  }

  // The body of a macro or a call has loops of its own only.
  Block callable_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Block out = body_until(end);
    loops_ = loops;
    return out;
  }

  // Parses a macro's body and records which of varargs, kwargs and caller it names.
  void macro_body(Stmt& macro, std::string_view end) {
    auto &caller = expressions_.caller_named, &kwargs = expressions_.kwargs_named,
         &varargs = expressions_.varargs_named;
    const bool before[] = {std::exchange(caller, false), std::exchange(kwargs, false),
                           std::exchange(varargs, false)};
    macro.body = callable_body(end);
    macro.uses_caller = caller;
    macro.uses_kwargs = kwargs;
    macro.uses_varargs = varargs;
    caller |= before[0];
    kwargs |= before[1];
    varargs |= before[2];
  }

  StmtPtr macro_statement() {
    auto out = make(Kind::macro);
    out->text = cursor_.expect_name();
    out->parameters = expressions_.parameters();
    macro_body(*out, "endmacro");
    return out;
  }

  StmtPtr call_statement() {
    auto out = make(Kind::call);
    const bool before = std::exchange(expressions_.lenient, false);
    if (cursor_.is_op("(")) out->parameters = expressions_.parameters();
    expressions_.lenient = before;
    out->expr = expressions_.expression();
    expressions_.lenient = false;
    if (out->expr->kind != Expr::Kind::call) cursor_.wrong("expected a call");
    macro_body(*out, "endcall");
    return out;
  }

  StmtPtr with_statement() {
    auto out = make(Kind::with);
    while (cursor_.peek().kind != Token::Kind::block_end) {
      if (!out->assignments.empty()) cursor_.expect_op(",");
      ExprPtr target = expressions_.target();
      cursor_.expect_op("=");
      out->assignments.emplace_back(std::move(target), expressions_.expression());
    }
    expressions_.lenient = false;
    out->body = body_until("endwith");
    return out;
  }

  TokenCursor cursor_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Block parse_template(std::string source, TemplateRules rules) {
  return StatementParser(tokenize(std::move(source), rules)).run();
}

}  // namespace troupe::engine::jinja
