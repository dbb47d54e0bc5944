// A parity fixture: the inputs and outputs of a Python model. It is a flat dictionary written by
// torch.save, with `model` and `config` (text) and tensors under param/ buffer/ input/ output/
// loss/ grad/<tag>/ rand/ buffer_after/. Fixtures made by our own scripts also hold optimizer
// steps: step/config (text), step/input/<i>, step/loss/<i>.<part> and step/after/<name>.
#pragma once

#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/models/module/random_source.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace millrace {

class Fixture {
 public:
  explicit Fixture(const std::filesystem::path& path);

  const std::string& model() const { return text("model"); }
  const std::string& config() const { return text("config"); }
  const std::string& text(const std::string& key) const { return all_[key].as_string(); }
  bool has(const std::string& key) const { return all_.as_dict().contains(key); }
  const torch::Tensor& tensor(const std::string& key) const;
  // All tensors whose name starts with `prefix`; the prefix is removed from the names.
  NamedTensors with(const std::string& prefix) const;
  // The recorded random numbers under `prefix`, in the order in which Python drew them.
  std::shared_ptr<Draws> draws(const std::string& prefix = "rand/") const;

 private:
  Value all_;
  std::map<std::string, torch::Tensor> tensors_;
};

}  // namespace millrace
