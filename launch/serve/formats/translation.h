// What the translations of other formats to chat requests have in common.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/base/json/json.h"
#include "launch/serve/api/chat_format.h"
#include "launch/serve/api/request_fields.h"

namespace troupe::launch::serve::formats {

/// Copies fields that mean the same in both formats.
void pass_fields(api::RequestFields& fields, std::initializer_list<std::string_view> names,
                 Json& chat);
/// Copies those of sampling_rows().
void pass_sampling(api::RequestFields& fields, Json& chat);

/// A member that must be there. Status 400 otherwise.
const Json& required_member(api::RequestFields& fields, const char* name);
std::string required_text(api::RequestFields& fields, const char* name);
/// Adds the names of the members that no call has named.
void add_unknown(api::RequestFields& fields, api::UnknownFields& into);

/// Accepts members that change no answer.
void accept_members(api::RequestFields& fields, std::initializer_list<std::string_view> names);
/// Status 400 where the member has a value other than null, false and an empty list.
void refuse_member(api::RequestFields& fields, std::string_view name, const std::string& why);

/// Removes the format of texts from a chat request whose answer must be a call: it has no text.
void drop_format_beside_call(Json& chat);

/// A text, or a list of parts whose types are among `types`, as content of a chat message. Throws
/// ApiFailure for other parts, by their type.
Json text_content(const Json& content, const std::string& where,
                  std::initializer_list<std::string_view> types);
/// The same as one text, with `between` between the parts.
std::string joined_text(const Json& content, std::string_view between);

}  // namespace troupe::launch::serve::formats
