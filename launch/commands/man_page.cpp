#include "launch/commands/man_page.h"

#include <algorithm>

#include "engine/base/errors/error.h"
#include "engine/base/text/text.h"
#include "launch/run/exit_code.h"

namespace troupe::launch::commands {
namespace {

/// Text as troff: backslashes and hyphens escaped, no line that begins with a request.
std::string troff(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    at_start = c == '\n';
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return out;
}

std::string page_name(const CommandEntry& command) {
  return command.name.empty() ? "troupe" : "troupe-" + command.name;
}

std::string synopsis(const CommandEntry& command) {
  if (command.name.empty()) return ".B troupe\n.I COMMAND\n[\\fIOPTION\\fR...]\n";
  std::string out = cat(".B troupe ", command.name, "\n[\\fIOPTION\\fR...]\n");
  for (const OptionEntry& option : command.options)
    if (option.names.empty()) out += cat(".I ", troff(option.argument), "\n");
  return out;
}

std::string options(const CommandEntry& command) {
  std::string out = ".SH OPTIONS\n";
  for (const OptionEntry& option : command.options) {
    std::vector<std::string> names;
    for (const auto& name : option.names) names.push_back(cat("\\fB", troff(name), "\\fR"));
    std::string head = join(names, ", ");
    if (!option.argument.empty())
      head += cat(head.empty() ? "" : " ", "\\fI", troff(option.argument), "\\fR");
    out += cat(".TP\n", head, "\n", troff(option.help), "\n");
  }
  return out;
}

/// The lines of a footer, each on its own.
std::string notes(const CommandEntry& command) {
  if (command.footer.empty()) return "";
  std::string out = ".SH NOTES\n.nf\n";
  return cat(out, troff(command.footer), command.footer.ends_with('\n') ? "" : "\n", ".fi\n");
}

std::string command_list(const std::vector<CommandEntry>& commands) {
  std::string out = ".SH COMMANDS\n";
  for (const CommandEntry& command : commands)
    if (!command.name.empty())
      out += cat(".TP\n\\fBtroupe\\-", command.name, "\\fR(1)\n", troff(command.summary), "\n");
  return out;
}

std::string exit_status() {
  std::string out = ".SH EXIT STATUS\n.TP\n0\nsuccess\n";
  for (const auto& [code, meaning] : run::exit_codes)
    out += cat(".TP\n", code, "\n", troff(meaning), "\n");
  return out;
}

}  // namespace

std::string man_page(std::string_view name, const std::vector<CommandEntry>& commands,
                     std::string_view version) {
  const auto command = std::ranges::find(commands, name, &CommandEntry::name);
  if (command == commands.end())
    throw Failure({Errc::usage, cat("man: no command is called ", quote(std::string(name)),
                                    "; `troupe man --list` lists them")});
  std::string out = cat(".TH ", upper(troff(page_name(*command))), " 1 \"\" \"", troff(version),
                        "\" \"User Commands\"\n.SH NAME\n", troff(page_name(*command)), " \\- ",
                        troff(command->summary), "\n.SH SYNOPSIS\n", synopsis(*command));
  if (name.empty()) out += command_list(commands);
  out += options(*command) + notes(*command);
  if (name.empty()) out += exit_status();
  return cat(out, ".SH SEE ALSO\n",
             name.empty() ? "/usr/share/doc/troupe\n" : "\\fBtroupe\\fR(1)\n");
}

}  // namespace troupe::launch::commands
