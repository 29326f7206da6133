#include "engine/constraints/formats.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/text/text.h"

namespace troupe::engine::constraints {

namespace {

// RFC 3339, without leap days and leap seconds.
constexpr std::string_view date_form =
    "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    "02-(0[1-9]|1[0-9]|2[0-8]))";
constexpr std::string_view time_form =
    R"(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))";
constexpr std::string_view duration_form =  // RFC 3339, appendix A
    "P([1-9][0-9]{0,3}W|([1-9][0-9]{0,3}Y([1-9][0-9]?M([1-9][0-9]?D)?)?|"
    "[1-9][0-9]?M([1-9][0-9]?D)?|[1-9][0-9]{0,3}D)"
    "(T([1-9][0-9]?H([1-9][0-9]?M([1-9][0-9]?S)?)?|[1-9][0-9]?M([1-9][0-9]?S)?|[1-9][0-9]?S))?|"
    "T([1-9][0-9]{0,3}H([1-9][0-9]?M([1-9][0-9]?S)?)?|[1-9][0-9]{0,3}M([1-9][0-9]?S)?|"
    "[1-9][0-9]{0,3}S))";
constexpr std::string_view uuid_form =
    "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
constexpr std::string_view ipv4_form =
    R"(((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9]))";
constexpr std::string_view ipv6_form =  // RFC 4291, without embedded IPv4 addresses
    "([0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|([0-9A-Fa-f]{1,4}:){1,7}:|"
    "([0-9A-Fa-f]{1,4}:){1,6}:[0-9A-Fa-f]{1,4}|([0-9A-Fa-f]{1,4}:){1,5}(:[0-9A-Fa-f]{1,4}){2}|"
    "([0-9A-Fa-f]{1,4}:){1,4}(:[0-9A-Fa-f]{1,4}){3}|([0-9A-Fa-f]{1,4}:){1,3}(:[0-9A-Fa-f]{1,4}){4}|"
    "([0-9A-Fa-f]{1,4}:){1,2}(:[0-9A-Fa-f]{1,4}){5}|[0-9A-Fa-f]{1,4}:(:[0-9A-Fa-f]{1,4}){6}|"
    ":(:[0-9A-Fa-f]{1,4}){1,7}|::";
constexpr std::string_view email_form =
    R"([A-Za-z0-9]+([._-][A-Za-z0-9]+){0,8}@[A-Za-z0-9]+([.-][A-Za-z0-9]+){0,8}\.[A-Za-z]{2,8})";
/// RFC 1123, within 253 characters, with single hyphens.
constexpr std::string_view hostname_form =
    R"(([A-Za-z0-9]{1,20}(-[A-Za-z0-9]{1,10})?\.){0,6}[A-Za-z][A-Za-z0-9]{0,19}(-[A-Za-z0-9]{1,10})?)";
// RFC 3986, with registered names as hosts.
constexpr std::string_view path_form = R"((/([A-Za-z0-9_.~!$&'()*+,;=:@-]|%[0-9A-F]{2})*)*)";
constexpr std::string_view query_form = R"((\?([A-Za-z0-9_.~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})*)?)";
constexpr std::string_view fragment_form = R"((#([A-Za-z0-9_.~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})*)?)";
constexpr std::string_view host_form =
    R"(://([A-Za-z0-9_-]+@)?[A-Za-z0-9]+([.-][A-Za-z0-9]+)*(:[1-9][0-9]{0,3})?)";
constexpr std::string_view pointer_form =
    R"((/([A-Za-z0-9_ .:@$+=()!*,;&-]|~[01])*)*)";  // RFC 6901
constexpr std::string_view template_form =          // RFC 6570
    R"(([A-Za-z0-9_.~/:?=&-]|\{[?&/+#.]?[A-Za-z][A-Za-z0-9_]*(,[A-Za-z][A-Za-z0-9_]*)*\})*)";
constexpr std::string_view regex_form =
    R"(\^?([A-Za-z0-9_/:@ -]([*+?]|\{[1-9]\})?|\[[A-Za-z0-9_]+\][*+?]?|\.[*+]?|\\[dws.][+*]?)*\$?)";

std::string uri_form() {
  return cat("(https?|ftp|wss?|[a-z][a-z0-9+.-]*)", host_form, path_form, query_form, fragment_form,
             R"(|(urn:[a-z0-9]{2,20}|mailto|tel|data):[A-Za-z0-9_.~!$'()*+,;=:@-]+)");
}
/// A path without a scheme, whose first segment has no colon.
std::string reference_form() {
  return cat(uri_form(), R"(|([A-Za-z0-9_.~-]*))", path_form.substr(0, 2),
             R"([A-Za-z0-9_.~-]+)*/?)", query_form, fragment_form);
}

}  // namespace

std::string format_pattern(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> forms = {{
      {"date", date_form},
      {"time", time_form},
      {"duration", duration_form},
      {"uuid", uuid_form},
      {"ipv4", ipv4_form},
      {"ipv6", ipv6_form},
      {"email", email_form},
      {"idn-email", email_form},
      {"hostname", hostname_form},
      {"idn-hostname", hostname_form},
      {"json-pointer", pointer_form},
      {"uri-template", template_form},
      {"regex", regex_form},
  }};
  for (const auto& [known, form] : forms)
    if (name == known) return std::string(form);
  if (name == "date-time") return cat(date_form, "T", time_form);
  if (name == "uri" || name == "iri") return uri_form();
  if (name == "uri-reference" || name == "iri-reference") return reference_form();
  if (name == "relative-json-pointer") return cat("(0|[1-9]{1,4}0?)(#|", pointer_form, ")");
  return "";
}

}  // namespace troupe::engine::constraints
