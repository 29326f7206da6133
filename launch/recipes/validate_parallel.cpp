#include "launch/recipes/validate_parallel.h"

#include <algorithm>

#include "engine/base/text/text.h"
#include "launch/config/schema.h"
#include "launch/recipes/recipes.h"
#include "launch/recipes/role_grids.h"

namespace troupe::launch::recipes {
namespace {

// The checks of one grid, whose keys begin with `prefix`.
class GridRules {
 public:
  GridRules(Validation& validation, std::string prefix, const config::ParallelConfig& grid)
      : v_(validation), prefix_(std::move(prefix)), p_(grid) {}

  void all(Role role) {
    zero();
    stages();
    context();
    if (role == Role::rollout) whole_sequences();
    if (role != Role::policy && role != Role::critic)
      v_.unused({key("zero"), key("overlap")}, "not used, this model is not trained");
    if (p_.sp && p_.tp == 1)
      v_.unused(key("sp"),
                cat("not used, ", key("tp"), " is 1: there are no ranks to divide rows over"));
    const bool magnitudes = v_.config.lora.rank > 0 && v_.config.lora.dora;
    if (role == Role::policy && p_.sp && p_.tp > 1 && magnitudes)
      problem(cat(named("sp"), ": not possible with magnitudes (lora.dora); set it to false"));
    ranks();
  }

 private:
  void problem(std::string text) { v_.problem(std::move(text)); }
  std::string key(std::string_view name) const { return cat(prefix_, name); }
  std::string named(std::string_view name) const { return v_.named(key(name)); }

  void zero() {
    if (p_.zero != 0 && p_.zero != 1)
      problem(
          cat(named("zero"),
              ": expected 0 or 1; gradients and weights are not sharded over data-parallel "
              "ranks (ZeRO-2, ZeRO-3): divide them over tensor-parallel ranks with parallel.tp or "
              "over pipeline stages with parallel.pp"));
  }

  // A generated sequence is on every rank of its replica.
  void whole_sequences() {
    const std::string others = cat("; divide the model with ", key("tp"), " or ", key("pp"));
    if (p_.cp > 1)
      problem(cat(named("cp"), ": generation divides no sequence over ranks; allowed: 1", others));
    if (p_.sp)
      problem(cat(named("sp"), ": generation divides no rows over ranks; allowed: false", others));
  }

  void context() {
    const bool hybrid = p_.cp_algorithm == config::CpAlgorithm::hybrid;
    if (p_.ulysses_degree != 0 && !hybrid)
      problem(cat(named("ulysses_degree"), ": only ", key("cp_algorithm"), ": hybrid has it"));
    inner_rings();
    if (!hybrid || p_.cp < 1) return;
    std::vector<std::string> allowed;
    for (std::int64_t degree = 2; degree < p_.cp && degree <= 1024; ++degree)
      if (p_.cp % degree == 0) allowed.push_back(cat(degree));
    if (allowed.empty())
      return problem(cat(named("cp_algorithm"), ": hybrid needs a ", key("cp"),
                         " of at least 4 with a divisor, found ", p_.cp, "; use ring or ulysses"));
    if (p_.ulysses_degree < 2 || p_.ulysses_degree >= p_.cp || p_.cp % p_.ulysses_degree != 0)
      problem(cat(named("ulysses_degree"), ": hybrid with ", key("cp"), ' ', p_.cp,
                  " expects one of ", join(allowed, ", "), ", found ", p_.ulysses_degree));
  }

  void inner_rings() {
    if (p_.cp_window <= 1) return;
    if (p_.cp_algorithm == config::CpAlgorithm::ulysses)
      return problem(cat(named("cp_window"), ": ulysses has no ring; leave it at 1"));
    const int groups = config::ulysses_degree(p_);
    const std::int64_t ring = groups < 1 || p_.cp % groups != 0 ? p_.cp : p_.cp / groups;
    std::vector<std::string> allowed = {"1"};
    for (std::int64_t size = 2; size < ring && size <= 1024; ++size)
      if (ring % size == 0) allowed.push_back(cat(size));
    if (p_.cp_window >= ring || ring % p_.cp_window != 0)
      problem(cat(named("cp_window"), ": expected a divisor of the ", ring,
                  " ranks of a ring that is less than them, one of ", join(allowed, ", "),
                  ", found ", p_.cp_window));
  }

  void stages() {
    if (!p_.noop_layers.empty() && p_.pp == 1)
      problem(cat(named("noop_layers"), ": needs a ", named("pp"),
                  " of at least 2, whose stages it shortens"));
    if (p_.vpp > 1 && p_.pp == 1)
      problem(cat(named("vpp"), ": needs a ", named("pp"),
                  " of at least 2, whose stages it divides; allowed: 1"));
    const std::int64_t parts = std::int64_t{p_.pp} * p_.vpp;
    if (p_.pp < 1 || p_.vpp < 1 || p_.layers.empty() || std::ssize(p_.layers) == parts) return;
    problem(cat(named("layers"), ": expected ", parts, parts == 1 ? " number" : " numbers",
                ", one for each ", p_.vpp == 1 ? "stage of " : "of the virtual stages of ",
                named("pp"), p_.vpp == 1 ? "" : cat(" x ", named("vpp")), ", found ",
                p_.layers.size()));
  }

  void ranks() {
    constexpr std::int64_t maximum = 1024;
    const auto outside = [](std::int64_t size) { return size < 1 || size > maximum; };
    if (outside(p_.tp) || outside(p_.dp) || outside(p_.pp) || outside(p_.cp)) return;  // reported
    const std::int64_t ranks = std::int64_t{p_.tp} * p_.dp * p_.pp * p_.cp;
    if (ranks <= maximum) return;
    problem(cat(named("dp"), " x ", named("tp"), p_.pp > 1 ? cat(" x ", named("pp")) : "",
                p_.cp > 1 ? cat(" x ", named("cp")) : "", ": a group has at most ", maximum,
                " ranks, found ", ranks));
  }

  Validation& v_;
  std::string prefix_;
  const config::ParallelConfig& p_;
};

}  // namespace

void validate_grids(Validation& validation) {
  const config::RunConfig& config = validation.config;
  GridRules(validation, "parallel.", config.parallel).all(Role::policy);
  const Recipe* recipe = find_recipe(config.algorithm);
  if (!recipe) return;
  const RolesNeeded roles = recipe->roles(config);
  for (const Role role : roles_with_section) {
    const std::string prefix = cat("parallel.", to_string(role), '.');
    if (roles.of(role).needed) {
      GridRules(validation, prefix, *role_section(config, role)).all(role);
      if (role == Role::critic && !has_grid(config, role))
        validation.unused({prefix + "zero", prefix + "overlap", prefix + "order"},
                          "not used, no other key of the section is set: the critic has the "
                          "policy's grid");
      continue;
    }
    for (const config::Field& field : config::fields())
      if (field.key.starts_with(prefix))
        validation.unused(field.key, cat("not used, the run has no ", to_string(role)));
  }
}

void validate_group(const config::RunConfig& config, Role role, const config::Origins& origins,
                    Findings& findings) {
  Validation validation(config, origins, findings);
  GridRules(validation, "parallel.", config.parallel).all(role);
}

}  // namespace troupe::launch::recipes
