#include "launch/tools/preprocess/preprocess.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/errors/check.h"
#include "engine/base/errors/error.h"
#include "engine/base/files/file_names.h"
#include "engine/base/log/log.h"
#include "engine/base/random/sha256.h"
#include "engine/base/text/text.h"
#include "engine/data/megatron/indexed_dataset_writer.h"
#include "engine/tokenizer/prompt_types.h"
#include "launch/tools/preprocess/handlers.h"
#include "launch/tools/preprocess/packed_rows.h"
#include "launch/tools/preprocess/pipeline.h"
#include "launch/tools/preprocess/text_columns.h"

namespace troupe::launch::tools::preprocess {
namespace {

namespace fs = std::filesystem;
using engine::data::megatron::IndexedDataset;
using engine::data::megatron::IndexedDatasetWriter;

// Datasets of the folder with `key` in their names, without .idx.
Result<std::vector<std::string>> group(const std::string& folder, const std::string& key,
                                       const std::string& output) {
  std::vector<std::string> out;
  std::error_code failed;
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end;
       each.increment(failed)) {
    const fs::path path = each->path();
    const std::string stem = (path.parent_path() / path.stem()).string();
    if (path.extension() == ".idx" && path.stem().string().find(key) != std::string::npos &&
        fs::path(stem).lexically_normal() != fs::path(output).lexically_normal())
      out.push_back(stem);
  }
  if (failed) return fail(Errc::not_found, cat(folder, ": ", failed.message()));
  std::ranges::sort(out);
  if (out.empty())
    return fail(Errc::not_found, cat(folder, ": no .idx file has ", quote(key), " in its name"));
  return out;
}

/// For each key, all datasets NAME.bin and NAME.idx of `folder` whose names contain the key, in the
/// order of their names, become PREFIX_KEY.bin and .idx. Errc::not_found for a key without
/// datasets; Errc::usage for datasets of different types; errors of IndexedDataset::open.
Result<> merge_groups(const std::string& folder, const std::vector<std::string>& keys,
                      const std::string& prefix) {
  for (const std::string& key : keys) {
    const std::string output = prefix + "_" + key;
    const auto prefixes = group(folder, key, output);
    RETURN_IF_ERROR(prefixes);
    std::optional<IndexedDatasetWriter> writer;
    for (const std::string& each : *prefixes) {
      const auto dataset = IndexedDataset::open(each);
      RETURN_IF_ERROR(dataset);
      if (!writer) {
        auto created = IndexedDatasetWriter::create(output, dataset->type());
        RETURN_IF_ERROR(created);
        writer.emplace(std::move(*created));
      }
      RETURN_IF_ERROR(writer->add_dataset(*dataset));
    }
    RETURN_IF_ERROR(writer->finish());
    log_info(cat(output, ".bin: ", writer->documents(), " documents of ", prefixes->size(),
                 " datasets, ", writer->tokens(), " tokens"));
  }
  return {};
}

namespace fs = std::filesystem;
using engine::data::megatron::TokenType;
using engine::tokenizer::Tokenizer;

// Packed files have labels of -100.
TokenType type_of(const PreprocessOptions& options, const Tokenizer& tokenizer) {
  const bool packed = options.handler != text_handler;
  if (packed && options.token_type == "uint16")
    throw Failure({Errc::usage, cat("--token-type: ", options.handler,
                                    " writes int32, because labels can be -100")});
  if (packed || options.token_type == "int32") return TokenType::i32;
  if (options.token_type == "uint16") return TokenType::u16;
  return engine::data::megatron::token_type_for(tokenizer.vocab_size());
}

// Checksums of the tokenizer's files: it is the same wherever it lies.
Json tokenizer_checksums(const std::string& path) {
  Json out = Json::Object{};
  if (!fs::is_directory(path)) return out.set("tokenizer", value_or_throw(sha256_of_file(path)));
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                           "special_tokens_map.json", "added_tokens.json", "qwen.tiktoken",
                           "vocab.json", "merges.txt", "vocab.txt", "chat_template.jinja"}) {
    const std::string file = path + "/" + name;
    if (fs::exists(file)) out.set(name, value_or_throw(sha256_of_file(file)));
  }
  const std::string more = cat(path, "/", additional_templates_folder);
  for (const auto& name : file_names(more, ".jinja"))
    out.set(cat(additional_templates_folder, "/", name),
            value_or_throw(sha256_of_file(cat(more, "/", name))));
  return out;
}

Json json_of(const std::vector<std::string>& texts) {
  Json::Array out;
  for (const auto& text : texts) out.emplace_back(text);
  return out;
}

// The prompt type, in the file that has it.
std::string template_of(const PreprocessOptions& options) {
  if (options.prompt_type_path.empty()) return options.prompt_type;
  return cat(options.prompt_type_path, "#", options.prompt_type);
}

engine::data::ReadOptions reading_of(const PreprocessOptions& options) {
  engine::data::ReadOptions out;
  constexpr auto names = names_of(engine::data::SampleBy{});
  const auto found = std::ranges::find(names, options.sample_by);
  check(found != names.end(), "preprocess: an unknown unit of rows");
  out.sample_by = static_cast<engine::data::SampleBy>(found - names.begin());
  out.separator = options.separator;
  out.documents = options.handler == text_handler;
  return out;
}

// Everything that determines the bytes of the output.
Json settings_of(const PreprocessOptions& options, const RowSource& rows, TokenType type) {
  Json::Array inputs;
  for (const auto& file : rows.files()) inputs.push_back(Json::Object{{"xxh3", file.xxh3}});
  std::string prompt_type = template_of(options);
  const std::string file = engine::tokenizer::template_file_of(prompt_type);
  if (fs::exists(file)) prompt_type.replace(0, file.size(), value_or_throw(sha256_of_file(file)));
  return Json::Object{{"input", std::move(inputs)},
                      {"tokenizer", tokenizer_checksums(options.tokenizer)},
                      {"handler_name", options.handler},
                      {"json_keys", json_of(options.json_keys)},
                      {"sample_by", options.sample_by},
                      {"separator", options.separator},
                      {"append_eod", options.append_eod},
                      {"special_tokens", options.special_tokens},
                      {"prompt_type", std::move(prompt_type)},
                      {"map_keys", options.map_keys},
                      {"dataset_additional_keys", json_of(options.additional_keys)},
                      {"seq_length", options.sequence_length},
                      {"placeholder_token", options.placeholder},
                      {"reward_tokens", json_of(options.reward_tokens)},
                      {"token_type", to_string(type)},
                      {"max_samples", options.max_samples}};
}

std::string progress_path(const PreprocessOptions& options) {
  if (options.cache_dir.empty()) return options.output_prefix + ".progress.json";
  fs::create_directories(options.cache_dir);
  return options.cache_dir + "/" + fs::path(options.output_prefix).filename().string() +
         ".progress.json";
}

void check_keys(const std::vector<std::string>& keys) {
  for (auto key = keys.begin(); key != keys.end(); ++key) {
    if (std::find(keys.begin(), key, *key) != key)
      throw Failure({Errc::usage, cat("--json-keys: ", quote(*key), " is given twice")});
    if (key->empty() || key->find('/') != std::string::npos)
      throw Failure({Errc::usage, cat("--json-keys: ", quote(*key),
                                      ": expected a name that can be part of a file's name")});
  }
}

// Options of the other kind of handler would have no effect.
void check_options(const PreprocessOptions& options) {
  if (options.input.empty()) throw Failure({Errc::usage, "--input is required"});
  if (options.output_prefix.empty()) throw Failure({Errc::usage, "--output-prefix is required"});
  if (!options.merge_group_keys.empty()) return;
  if (options.tokenizer.empty())
    throw Failure({Errc::usage, "--tokenizer-name-or-path: expected a folder with a tokenizer"});
  const auto refuse = [&](bool given, const char* name) {
    if (given)
      throw Failure({Errc::usage, cat(name, " has no effect with --handler-name ", options.handler,
                                      "; leave it out")});
  };
  if (options.handler == text_handler) {
    check_keys(options.json_keys);
    refuse(!options.prompt_type.empty(), "--prompt-type");
    refuse(!options.prompt_type_path.empty(), "--prompt-type-path");
    refuse(!options.map_keys.empty(), "--map-keys");
    refuse(!options.additional_keys.empty(), "--dataset-additional-keys");
    refuse(!options.reward_tokens.empty(), "--reward-tokens");
    refuse(options.sequence_length > 0, "--seq-length");
  } else {
    refuse(options.append_eod, "--append-eod");
    refuse(!options.special_tokens, "--no-special-tokens");
    refuse(options.json_keys != PreprocessOptions().json_keys, "--json-keys");
  }
}

/// The encoder, and the same object as PackedRows if it is one.
struct ChosenEncoder {
  std::unique_ptr<const RowEncoder> encoder;
  const PackedRows* packed = nullptr;
};

ChosenEncoder encoder_for(const PreprocessOptions& options, const Tokenizer& tokenizer) {
  if (options.handler == text_handler)
    return {std::make_unique<TextColumns>(value_or_throw(
                TextColumns::create(tokenizer, {.columns = options.json_keys,
                                                .special_tokens = options.special_tokens,
                                                .append_eod = options.append_eod}))),
            nullptr};
  auto packed = value_or_throw(PackedRows::create({
      .handler = value_or_throw(find_handler(options.handler)),
      .tokenizer = options.tokenizer,
      .prompt_type = template_of(options),
      .map_keys = options.map_keys,
      .additional_keys = options.additional_keys,
      .sequence_length = options.sequence_length,
      .placeholder = options.placeholder,
      .reward_tokens = options.reward_tokens,
  }));
  const PackedRows* view = packed.get();
  return {std::move(packed), view};
}

void tokenize_rows(const PreprocessOptions& options) {
  const auto tokenizer = value_or_throw(Tokenizer::load(options.tokenizer));
  auto rows =
      value_or_throw(RowSource::open(options.input, options.max_samples, reading_of(options)));
  const TokenType type = type_of(options, tokenizer);
  const ChosenEncoder chosen = encoder_for(options, tokenizer);
  auto files = value_or_throw(TokenFiles::open({.prefix = options.output_prefix,
                                                .outputs = chosen.encoder->outputs(),
                                                .type = type,
                                                .progress_file = progress_path(options),
                                                .settings = settings_of(options, rows, type)}));
  Preprocessing work(std::move(rows), *chosen.encoder, std::move(files),
                     std::max(options.workers, options.subs), options.log_interval);
  work.run();
  if (chosen.packed && chosen.packed->left_out() > 0)
    log_warning(cat("left out ", chosen.packed->left_out(),
                    " rows: of --seq-length tokens or more, or without a trained token"));
  for (const std::string& output : chosen.encoder->outputs())
    std::cout << dataset_prefix(options.output_prefix, output) << "\n";
}

}  // namespace

int preprocess(const PreprocessOptions& options) {
  check_options(options);
  if (const fs::path folder = fs::path(options.output_prefix).parent_path(); !folder.empty())
    fs::create_directories(folder);
  if (options.merge_group_keys.empty()) {
    tokenize_rows(options);
    return 0;
  }
  if (options.input.size() != 1)
    throw Failure({Errc::usage, "--merge-group-keys: expected one folder as --input"});
  value_or_throw(
      merge_groups(options.input.front(), options.merge_group_keys, options.output_prefix));
  return 0;
}

}  // namespace troupe::launch::tools::preprocess
