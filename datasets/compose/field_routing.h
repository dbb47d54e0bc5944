// Which field of a data set goes where in a model. A trainer declares what it takes, by name and
// type; a field that is missing, ambiguous or of another type is one clear error before anything
// runs. Fields are never matched by their position.
//
//   FieldRouting routing({{.to = "wavs", .from = {"audio", "wavs"}, .dtype = DType::float32,
//                          .ranks = {1, 2}},
//                         {.to = "raw_texts", .from = {"caption"}, .text = true,
//                          .required = false}});
//   routing.bind(songs.schema());
//   train(batch[routing.field("wavs")]);
#pragma once

#include <millrace/pipeline/data/schema.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

// One thing that a model takes.
struct Route {
  std::string to;                   // what the model calls it
  std::vector<std::string> from{};  // what a data set may call it; empty: the same
  DType dtype = DType::uint8;       // not looked at for texts
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

  // The data set's name for it; throws if it is optional and absent, or if nothing is bound.
  const std::string& field(std::string_view to) const;
  bool has(std::string_view to) const;
  // Fields of the data set that no route takes, e.g. to say so once.
  const std::vector<std::string>& unused() const { return unused_; }
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::size_t find(std::string_view to) const;

  std::vector<Route> routes_;
  std::vector<std::optional<std::string>> bound_;
  std::vector<std::string> unused_;
};

}  // namespace millrace
