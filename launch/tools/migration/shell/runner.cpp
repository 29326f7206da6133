#include "launch/tools/migration/shell/runner.h"

#include <algorithm>
#include <utility>

#include "engine/base/text/text.h"
#include "launch/tools/migration/shell/arithmetic.h"
#include "launch/tools/migration/shell/parser.h"
#include "launch/tools/migration/shell/pattern.h"
#include "launch/tools/migration/shell/scan.h"

namespace troupe::launch::tools::migration::shell {
namespace {

using Kind = Status::Kind;

Status succeeded() {
  return {Kind::yes, ""};
}

}  // namespace

Runner::Runner(const ScriptCall& call) : Builtins(call) {
}

Status Runner::run(const Node& node) {
  const Level level(depth_, "a command");
  budget_.step(node.line);
  switch (node.kind) {
    case Node::Kind::simple:
      return simple(node);
    case Node::Kind::sequence:
      return sequence(node);
    case Node::Kind::and_or:
      return and_or(node);
    case Node::Kind::pipeline:
      return pipeline(node);
    case Node::Kind::if_then:
      return if_then(node);
    case Node::Kind::case_of:
      return case_of(node);
    case Node::Kind::for_each:
      return for_each(node);
    case Node::Kind::for_arithmetic:
      return for_arithmetic(node);
    case Node::Kind::while_loop:
      return while_loop(node);
    case Node::Kind::function:
      functions_[node.name] = node.children[0];
      return succeeded();
    case Node::Kind::subshell:
      return in_subshell(*node.children[0]);
    case Node::Kind::group:
      return run(*node.children[0]);
    case Node::Kind::arithmetic:
      return arithmetic(node.words[0]);
    case Node::Kind::test:
      return test_expression(node.words, expander_, state_, budget_);
  }
  return succeeded();
}

Status Runner::sequence(const Node& node) {
  Status status;
  for (const NodePointer& each : node.children) {
    status = run(*each);
    if (flow_ != Flow::normal) break;
  }
  return status;
}

Status Runner::and_or(const Node& node) {
  Status status = run(*node.children[0]);
  for (std::size_t i = 1; i < node.children.size() && flow_ == Flow::normal; ++i) {
    const bool also = node.name[i - 1] == '&';
    const Node& next = *node.children[i];
    if (status.known()) {
      if ((status.kind == Kind::yes) == also) status = run(next);
    } else {
      // A program is expected to succeed: what follows it with && is started.
      const std::string why = status.why;
      maybe(next, why, also && status.kind == Kind::command);
      status = {status.kind, why};
    }
  }
  return status;
}

Status Runner::pipeline(const Node& node) {
  Status status;
  for (const NodePointer& each : node.children)
    status = node.children.size() > 1 ? in_subshell(*each) : run(*each);
  return node.negated ? negated(std::move(status)) : status;
}

Status Runner::if_then(const Node& node) {
  for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
    const Status condition = run(*node.children[i]);
    if (flow_ != Flow::normal) return condition;
    if (condition.kind == Kind::yes) return run(*node.children[i + 1]);
    if (condition.kind == Kind::no) continue;
    for (std::size_t rest = i + 1; rest < node.children.size(); ++rest)
      maybe(*node.children[rest], condition.why);
    return {Kind::unknown, condition.why};
  }
  return node.children.size() % 2 == 1 ? run(*node.children.back()) : succeeded();
}

Status Runner::case_of(const Node& node) {
  const Value subject = expander_.single(node.words[0]);
  std::string why = subject.unknown;
  bool falls = false;
  for (std::size_t i = 0; i < node.arms.size(); ++i) {
    const Node::Arm& arm = node.arms[i];
    bool taken = falls;
    for (const Word& each : arm.patterns) {
      if (taken || !why.empty()) break;
      const Value pattern = expander_.pattern(each);
      if (!pattern.unknown.empty()) why = pattern.unknown;
      taken = why.empty() && matches(pattern.text, subject.text, budget_);
    }
    if (!why.empty()) {
      maybe(*node.children[arm.body], why);
      continue;
    }
    if (!taken) continue;
    const Status status = run(*node.children[arm.body]);
    falls = arm.falls_through;
    if (!falls || flow_ != Flow::normal) return status;
  }
  return why.empty() ? succeeded() : Status{Kind::unknown, why};
}

bool Runner::loop_ends() {
  if (flow_ == Flow::loop_continue) flow_ = Flow::normal;
  if (flow_ == Flow::normal) return false;
  if (flow_ == Flow::loop_break) flow_ = Flow::normal;
  return true;
}

Status Runner::for_each(const Node& node) {
  std::vector<Field> items;
  if (node.has_list)
    items = expander_.fields(node.words);
  else
    items = expander_.fields(Word{"\"$@\"", node.line});
  for (const Field& item : items) {
    if (item.open) {
      state_.forget(node.name, item.value.unknown);
      maybe(*node.children[0], item.value.unknown);
      continue;
    }
    budget_.step(node.line);
    state_.set(node.name, item.value);
    run(*node.children[0]);
    if (loop_ends()) break;
  }
  return succeeded();
}

Status Runner::for_arithmetic(const Node& node) {
  if (!node.words[0].raw.empty()) arithmetic(node.words[0]);
  for (;;) {
    budget_.step(node.line);
    const Status condition = node.words[1].raw.find_first_not_of(" \t\n") == std::string::npos
                                 ? succeeded()
                                 : arithmetic(node.words[1]);
    if (!condition.known()) maybe(*node.children[0], condition.why);
    if (condition.kind != Kind::yes) return succeeded();
    run(*node.children[0]);
    if (loop_ends()) return succeeded();
    arithmetic(node.words[2]);
  }
}

Status Runner::while_loop(const Node& node) {
  for (;;) {
    budget_.step(node.line);
    Status condition = run(*node.children[0]);
    if (node.negated) condition = negated(std::move(condition));
    if (!condition.known()) maybe(*node.children[1], condition.why);
    if (condition.kind != Kind::yes) return succeeded();
    run(*node.children[1]);
    if (loop_ends()) return succeeded();
  }
}

Status Runner::run_text(const std::string& text, std::size_t line) {
  const Level level(depth_, text);
  return run(*parse_script(text, line));
}

Status Runner::in_subshell(const Node& node) {
  budget_.work(state_.bytes());
  const ShellState saved = state_;
  const auto functions = functions_;
  Status status = run(node);
  state_ = saved;
  functions_ = functions;
  flow_ = Flow::normal;
  return status;
}

Status Runner::text_in_subshell(const std::string& text, std::size_t line) {
  const Level level(depth_, text);
  return in_subshell(*parse_script(text, line));
}

Status Runner::maybe(const Node& node, const std::string& why, bool certain) {
  budget_.work(state_.bytes());
  ShellState saved = state_;
  saved.touched.swap(state_.touched);
  state_.touched.clear();
  const std::string uncertain = uncertain_;
  if (!certain && uncertain_.empty()) uncertain_ = why;
  Status status = run(node);
  uncertain_ = uncertain;
  flow_ = Flow::normal;
  const auto touched = std::move(state_.touched);
  const bool shifted = state_.positional.values.size() != saved.positional.values.size();
  const std::string sourced = state_.sourced;
  const bool moved = state_.directory != saved.directory;
  state_ = std::move(saved);
  for (const std::string& name : touched) state_.forget(name, why);
  if (shifted) state_.positional.unknown = why;
  if (moved) state_.directory_unknown = why;
  if (state_.sourced.empty()) state_.sourced = sourced;
  return status;
}

Status Runner::call(const Node& function, std::vector<Field> words) {
  Positional saved = state_.positional;
  state_.positional = {{}, true, ""};
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].open) state_.positional.unknown = words[i].value.unknown;
    state_.positional.values.push_back(std::move(words[i].value));
  }
  state_.open_scope();
  Status status = run(function);
  state_.close_scope();
  state_.positional = std::move(saved);
  if (flow_ == Flow::function_return) flow_ = Flow::normal;
  return status;
}

Status Runner::simple(const Node& node) {
  std::vector<Field> words = expander_.fields(node.words);
  if (words.empty()) {
    for (const Assignment& each : node.assignments) assign(each);
    return succeeded();
  }
  const std::string name = words[0].value.unknown.empty() ? words[0].value.text : "";
  if (const auto function = functions_.find(name); function != functions_.end()) {
    const NodePointer body = function->second;
    return call(*body, std::move(words));
  }
  if (auto status = builtin(name, node, words)) return *status;
  return program(std::move(words), node.line);
}

/// bash -c TEXT is read as a script of its own.
Status Runner::program(std::vector<Field> words, std::size_t line) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    const std::string& shell = words[i].value.text;
    const bool is_shell = shell == "bash" || shell == "sh" || shell.ends_with("/bash");
    if (!is_shell || (words[i + 1].value.text != "-c" && words[i + 1].value.text != "-lc"))
      continue;
    if (words[i + 2].value.unknown.empty()) return text_in_subshell(words[i + 2].value.text, line);
  }
  const std::string name = words[0].value.text;
  commands.push_back({std::move(words), line, uncertain_});
  return {Kind::command, cat("whether ", quote(name, 40), " succeeds (line ", line, ")")};
}

}  // namespace troupe::launch::tools::migration::shell
