// Every member of a row is used, refused by name, or listed as unread: the rows of the published
// layouts (tests/data/layouts), of the cases (tests/data/cases) and of this file, with one member
// added, renamed, retyped or removed, at every depth.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/base/files/file.h"
#include "engine/base/text/text.h"
#include "engine/data/layouts/encode.h"
#include "engine/data/layouts/shown.h"
#include "engine/data/layouts/steps.h"
#include "engine/data/layouts/unpaired.h"
#include "engine/data/readers/row_reader.h"
#include "tests/engine/data/byte_encoder.h"

namespace troupe::engine::data::row_fuzz {
namespace {

constexpr std::size_t min_variants = 2000;

/// ByteEncoder with a template that shows the tools, and one token for Math-Shepherd's placeholder.
class ShowingEncoder : public ByteEncoder {
 public:
  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special) const override {
    std::string bytes(text);
    for (auto at = bytes.find("ки"); at != bytes.npos; at = bytes.find("ки", at))
      bytes.replace(at, 4, "\x01");
    return ByteEncoder::encode(bytes, add_special);
  }
  Result<RenderedChat> render_chat(const Json& messages, bool add_generation_prompt,
                                   const Json& tools) const override {
    auto out = ByteEncoder::render_chat(messages, add_generation_prompt, Json());
    if (out && !tools.is_null()) out->text.insert(0, tools.dump());
    return out;
  }
};

/// Rows of a file that are read in the same way.
struct Layout {
  std::string name;
  LayoutOptions options;
  bool placeholders = false;
};

/// What becomes of a row: its examples as one text, or an error; and the members that are listed.
struct Outcome {
  std::string examples, error;
  std::set<std::string> listed;
};

std::string text_of(const std::vector<std::int32_t>& ids, const std::vector<float>& weights) {
  std::string out;
  for (std::size_t i = 0; i < ids.size(); ++i)
    out += cat(ids[i], i < weights.size() ? cat(':', weights[i]) : std::string(), ' ');
  return out + "| ";
}

std::string text_of(const SftExample& example) {
  return text_of(example.ids, example.weights);
}
std::string text_of(const PairExample& pair) {
  return cat(text_of(pair.chosen), text_of(pair.rejected), pair.margin.value_or(-1));
}
std::string text_of(const UnpairedRow& row) {
  std::string out;
  for (const UnpairedExample& each : row.examples)
    out += cat(text_of(each.prompt, {}), text_of(each.answer, each.weights), each.desirable, ' ');
  return out;
}
std::string text_of(const StepExample& example) {
  return text_of(example.ids, {}) + text_of(example.classes, {});
}
// The columns that a prompt passes to reward programs are listed as unread.
std::string text_of(const PromptRow& row) {
  return cat(text_of(row.ids, {}), row.answer.dump());
}

template <class T>
Result<std::string> text_of(Result<std::optional<T>> example) {
  RETURN_IF_ERROR(example);
  return *example ? text_of(**example) : "none";
}

Result<std::string> encoded(const Sample& sample, const Layout& layout,
                            const TextEncoder& encoder) {
  EncodeOptions options;
  if (layout.placeholders)
    options.steps.tokens = value_or_throw(find_step_tokens("ки", {"+", "-"}, encoder));
  switch (layout.options.purpose) {
    case Purpose::sft:
      return text_of(encode_sft(sample, encoder, options));
    case Purpose::pairs:
      return text_of(encode_pair(sample, encoder, options));
    case Purpose::unpaired:
      return text_of(encode_unpaired(sample, encoder, options));
    case Purpose::steps:
      return text_of(encode_steps(sample, encoder, options));
    case Purpose::prompts:
      return text_of(encode_prompt(sample, encoder, options));
  }
  return "";
}

Outcome outcome_of(const Json& value, const Layout& layout) {
  const ShowingEncoder encoder;
  LayoutOptions options = layout.options;
  const Row row{value, "rows.jsonl", 1};
  Outcome out;
  const auto found = detect_layout(row, options);
  if (!found) return {.error = found.error().what};
  options.layout = *found;
  const auto sample = to_sample(row, options);
  if (!sample) return {.error = sample.error().what};
  out.listed.insert(sample->unread.begin(), sample->unread.end());
  for (const Json* part : {&sample->prompt, &sample->completion, &sample->rejected})
    if (part->is_array())
      for (const auto& name : unshown_members(*part, sample->tools, encoder))
        out.listed.insert("messages." + name);
  if (has_unused_weight(sample->prompt))
    for (const char* name : {"weight", "train"}) out.listed.insert(cat("messages.", name));
  const auto text = encoded(*sample, layout, encoder);
  if (!text) return {.error = text.error().what};
  out.examples = *text;
  return out;
}

/// Where a member is: names of members and numbers of items, from the row on.
using Place = std::vector<std::string>;

void find_places(const Json& value, const Place& path, std::vector<Place>& out) {
  const auto enter = [&](const std::string& name, const Json& inner, bool member) {
    Place here = path;
    here.push_back(name);
    if (member) out.push_back(here);
    if (inner.is_object() || inner.is_array()) find_places(inner, here, out);
  };
  if (value.is_object())
    for (const auto& [name, inner] : value.object()) enter(name, inner, true);
  if (value.is_array())
    for (std::size_t i = 0; i < value.array().size(); ++i)
      enter(std::to_string(i), value.array()[i], false);
}

/// The row with the members around `place` changed by `change(members, iterator)`.
template <class F>
Json changed(Json row, const Place& place, F change) {
  Json* at = &row;
  for (std::size_t i = 0; i + 1 < place.size(); ++i)
    at =
        at->is_array() ? &at->array()[std::stoul(place[i])] : const_cast<Json*>(at->find(place[i]));
  auto& members = at->object();
  change(members, std::ranges::find(members, place.back(), &Json::Object::value_type::first));
  return row;
}

const Json& value_at(const Json& row, const Place& place) {
  const Json* at = &row;
  for (const std::string& name : place)
    at = at->is_array() ? &at->array()[std::stoul(name)] : at->find(name);
  return *at;
}

bool is_number(const std::string& name) {
  return std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether the place, or an object or list that has it, is listed: under its path with the numbers
/// of items, without them, or, inside of messages, under "messages.".
bool is_listed(const Outcome& outcome, const Place& place) {
  std::string exact, plain, message;
  for (std::size_t i = 0; i < place.size(); ++i) {
    exact += (i > 0 ? "." : "") + place[i];
    if (!is_number(place[i])) plain += (i > 0 ? "." : "") + place[i];
    if (i > 0 && !is_number(place[i])) message += "." + place[i];
    for (const auto& name : {exact, plain, "messages" + message})
      if (outcome.listed.contains(name)) return true;
  }
  // Of a conversation that is a prompt, the last answer.
  return place.size() > 1 && is_number(place[1]) &&
         outcome.listed.contains(place[0] + " (the last answer)");
}

/// Whether the error names the member, or the member that it is in.
bool is_named(const std::string& error, const Place& place) {
  for (auto name = place.rbegin(); name != place.rend(); ++name)
    if (!is_number(*name) && error.find(*name) != error.npos) return true;
  return false;
}

const std::vector<Json>& other_values() {
  static const std::vector<Json> all = {
      Json(7),    Json("other"), Json(Json::Array{Json(9)}), Json(Json::Object{{"a", 1}}),
      Json(true), Json(0.5)};
  return all;
}

/// One row, and what is changed in it.
struct Variant {
  const Json* row;
  const Layout* layout;
  Place place;
  enum class Change { add, rename, remove, retype } change;
  std::size_t value = 0;  ///< of retype
};

Json row_of(const Variant& variant) {
  return changed(*variant.row, variant.place, [&](Json::Object& members, auto at) {
    switch (variant.change) {
      case Variant::Change::add:
        members.insert(at, {"added_member", Json("text")});
        break;
      case Variant::Change::rename:
        at->first += "_renamed";
        break;
      case Variant::Change::remove:
        members.erase(at);
        break;
      case Variant::Change::retype:
        at->second = other_values()[variant.value];
    }
  });
}

/// Whether the value is another form of the one that it replaces: weights and labels are numbers or
/// truth values.
bool has_same_meaning(const Variant& variant) {
  if (variant.change != Variant::Change::retype) return false;
  const Json &before = value_at(*variant.row, variant.place),
             &after = other_values()[variant.value];
  return before.is_number() && after.is_bool() && before.number() == (after.boolean() ? 1 : 0);
}

/// Whether another value of the member changes the examples or is refused: a member that agrees
/// with the rest of the row is read, though its absence changes nothing.
bool is_checked(const Variant& variant, const Outcome& before) {
  for (std::size_t i = 0; i < other_values().size(); ++i) {
    const Variant other{variant.row, variant.layout, variant.place, Variant::Change::retype, i};
    const Outcome after = outcome_of(row_of(other), *variant.layout);
    if (!after.error.empty() || after.examples != before.examples) return true;
  }
  return false;
}

void check(const Variant& variant, const Outcome& before) {
  const Json row = row_of(variant);
  if (row == *variant.row || has_same_meaning(variant)) return;
  const Outcome after = outcome_of(row, *variant.layout);
  Place place = variant.place;
  if (variant.change == Variant::Change::add) place.back() = "added_member";
  Place renamed = place;
  if (variant.change == Variant::Change::rename) renamed.back() += "_renamed";
  const auto described = [&] {
    return cat(variant.layout->name, ": ", join(place, "."), " in ", row.dump(),
               "\nerror: ", after.error, "\nlisted: ",
               join(std::vector<std::string>(after.listed.begin(), after.listed.end()), ", "));
  };
  if (!after.error.empty()) {
    EXPECT_TRUE(is_named(after.error, place)) << "refused without its name: " << described();
    return;
  }
  const bool different =
      after.examples != before.examples || is_listed(after, renamed) || is_listed(before, place);
  EXPECT_TRUE(different ||
              (variant.change == Variant::Change::remove && is_checked(variant, before)))
      << "the same examples: " << described();
}

Layout layout_of(const Json& entry) {
  Layout out{.name = entry.find("name")->string(), .options = {}};
  const std::string& algorithm = entry.find("algorithm")->string();
  out.options.purpose = algorithm == "dpo"    ? Purpose::pairs
                        : algorithm == "kto"  ? Purpose::unpaired
                        : algorithm == "prm"  ? Purpose::steps
                        : algorithm == "grpo" ? Purpose::prompts
                                              : Purpose::sft;
  for (const Json& set : entry.find("set")->array()) {
    constexpr std::string_view column = "data.columns.";
    const std::string& text = set.string();
    const auto equals = text.find('=');
    if (text.starts_with(column))
      out.options.columns[text.substr(column.size(), equals - column.size())] =
          text.substr(equals + 1);
    if (text == "data.chat=always") out.options.chat = ChatUse::always;
    out.placeholders |= text == "prm.kind=placeholder";
  }
  return out;
}

/// All rows, and how each is read.
class Rows {
 public:
  Rows() {
    const std::string folder = TROUPE_TEST_DATA "/layouts/";
    const Json layouts = value_or_throw(read_json(folder + "layouts.json"));
    for (const Json& entry : layouts.array()) {
      if (entry.find("file")) continue;  // another file of rows that are here
      layouts_.push_back(layout_of(entry));
      add(folder + layouts_.back().name + ".jsonl", true);
    }
    for (const std::string& path : files_of_cases()) {
      for (const auto purpose :
           {Purpose::sft, Purpose::pairs, Purpose::unpaired, Purpose::steps, Purpose::prompts}) {
        layouts_.push_back({.name = path, .options = {.purpose = purpose}});
        add(path, false);
      }
    }
    for (const auto& [purpose, text] : own_rows()) {
      layouts_.push_back({.name = "own row", .options = {.purpose = purpose}});
      rows_.push_back({value_or_throw(parse_json(text, "own row")), layouts_.back()});
    }
  }
  struct Entry {
    Json row;
    Layout layout;
  };
  const std::vector<Entry>& entries() const { return rows_; }

 private:
  static std::set<std::string> files_of_cases() {
    std::set<std::string> out;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(TROUPE_TEST_DATA "/cases"))
      if (file.path().extension() == ".jsonl") out.insert(file.path());
    return out;
  }
  // Rows that are refused as they are, or that the purpose does not know, have no variants.
  void add(const std::string& path, bool usable) {
    const auto reader = value_or_throw(open_rows(path, {}));
    while (auto row = value_or_throw(reader->next())) {
      const Outcome outcome = outcome_of(row->value, layouts_.back());
      if (usable) {
        EXPECT_EQ(outcome.error, "") << path;
      }
      if (outcome.error.empty()) rows_.push_back({std::move(row->value), layouts_.back()});
    }
  }
  static std::vector<std::pair<Purpose, const char*>> own_rows() {
    return {
        {Purpose::sft, R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "u",
          "cache": 1}]}, {"role": "assistant", "content": "one", "weight": 0}, {"role": "user",
          "content": "v"}, {"role": "assistant", "content": "two"}], "tools": [{"name": "t"}],
          "system": "s"})"},
        {Purpose::sft, R"({"messages": [{"role": "user", "content": "u"}, {"role": "assistant",
          "content": null, "tool_calls": [{"id": "1", "index": 0, "type": "function", "function":
          {"name": "f", "arguments": "{\"x\": 1}", "strict": true}}]}, {"role": "tool",
          "tool_call_id": "1", "content": "4"}, {"role": "assistant", "content": "It is 4."}]})"},
        {Purpose::sft, R"({"messages": [{"role": "user", "content": "u"}, {"role": "assistant",
          "content": "c", "function_call": {"name": "f", "arguments": "{}"}}]})"},
        {Purpose::sft,
         R"({"messages": [{"role": "user", "from": "x", "value": "y", "content": "u"},
          {"role": "assistant", "content": "a"}]})"},
        {Purpose::pairs, R"({"prompt": "p", "chosen": "c", "rejected": "r", "margin": 2,
          "system": "s"})"},
        {Purpose::pairs, R"({"prompt": [{"role": "user", "content": "u"}], "messages": [{"role":
          "user", "content": "u"}], "chosen": "c", "rejected": "r"})"},
        {Purpose::pairs,
         R"({"prompt_input_ids": [1, 2], "chosen_input_ids": [3], "rejected_input_ids":
          [4, 5], "prompt_attention_mask": [1, 1]})"},
        {Purpose::prompts, R"({"prompt": "p", "answer": "4", "system": "s"})"},
        {Purpose::prompts, R"({"messages": [{"role": "user", "content": "u"}], "answer": 3,
          "tools": [{"name": "t"}]})"},
        {Purpose::prompts, R"({"input_ids": [1, 2, 3], "labels": [-100, 2, 3]})"},
        {Purpose::prompts, R"({"instruction": "i", "input": "n", "output": "7"})"},
        {Purpose::steps, R"({"question": "q", "steps": ["a", "b"], "mistake_index": 1})"},
        {Purpose::steps, R"({"question": "q", "steps": ["a", "b"], "error_steps": [2]})"},
    };
  }
  std::vector<Layout> layouts_;
  std::vector<Entry> rows_;
};

std::vector<Variant> variants_of(const Rows& rows) {
  std::vector<Variant> out;
  for (const auto& [row, layout] : rows.entries()) {
    std::vector<Place> places;
    find_places(row, {}, places);
    for (const Place& place : places) {
      const bool absent = value_at(row, place).is_null();
      for (const auto change :
           {Variant::Change::add, Variant::Change::rename, Variant::Change::remove})
        if (!absent || change == Variant::Change::add)  // null is as no member
          out.push_back({&row, &layout, place, change});
      for (std::size_t i = 0; i < other_values().size(); ++i)
        out.push_back({&row, &layout, place, Variant::Change::retype, i});
    }
  }
  return out;
}

TEST(RowFuzz, EachMemberIsUsedRefusedByNameOrListed) {
  const Rows rows;
  const std::vector<Variant> variants = variants_of(rows);
  EXPECT_GE(variants.size(), min_variants);
  for (const Variant& variant : variants) check(variant, outcome_of(*variant.row, *variant.layout));
  RecordProperty("variants", static_cast<int>(variants.size()));
}

}  // namespace
}  // namespace troupe::engine::data::row_fuzz
