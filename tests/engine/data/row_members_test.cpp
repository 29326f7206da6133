// Every member of a row is used, refused by name, or listed as unread: the rows of each layout with
// one member added, renamed, retyped or removed.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/base/text.h"
#include "engine/data/encode.h"
#include "engine/data/layouts/unpaired.h"
#include "engine/data/shown.h"
#include "tests/engine/data/byte_encoder.h"

namespace troupe::engine::data::row_members {
namespace {

/// What becomes of a row: its examples as one text, or an error; and the members that are listed.
struct Outcome {
  std::string examples, error;
  std::set<std::string> listed;
};

std::string text_of(const SftExample& example) {
  std::string out;
  for (std::size_t i = 0; i < example.ids.size(); ++i)
    out += cat(example.ids[i], ':', example.weights[i], ' ');
  return out;
}

Result<std::string> encoded(const Sample& sample, Purpose purpose, const TextEncoder& encoder) {
  if (purpose == Purpose::sft) {
    auto example = encode_sft(sample, encoder, {});
    RETURN_IF_ERROR(example);
    return *example ? text_of(**example) : "none";
  }
  if (purpose == Purpose::pairs) {
    auto pair = encode_pair(sample, encoder, {});
    RETURN_IF_ERROR(pair);
    return *pair ? cat(text_of((*pair)->chosen), '|', text_of((*pair)->rejected), '|',
                       (*pair)->margin.value_or(-1))
                 : "none";
  }
  auto prompt = encode_prompt(sample, encoder, {});
  RETURN_IF_ERROR(prompt);
  std::string out = *prompt ? cat((*prompt)->answer.dump(), ' ') : "none";
  if (*prompt)
    for (const auto id : (*prompt)->ids) out += cat(id, ' ');
  return out;
}

Outcome outcome_of(const Json& value, Purpose purpose) {
  const ByteEncoder encoder;
  LayoutOptions options{.purpose = purpose, .vocabulary = encoder.vocabulary()};
  const Row row{value, "rows.jsonl", 1};
  Outcome out;
  const auto layout = detect_layout(row, options);
  if (!layout) return {.error = layout.error().what};
  options.layout = *layout;
  const auto sample = to_sample(row, options);
  if (!sample) return {.error = sample.error().what};
  out.listed.insert(sample->unread.begin(), sample->unread.end());
  for (const Json* part : {&sample->prompt, &sample->completion, &sample->rejected})
    if (part->is_array())
      for (const auto& name : unshown_members(*part, sample->tools, encoder))
        out.listed.insert(name);
  const auto text = encoded(*sample, purpose, encoder);
  if (!text) return {.error = text.error().what};
  out.examples = *text;
  return out;
}

/// Where a member is: the objects on the way to it, by index, and its name.
struct Place {
  std::vector<std::string> path;  ///< "messages", "0", "content"
};

void find_places(const Json& value, std::vector<std::string> path, std::vector<Place>& out) {
  if (path.size() > 3) return;
  const auto add = [&](const std::string& name, const Json& inner, bool member) {
    auto here = path;
    here.push_back(name);
    if (member) out.push_back({here});
    if (inner.is_object() || inner.is_array()) find_places(inner, here, out);
  };
  if (value.is_object())
    for (const auto& [name, inner] : value.object()) add(name, inner, true);
  if (value.is_array())
    for (std::size_t i = 0; i < value.array().size(); ++i)
      add(std::to_string(i), value.array()[i], false);
}

/// The row with the member at `place` changed by `change(members, index)`.
template <class F>
Json changed(Json row, const Place& place, F change) {
  Json* at = &row;
  for (std::size_t i = 0; i + 1 < place.path.size(); ++i) {
    if (at->is_array()) {
      at = &at->array()[std::stoul(place.path[i])];
    } else {
      for (auto& [name, inner] : at->object())
        if (name == place.path[i]) {
          at = &inner;
          break;
        }
    }
  }
  auto& members = at->object();
  const auto found = std::ranges::find_if(
      members, [&](const auto& member) { return member.first == place.path.back(); });
  change(members, found);
  return row;
}

struct Case {
  Purpose purpose;
  const char* row;
};

const Case cases[] = {
    {Purpose::sft, R"({"messages": [{"role": "user", "content": "u"},
      {"role": "assistant", "content": "one", "weight": 0}, {"role": "user", "content": "v"},
      {"role": "assistant", "content": "two"}], "tools": [{"name": "t"}], "system": "s"})"},
    {Purpose::sft,
     R"({"conversations": [{"from": "human", "value": "u"}, {"from": "gpt", "value": "a"}]})"},
    {Purpose::sft, R"({"prompt": "p", "completion": "c", "system": "s"})"},
    {Purpose::sft,
     R"({"instruction": "i", "input": "x", "output": "o", "system": "s", "history": [["q", "a"]]})"},
    {Purpose::sft, R"({"question": "q", "answer": "a"})"},
    {Purpose::sft, R"({"text": "some text"})"},
    {Purpose::sft, R"({"input_ids": [1, 2, 3], "labels": [-100, 2, 3]})"},
    {Purpose::sft, R"({"input_ids": [1, 2, 3], "completion_mask": [0, 1, 1]})"},
    {Purpose::pairs,
     R"({"prompt": "p", "chosen": "c", "rejected": "r", "margin": 2, "system": "s"})"},
    {Purpose::pairs,
     R"({"chosen": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "c"}],
      "rejected": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "r"}]})"},
    {Purpose::prompts, R"({"prompt": "p", "answer": "4", "system": "s"})"},
    {Purpose::prompts,
     R"({"messages": [{"role": "user", "content": "u"}], "answer": 3, "tools": [{"name": "t"}]})"},
};

TEST(RowMembers, EachIsUsedRefusedOrListed) {
  const Json others[] = {
      Json(7),    Json("other"), Json(Json::Array{Json(1)}), Json(Json::Object{{"a", 1}}),
      Json(true), Json(0.5)};
  for (const auto& [purpose, text] : cases) {
    const Json row = value_or_throw(parse_json(text, "case"));
    const Outcome before = outcome_of(row, purpose);
    ASSERT_EQ(before.error, "") << text;
    std::vector<Place> places;
    find_places(row, {}, places);
    const auto check = [&](const Json& other, const std::string& name, const char* what) {
      const Outcome after = outcome_of(other, purpose);
      EXPECT_TRUE(!after.error.empty() || after.examples != before.examples ||
                  after.listed.contains(name) || before.listed.contains(name))
          << what << ' ' << name << ": " << other.dump() << " gives the examples of " << text;
    };
    for (const Place& place : places) {
      const std::string& name = place.path.back();
      // A schema of a tool is the template's business; ByteEncoder's shows that there are tools.
      if (place.path.front() == "tools" && place.path.size() > 1) continue;
      check(changed(row, place, [](auto& members, auto at) { members.erase(at); }), name,
            "without");
      check(changed(row, place, [](auto&, auto at) { at->first += "_renamed"; }), name + "_renamed",
            "renamed");
      check(changed(row, place,
                    [](auto& members, auto at) {
                      members.insert(at, {"added_member", Json("text")});
                    }),
            "added_member", "with");
      for (const Json& other : others) {
        const Json with = changed(row, place, [&](auto&, auto at) { at->second = other; });
        if (with != row && name != "tools") check(with, name, "retyped");
      }
    }
  }
}

}  // namespace
}  // namespace troupe::engine::data::row_members
