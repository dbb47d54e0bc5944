#include <millrace/datasets/compose/field_routing.h>

#include <algorithm>
#include <set>

namespace millrace {

namespace {

Error usage(const std::string& reason) {
  return Error(reason).stage("routing").kind(ErrorKind::usage);
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : " or '") + name + "'";
  return text;
}

std::string type_of(const Field& field) {
  return field.text ? "text" : std::string(name_of(field.dtype)) + " " + to_string(field.shape);
}

std::string wanted(const Route& route) {
  if (route.text) return "text";
  std::string text(name_of(route.dtype));
  for (std::size_t i = 0; i < route.ranks.size(); ++i) {
    text += (i == 0 ? " with " : " or ") + std::to_string(route.ranks[i]);
  }
  return route.ranks.empty() ? text : text + " axes";
}

bool fits(const Route& route, const Field& field) {
  if (route.text || field.text) return route.text && field.text;
  bool rank = route.ranks.empty() ||
              std::ranges::find(route.ranks, field.shape.rank()) != route.ranks.end();
  return rank && field.dtype == route.dtype;
}

}  // namespace

FieldRouting::FieldRouting(std::vector<Route> routes) : routes_(std::move(routes)) {
  std::set<std::string> destinations, sources;
  for (Route& route : routes_) {
    if (route.to.empty()) throw usage("a route needs a name");
    if (!destinations.insert(route.to).second) {
      throw usage("'" + route.to + "' is declared twice");
    }
    if (route.from.empty()) route.from = {route.to};
    for (const std::string& name : route.from) {
      if (!sources.insert(name).second) {
        throw usage("the field '" + name + "' is wanted twice, the second time as '" + route.to +
                    "'");
      }
    }
  }
  bound_.resize(routes_.size());
}

void FieldRouting::bind(const Schema& schema) {
  std::vector<std::optional<std::string>> bound(routes_.size());
  std::set<std::string> used;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const Route& route = routes_[i];
    for (const std::string& name : route.from) {
      int at = schema.find(name);
      if (at < 0) continue;
      const Field& field = schema[at];
      if (bound[i]) {
        throw usage("'" + route.to + "' could be the field '" + *bound[i] + "' or the field '" +
                    name + "' of the data set: it must have only one of them");
      }
      if (!fits(route, field)) {
        throw usage("'" + route.to + "' must be " + wanted(route) + ", but the field '" + name +
                    "' of the data set is " + type_of(field));
      }
      bound[i] = name;
      used.insert(name);
    }
    if (!bound[i] && route.required) {
      throw usage("'" + route.to + "' needs a field " + list(route.from) + " (" + wanted(route) +
                  "), but the data set has: " + to_string(schema));
    }
  }
  bound_ = std::move(bound);
  unused_.clear();
  for (const Field& field : schema) {
    if (!used.contains(field.name)) unused_.push_back(field.name);
  }
}

std::size_t FieldRouting::find(std::string_view to) const {
  auto found = std::ranges::find(routes_, to, &Route::to);
  if (found == routes_.end()) throw usage("'" + std::string(to) + "' was never declared");
  return static_cast<std::size_t>(found - routes_.begin());
}

const std::string& FieldRouting::field(std::string_view to) const {
  const auto& name = bound_[find(to)];
  if (!name) throw usage("the data set has no field for '" + std::string(to) + "'");
  return *name;
}

bool FieldRouting::has(std::string_view to) const {
  return bound_[find(to)].has_value();
}

}  // namespace millrace
