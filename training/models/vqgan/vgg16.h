// VGG16 as the measure of how alike two pictures look: torchvision's network up to the second
// fully connected layer, as muse-maskgit-pytorch cuts it. Frozen, and without dropout, which in the
// package makes the loss of two equal pictures differ from 0.
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
  // Throws an Error with `source` that names the first tensor that is missing or does not fit.
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
