// Added tokens that tokenizer_config.json, added_tokens.json and special_tokens_map.json name, as
// transformers' AutoTokenizer adds them to those of tokenizer.json.
#pragma once

#include <vector>

#include "engine/base/json/json.h"
#include "engine/tokenizer/base/added_tokens.h"

namespace troupe::engine::tokenizer {

/// Appends the missing tokens of `config`'s "added_tokens_decoder" and of the folder's
/// added_tokens.json under their ids, then the tokens with a role (bos_token, ...) that are in the
/// vocabulary. Tokens with a role are special. `defaults` gives roles that neither `config` nor
/// `map` defines. Where the files contradict each other, `tokens` and `vocabulary` win, with a
/// warning: a text that they have keeps its id, an id that they have keeps its text, and a new text
/// for such an id gets the next free one (transformers 5, PreTrainedTokenizerFast.__init__).
/// Errc::bad_input for ids that are out of range.
Result<> add_config_tokens(std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
                           const std::string& folder, const Json& config, const Json& map,
                           const Json& defaults);

}  // namespace troupe::engine::tokenizer
