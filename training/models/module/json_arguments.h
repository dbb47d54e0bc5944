// Reads the constructor arguments of a Python model from a JSON object. Private to training/models.
//
//   Arguments a(object, "");
//   a.take("dim", config.dim);        // left as it is if absent or null
#pragma once

#include <millrace/pipeline/base/error.h>
#include <millrace/training/models/quantizers/vector_quantizer.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

namespace millrace {

// Reads the arguments of one JSON object and records the names it has asked for, so that the caller
// can refuse all others.
class Arguments {
 public:
  Arguments(const nlohmann::json& object, std::string prefix)
      : object_(object), prefix_(std::move(prefix)) {}

  template <class T>
  void take(const char* name, T& value) {
    const std::string key = prefix_ + name;
    known_.insert(key);
    auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return;
    try {
      value = found->template get<T>();
    } catch (const nlohmann::json::exception&) {
      throw Error(c10::str("the argument ", key, " has the wrong type: ", found->dump()))
          .kind(ErrorKind::usage);
    }
  }
  template <class T>
  void take(const char* name, std::optional<T>& value) {
    T given{};
    auto found = object_.find(prefix_ + name);
    take(name, given);
    if (found != object_.end() && !found->is_null()) value = given;
  }
  // A number or a list of numbers.
  void take_list(const char* name, std::vector<std::int64_t>& value) {
    auto found = object_.find(prefix_ + name);
    if (found != object_.end() && found->is_number()) {
      std::int64_t one = 0;
      take(name, one);
      value = {one};
    } else {
      take(name, value);
    }
  }
  // Three numbers, or one number for all three.
  void take_sizes(const char* name, std::array<std::int64_t, 3>& value) {
    auto found = object_.find(prefix_ + name);
    if (found != object_.end() && found->is_number()) {
      std::int64_t one = 0;
      take(name, one);
      value.fill(one);
    } else {
      take(name, value);
    }
  }
  std::set<std::string> known_;

 private:
  const nlohmann::json& object_;
  std::string prefix_;
};

// Reads the arguments of the vector quantizer, which models take with a prefix.
inline void take_vector_quantizer(Arguments& a, const std::string& prefix,
                                  VectorQuantizerOptions& vq) {
  auto take = [&](const char* name, auto& value) { a.take((prefix + name).c_str(), value); };
  take("codebook_dim", vq.codebook_dim);
  take("decay", vq.decay);
  take("eps", vq.eps);
  take("commitment_weight", vq.commitment_weight);
  take("kmeans_init", vq.kmeans_init);
  take("kmeans_iters", vq.kmeans_iters);
  take("use_cosine_sim", vq.use_cosine_sim);
  take("threshold_ema_dead_code", vq.threshold_ema_dead_code);
}

}  // namespace millrace
