// Maps the fields of a data set to the inputs of a model. A trainer declares its inputs by name and
// type; a missing or ambiguous field, or one with another type, is an error before training starts.
// Fields are never matched by position.
//
//   FieldRouting routing({{.to = "wavs", .from = {"audio", "wavs"}, .dtype = DType::float32,
//                          .ranks = {1, 2}},
//                         {.to = "raw_texts", .from = {"caption"}, .text = true,
//                          .required = false}});
//   routing.bind(Schema{{.name = "audio", .dtype = DType::float32, .shape = {-1}}});
//   const std::string& field = routing.field("wavs");  // "audio"
#pragma once

#include <millrace/pipeline/data/schema.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

// One input of a model.
struct Route {
  std::string to;                   // its name in the model
  std::vector<std::string> from{};  // its possible names in a data set; empty: the same name
  DType dtype = DType::uint8;       // ignored for texts
  std::vector<int> ranks{};         // of a sample, without the batch axis; empty: any
  bool text = false;
  bool required = true;
};

class FieldRouting {
 public:
  // Throws if two routes have the same `to` or could take the same field.
  FieldRouting(std::initializer_list<Route> routes) : FieldRouting(std::vector<Route>(routes)) {}
  explicit FieldRouting(std::vector<Route> routes);

  // Finds the field of every route. Throws an Error of kind usage that names the route, what was
  // expected and what the data set has.
  void bind(const Schema& schema);

  // The data set's field; throws if bind() was not called or an optional field is missing.
  const std::string& field(std::string_view to) const;
  bool has(std::string_view to) const;
  // Fields of the data set that no route uses, e.g. for a message.
  const std::vector<std::string>& unused() const { return unused_; }
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::size_t find(std::string_view to) const;

  std::vector<Route> routes_;
  std::vector<std::optional<std::string>> bound_;
  std::vector<std::string> unused_;
};

}  // namespace millrace
