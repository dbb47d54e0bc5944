// VGG16 as a perceptual network: torchvision's model up to the second fully connected layer, as in
// muse-maskgit-pytorch. Frozen and without dropout; the Python package leaves dropout on, so there
// two equal pictures have a loss above 0.
//
//   model->set_perceptual_net(Vgg16::from_file("vgg16.pt"));
#pragma once

#include <millrace/training/checkpoint/tensors.h>

#include <filesystem>
#include <string>
#include <vector>

namespace millrace {

class Vgg16 {
 public:
  // A state_dict with torchvision's names, e.g. made in Python by
  //   torch.save(torchvision.models.vgg16(weights="DEFAULT").state_dict(), "vgg16.pt")
  static Vgg16 from_file(const std::filesystem::path& path);
  // Throws an Error with `source` that names the first tensor that is missing or has the wrong
  // shape.
  Vgg16(const NamedTensors& tensors, const std::string& source);

  // [batch, 3, height, width] to [batch, features]
  torch::Tensor operator()(const torch::Tensor& pictures) const;
  void to(torch::Device device);

 private:
  struct Layer {
    torch::Tensor weight, bias;
    bool pool_after = false;
  };
  std::vector<Layer> convolutions_, linear_;
};

}  // namespace millrace
