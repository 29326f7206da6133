#include "actors/roles/rules/python_function.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "actors/roles/rules/command.h"
#include "actors/roles/rules/python_environment.h"
#include "engine/base/environment/module.h"
#include "engine/base/json/fields.h"
#include "engine/base/text/text.h"

namespace troupe::actors::rules {
namespace {

namespace fs = std::filesystem;

constexpr const char* adapter = "reward_function.py";

Json json_list(const std::vector<std::string>& texts) {
  Json::Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return Json(std::move(out));
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  return !text.empty() && letter(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// The program with its arguments, and what it may read.
Result<> prepare(const PythonOptions& options, const std::string& where, CommandOptions& command) {
  const std::string file = fs::absolute(options.file()).lexically_normal().string();
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored))
    return fail(Errc::not_found, cat(where, ".function: no file ", quote(file, 400)));
  const auto program = find_program_file(adapter);
  RETURN_IF_ERROR(program);
  auto python = python_environment(options.python, where);
  RETURN_IF_ERROR(python);
  Json call;
  call.set("file", file)
      .set("function", options.name())
      .set("signature", std::string(name_of(options.signature)))
      .set("arguments", options.arguments)
      .set("path", json_list(python->search));
  command.run = {python->program, *program, call.dump()};
  auto& read = command.limits.read;
  for (auto* folders : {&python->folders, &python->search})
    std::ranges::copy_if(*folders, std::back_inserter(read),
                         [&](const std::string& each) { return fs::exists(each, ignored); });
  read.push_back(file);
  return {};
}

}  // namespace

CommandOptions PythonOptions::defaults() {
  CommandOptions out;
  out.startup = 60;
  out.limits.memory_mb = 4096;
  out.limits.address_mb = 65536;
  out.limits.processes = 64;
  return out;
}

Result<> PythonOptions::validate(const std::string& where) const {
  const auto colon = function.rfind(':');
  if (colon == std::string::npos || colon == 0 || !is_name(name()))
    return fail(Errc::usage, cat(where, ".function: expected FILE.py:NAME, found ",
                                 function.empty() ? "none" : quote(function, 200)));
  if (python.empty())
    return fail(Errc::usage,
                cat(where, ".python: expected a Python interpreter, such as python3, found none"));
  if (!arguments.is_null() && !arguments.is_object())
    return fail(Errc::usage, cat(where, ".arguments: expected a map of names and values, found ",
                                 arguments.type_name()));
  CommandOptions checked = command;
  checked.run = {python};
  return checked.validate(where);
}

Result<Rule> make_python(const Json& options, const std::string& where) {
  const auto read = fields_from_json<PythonOptions>(options, where);
  RETURN_IF_ERROR(read);
  RETURN_IF_ERROR(read->validate(where));
  CommandOptions given = read->command;
  given.group = read->signature != Signature::verl;
  given.title = cat(read->python, " ", read->function);
  given.advice = "the function's file runs in the sandbox of docs/rewards.md#python";
  Rule rule;
  rule.concurrency = static_cast<std::size_t>(given.workers);
  rule.inputs = {.rows = true, .whole_groups = given.group};
  const auto command = std::make_shared<Command>(
      std::move(given), where,
      [options = *read, where](CommandOptions& into) { return prepare(options, where, into); });
  rule.score = [command](std::span<const protocol::RewardRequest> requests) {
    return command->score(requests);
  };
  rule.check_files = [command] { return command->check_files(); };
  rule.start = [command]() -> Result<> {
    RETURN_IF_ERROR(command->start());
    return command->try_program();
  };
  return rule;
}

}  // namespace troupe::actors::rules
