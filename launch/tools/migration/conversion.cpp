#include "launch/tools/migration/conversion.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/text/text.h"
#include "launch/recipes/recipes.h"
#include "launch/tools/migration/converters.h"
#include "launch/tools/migration/settings.h"

namespace troupe::launch::tools::migration {
namespace {

/// The value that this algorithm's part of "sft,dpo:1024 kto:512" or of "3" names, or "".
std::string default_for(std::string_view rule, std::string_view algorithm,
                        std::string_view recipe) {
  std::vector<std::string> values;
  for (const auto part : tables::pieces(rule, ' ')) {
    const auto colon = part.find(':');
    if (colon == part.npos) {
      values.emplace_back(part);
      continue;
    }
    for (const auto method : tables::pieces(part.substr(0, colon), ','))
      if (method == algorithm || method == recipe) return std::string(part.substr(colon + 1));
  }
  return join(values, ", ");
}

/// Applies the rows of a table to settings.
class Importer {
 public:
  Importer(const ForeignRun& run, tables::Tool tool, const std::string& algorithm)
      : run_(run), out_(tool, run), algorithm_(algorithm) {}

  Result<Converted> convert() {
    if (algorithm_.empty()) RETURN_IF_ERROR(find_algorithm());
    const recipes::Recipe* recipe = recipes::find_recipe(algorithm_);
    if (!recipe)
      return fail(Errc::usage, cat("the settings do not say the method; add --algorithm, one of ",
                                   join(recipes::algorithm_names(), ", ")));
    out_.begin(algorithm_, std::string(recipe->name));
    for (const ForeignSetting& each : run_.settings) setting(each);
    tool_defaults();
    finish(out_);
    return std::move(out_.converted);
  }

 private:
  /// The settings whose target is the algorithm, or whose value sets it.
  Result<> find_algorithm() {
    if (out_.tool == tables::Tool::verl && is_verls_sft()) algorithm_ = "sft";
    for (const ForeignSetting& each : run_.settings)
      for (const tables::ToolKey* row : rows_of(out_.tool, each.key)) {
        if (!each.unknown.empty() && !row->targets.empty() && row->targets[0].key == "algorithm")
          return fail(Errc::bad_input,
                      cat(each.where, ": the method depends on ", each.key, ", which depends on ",
                          each.unknown, "; give --algorithm, or --env NAME=VALUE"));
        if (each.unknown.empty()) take_algorithm(*row, each.value);
        if (names_no_method(*row, each.value))
          return fail(Errc::usage,
                      cat(each.where, ": the method ", each.key, ' ', text_of(each.value),
                          " has no equivalent; --algorithm converts the other settings for one of ",
                          join(recipes::algorithm_names(), ", ")));
      }
    if (!algorithm_.empty()) return {};
    method_of_program();
    for (const tables::ToolKey& row : tables::keys_of(out_.tool))
      if (algorithm_.empty() && !row.targets.empty() && row.targets[0].key == "algorithm" &&
          !row.tool_default.empty())
        take_algorithm(row, scalar_node(row.tool_default));
    if (algorithm_.empty() && out_.tool == tables::Tool::trl && run_.method.empty() &&
        out_.given("num_generations"))
      algorithm_ = "grpo";
    if (algorithm_.empty() && out_.tool == tables::Tool::trl && !run_.method.empty())
      return fail(Errc::unsupported,
                  cat("the method of TRL's program ", run_.method,
                      " is not supported; --algorithm converts the settings for one of ",
                      join(recipes::algorithm_names(), ", ")));
    return {};
  }

  /// The value of a setting that chooses the method, and is none of those that the table has.
  static bool names_no_method(const tables::ToolKey& row, const config::YamlNode& value) {
    const std::string text = text_of(value);
    return !row.targets.empty() && row.targets[0].key == "algorithm" && text != "null" &&
           std::ranges::none_of(row.values, [&](const auto& each) {
             return each.first == text && each.second != "!";
           });
  }

  /// A configuration of its SFT trainer: that has a section model, and none of the RL trainers.
  bool is_verls_sft() const {
    if (!run_.method.empty()) return run_.method.find("sft") != std::string::npos;
    const auto any = [&](std::string_view prefix) {
      return std::ranges::any_of(
          run_.settings, [&](const ForeignSetting& each) { return each.key.starts_with(prefix); });
    };
    return any("model.") && !any("actor_rollout_ref") && !any("algorithm");
  }

  void take_algorithm(const tables::ToolKey& row, const config::YamlNode& value) {
    const bool direct = !row.targets.empty() && row.targets[0].key == "algorithm";
    for (const auto& [theirs, ours] : row.values) {
      if (theirs != text_of(value)) continue;
      for (const auto part : tables::pieces(ours, ',')) {
        if (part.starts_with("algorithm:"))
          algorithm_ = part.substr(10);
        else if (direct && part != "!" && part.find(':') == part.npos && algorithm_.empty())
          algorithm_ = part;
      }
    }
  }

  /// "train_rm" of OpenRLHF, "reward" and "dpo_vlm" of TRL, "fsdp_sft_trainer" of verl,
  /// "pretrain_gpt" of MindSpeed-LLM.
  void method_of_program() {
    std::string name = run_.method;
    if (name.starts_with("train_")) name = name.substr(6);
    if (out_.tool == tables::Tool::trl && name != "dpo_online" && !recipes::find_recipe(name))
      name = name.substr(0, name.find('_'));
    if (name == "rm" || name == "reward" || name == "reward_modeling") name = "orm";
    if (name.find("sft") != std::string::npos) name = "sft";
    if (name == "pretrain_gpt") name = "pretrain";
    if (recipes::find_recipe(name)) algorithm_ = name;
  }

  void setting(const ForeignSetting& each) {
    // The file is named once, by the report's head; a command line has no lines.
    const auto colon = each.where.rfind(':');
    out_.current =
        cat(each.key, ' ', quoted(text_of(each.value)),
            colon == std::string::npos ? "" : cat(" (line ", each.where.substr(colon + 1), ")"));
    const auto rows = rows_of(out_.tool, each.key);
    if (rows.empty())
      return out_.line(Outcome::unknown, cat("not known of ", tables::title_of(out_.tool),
                                             "; look for it in troupe explain --reference"));
    const tables::ToolKey& row = *chosen(rows);
    if (!each.unknown.empty() && row.equivalent == tables::Equivalent::setting &&
        (!out_.targets(row).empty() || row.converter == "batch"))
      return out_.line(Outcome::not_evaluated, cat("depends on ", each.unknown));
    out_.attempt([&] { apply(row, each.value); });
  }

  static std::string quoted(const std::string& text) {
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  }

  /// Of several rows for one name, the one whose keys this method reads.
  const tables::ToolKey* chosen(const std::vector<const tables::ToolKey*>& rows) const {
    for (const tables::ToolKey* row : rows)
      if (row->equivalent != tables::Equivalent::setting || !out_.targets(*row).empty()) return row;
    return rows[0];
  }

  void apply(const tables::ToolKey& row, const config::YamlNode& value) {
    const std::string text = text_of(value);
    const bool off = text == "null" || text == "false" || text == "none" || text.empty();
    if (row.equivalent == tables::Equivalent::built_in)
      return out_.line(Outcome::not_needed, row.remark);
    if (row.refused && !off && text != "0" && text != "1") refuse(row);
    if (row.equivalent == tables::Equivalent::none || row.equivalent == tables::Equivalent::by_hand)
      return off ? out_.line(Outcome::already_default, "off")
                 : out_.line(Outcome::no_equivalent, unconverted(row));
    for (const auto& [theirs, ours] : row.values)
      if (theirs == text) return listed(row, ours);
    if (text == "null") return out_.line(Outcome::already_default, "not set");
    if (row.targets[0].key == "algorithm")
      return out_.line(Outcome::no_equivalent, cat("the method is ", algorithm_));
    if (out_.targets(row).empty() && row.converter != "batch")
      return out_.line(Outcome::not_needed, cat("not used by ", algorithm_));
    if (!row.converter.empty()) return convert_value(out_, row, value);
    if (row.copies) return out_.set(out_.targets(row)[0], value);
    out_.line(Outcome::no_equivalent,
              cat("this value has none", row.remark.empty() ? "" : ": ", row.remark));
  }

  [[noreturn]] void refuse(const tables::ToolKey& row) const {
    throw Failure({Errc::unsupported,
                   cat(out_.current, ": such training is not supported (", row.remark, ')')});
  }

  static std::string unconverted(const tables::ToolKey& row) {
    return row.hand_written.empty()
               ? std::string(row.remark)
               : cat("write ", join(row.hand_written, " or "), ": ", row.remark);
  }

  /// A value with a rule of its own in the table.
  void listed(const tables::ToolKey& row, std::string_view ours) {
    if (ours == "!!") refuse(row);
    if (ours == "!")
      return out_.line(Outcome::no_equivalent,
                       cat("this value has none", row.remark.empty() ? "" : ": ", row.remark));
    if (row.targets[0].key == "algorithm" || ours.find("algorithm:") != ours.npos) {
      for (const auto part : tables::pieces(ours, ','))
        if (const auto colon = part.find(':'); colon != part.npos && !part.starts_with("algorithm"))
          out_.put(std::string(part.substr(0, colon)), part.substr(colon + 1));
      return out_.line(Outcome::became, cat("algorithm: ", algorithm_));
    }
    if (ours.empty())
      return out_.line(Outcome::already_default,
                       row.remark.empty() ? std::string("the default") : std::string(row.remark));
    const auto targets = out_.targets(row);
    if (targets.empty()) return out_.line(Outcome::not_needed, cat("not used by ", algorithm_));
    out_.set(targets[0], node_of_value(ours));
  }

  /// Settings that the run leaves to the tool and whose defaults differ from ours.
  void tool_defaults() {
    for (const tables::ToolKey& row : tables::keys_of(out_.tool)) {
      const std::string value = default_for(row.tool_default, algorithm_, out_.recipe);
      const bool given =
          std::ranges::any_of(row.names, [&](std::string_view name) { return out_.given(name); });
      if (value.empty() || given || out_.targets(row).empty() ||
          row.targets[0].key == "algorithm" || row.converter == "batch" ||
          row.converter == "rollout_batch")
        continue;
      out_.current =
          cat(row.names[0], ' ', value, " (", tables::title_of(out_.tool), "'s default)");
      const bool list = row.targets[0].key == "train.betas" && !value.starts_with('[');
      apply(row, node_of_value(list ? cat('[', value, ']') : value));
    }
  }

  const ForeignRun& run_;
  ImportSettings out_;
  std::string algorithm_;
};

}  // namespace

std::vector<const tables::ToolKey*> rows_of(tables::Tool tool, const std::string& key) {
  std::string_view name = key;
  const std::string normal = tables::normal_name(key);
  for (name = normal;; name.remove_prefix(name.find('.') + 1)) {
    auto rows = tables::find_rows(tool, name);
    if (!rows.empty()) return rows;
    if (tool != tables::Tool::mindspeed || name.find('.') == name.npos) break;
  }
  // A member of an argument that is a map: gradient_checkpointing_kwargs.use_reentrant.
  if (tool == tables::Tool::trl || tool == tables::Tool::llama_factory)
    if (const auto dot = normal.find('.'); dot != normal.npos)
      return tables::find_rows(tool, std::string_view(normal).substr(0, dot));
  return {};
}

Result<Converted> convert(const ForeignRun& run, tables::Tool tool, const std::string& algorithm) {
  return Importer(run, tool, algorithm).convert();
}

}  // namespace troupe::launch::tools::migration
