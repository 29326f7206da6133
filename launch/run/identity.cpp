#include "launch/run/identity.h"

#include <algorithm>
#include <array>

#include "engine/base/text/text.h"

namespace troupe::launch::run {
namespace {

using engine::checkpoint::Identity;
using engine::checkpoint::InputPart;
using engine::checkpoint::PartFile;
using Setting = std::pair<std::string, std::string>;

// A run cannot continue with other random numbers or with another architecture or other
// tokens.
constexpr std::array<std::string_view, 4> fixed{"train.seed", "lora.seed", "model_overrides",
                                                "tokenizer_ids"};

std::string text_of(const PartFile& file) {
  return cat(file.bytes, " bytes, XXH3 ", file.xxh3);
}

std::string text_of(const InputPart& part) {
  if (part.files.empty()) return "none";
  std::vector<std::string> files;
  for (const PartFile& file : part.files)
    files.push_back(cat(file.path.empty() ? file.name : file.path, " (", text_of(file), ")"));
  return join(files, ", ");
}

bool is_reported(std::string_view part) {
  return part == chat_template_part || part == eval_part;
}
bool may_come_and_go(std::string_view part) {
  return is_reported(part) || part == reference_part;
}

const InputPart* find_part(const std::vector<InputPart>& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &InputPart::name);
  return found == parts.end() ? nullptr : &*found;
}

// "": the same content. Files are compared in their order, which is that of the data, and sorted
// otherwise; a renamed file is the same file.
std::string difference(const InputPart& was, const InputPart& now) {
  for (std::size_t i = 0; i < std::min(was.files.size(), now.files.size()); ++i) {
    const PartFile &old = was.files[i], &found = now.files[i];
    if (old.bytes != found.bytes || old.xxh3 != found.xxh3)
      return cat(old.name, " had ", text_of(old), "; ", found.path, " has ", text_of(found));
  }
  if (was.files.size() == now.files.size()) return "";
  return cat("the run had ", was.files.size(), " files (",
             was.files.empty() ? "none" : was.files.front().name, ", ...), now there are ",
             now.files.size(),
             now.files.empty() ? "" : cat(" (", now.files.front().path, ", ...)"));
}

void compare_part(const InputPart& recorded, const InputPart& now, Comparison& out) {
  const std::string what = difference(recorded, now);
  if (what.empty()) return;
  if (is_reported(now.name))
    out.changed.push_back({now.name, text_of(recorded), text_of(now)});
  else
    out.rejected.push_back(cat(now.name, ": ", what));
}

void compare_parts(const Identity& recorded, const Identity& now, Comparison& out) {
  for (const InputPart& part : now.parts) {
    if (const InputPart* was = find_part(recorded.parts, part.name))
      compare_part(*was, part, out);
    else if (may_come_and_go(part.name))
      out.changed.push_back({part.name, "none", text_of(part)});
    else
      out.rejected.push_back(cat(part.name, ": was no input of the run, now ", text_of(part)));
  }
  for (const InputPart& part : recorded.parts) {
    if (find_part(now.parts, part.name)) continue;
    if (may_come_and_go(part.name))
      out.changed.push_back({part.name, text_of(part), "none"});
    else
      out.rejected.push_back(cat(part.name, ": was ", text_of(part), ", now there is none"));
  }
}

}  // namespace

Comparison compare(const Identity& recorded, const Identity& now) {
  Comparison out;
  compare_parts(recorded, now, out);
  for (const auto& [key, value] : now.settings) {
    const auto was = std::ranges::find(recorded.settings, key, &Setting::first);
    if (was == recorded.settings.end() || was->second == value) continue;
    if (key == "lora.rank" && (was->second == "0") != (value == "0"))
      out.rejected.push_back(cat(key, ": ", was->second, " in the run, now ", value, ": its ",
                                 "checkpoints are ", value == "0" ? "adapters" : "whole models",
                                 "; write ", key, "=", was->second));
    else if (std::ranges::find(fixed, key) != fixed.end())
      out.rejected.push_back(cat(key, ": ", was->second, " in the run, now ", value));
    else
      out.changed.push_back({key, was->second, value});
  }
  return out;
}

}  // namespace troupe::launch::run
