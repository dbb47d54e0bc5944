// A parity fixture: what a Python model was given, and what it made of it. One flat dictionary,
// saved by torch.save: `model` and `config` (text), and tensors under param/ buffer/ input/ output/
// loss/ grad/<tag>/ rand/ buffer_after/. Fixtures of our own also hold optimizer steps: step/config
// (text), step/input/<i>, step/loss/<i>.<part> and step/after/<name>.
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
  // Everything whose name begins with `prefix`, under the rest of its name.
  NamedTensors with(const std::string& prefix) const;
  // The recorded random draws under `prefix`, in their order.
  std::shared_ptr<Draws> draws(const std::string& prefix = "rand/") const;

 private:
  Value all_;
  std::map<std::string, torch::Tensor> tensors_;
};

}  // namespace millrace
