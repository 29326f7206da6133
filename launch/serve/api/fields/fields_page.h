// The page docs/request-fields.md, from the tables of fields.
#pragma once

#include <string>

namespace troupe::launch::serve::api {

/// Markdown: a table per endpoint.
std::string request_fields_page();

}  // namespace troupe::launch::serve::api
