// Means over neighbours, without a row in memory for every pair: the graph convolutions of the mesh
// autoencoder's encoder, and the faces of each vertex. Private to training/models.
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>

#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// Which rows go into which sum, both ways round.
class RowLists {
 public:
  // Pair i: row from[i] goes into sum to[i]; both int64 [pairs].
  RowLists(const torch::Tensor& from, const torch::Tensor& to, std::int64_t rows,
           std::int64_t sums);

  // [rows, dim] to [sums, dim]. Rows of a sum are added in the order of the pairs. Gives gradients.
  torch::Tensor sum(const torch::Tensor& x) const;
  torch::Tensor mean(const torch::Tensor& x, double least_count = 1) const;
  const torch::Tensor& counts() const { return counts_; }  // [sums], float

 private:
  struct Lists {
    torch::Tensor members, ends;  // ends: [lists + 1], where each begins
  };
  static Lists lists(const torch::Tensor& members, const torch::Tensor& of, std::int64_t count);
  class Sum;

  std::shared_ptr<const Lists> by_sum_, by_row_;
  torch::Tensor counts_;
};

// GraphSAGE: what the neighbours say on average, beside what a face says itself.
class SageConvImpl : public torch::nn::Module {
 public:
  SageConvImpl(std::int64_t in, std::int64_t out, const SageConvConfig& config);
  torch::Tensor forward(const torch::Tensor& x, const RowLists& neighbours);
  // Pair i: what face from[i] says goes to face to[i]. Every sum in Python's order.
  torch::Tensor forward_reference(const torch::Tensor& x, const torch::Tensor& from,
                                  const torch::Tensor& to);

 private:
  // What neighbours say before it is averaged, and what is made of the average.
  torch::Tensor said(const torch::Tensor& x);
  torch::Tensor combined(const torch::Tensor& heard, const torch::Tensor& x);

  SageConvConfig config_;
  torch::nn::Linear project_{nullptr}, left_{nullptr}, right_{nullptr};
};
TORCH_MODULE(SageConv);

}  // namespace millrace
