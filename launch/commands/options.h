// Groups of command-line options that several commands share.
#pragma once

#include <CLI/App.hpp>

#include "launch/commands/chat.h"
#include "launch/commands/generate.h"
#include "launch/recipes/resolve.h"

namespace troupe::launch::commands {

/// Expands ~ in the values of an option that is a path: shells leave `--model=~/x` as it is.
CLI::Option* path_option(CLI::Option* option);

/// Options of train and explain: --algorithm, --config, --set, options for the most common
/// settings, and those of add_profile(). `sources` outlives the parsing.
void add_sources(CLI::App& command, recipes::Sources& sources);

/// --model, which is required, --adapter, --dtype and --threads. `options` outlives the parsing.
void add_model(CLI::App& command, model::ModelOptions& options);

/// --model-overrides, also as words model_overrides.KEY=VALUE. `overrides` outlives the parsing.
/// --dtype.
void add_dtype(CLI::App& command, engine::ops::Precision& dtype);
void add_overrides(CLI::App& command, model::ModelOverrides& overrides);

/// --template of generate and chat. `options` outlives the parsing.
void add_template(CLI::App& command, GenerateOptions& options);

/// --url and --api-key-file of chat, after add_model(), add_sampling() and add_template().
/// `options` outlives the parsing.
void add_server(CLI::App& command, ChatOptions& options);

/// Sampling options of the commands generate and chat. `options` outlives the parsing.
void add_sampling(CLI::App& command, GenerateOptions& options);

/// --task of generate, after add_sampling(). `options` outlives the parsing.
void add_task(CLI::App& command, GenerateOptions& options);

/// --quiet and --log-level of every command that logs; take effect when they are parsed.
void add_logging(CLI::App& command);

/// --profile and the --profile-... options of train, which set the keys of the section profile.
/// `sources` outlives the parsing.
void add_profile(CLI::App& command, recipes::Sources& sources);

}  // namespace troupe::launch::commands
