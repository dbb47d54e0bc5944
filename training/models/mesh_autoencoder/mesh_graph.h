// Sums and means over neighbours, without materializing a row per pair: the graph convolutions of
// the mesh autoencoder's encoder, and the average over the faces of a vertex. Private to
// training/models.
#pragma once

#include <millrace/training/models/mesh_autoencoder/mesh_autoencoder_config.h>

#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace millrace {

// Sparse row sums: which rows belong to which sum, with the transposed lists for the backward pass.
class RowLists {
 public:
  // For each pair i, row from[i] is added to sum to[i]; both int64 [pairs].
  RowLists(const torch::Tensor& from, const torch::Tensor& to, std::int64_t rows,
           std::int64_t sums);

  // Maps [rows, dim] to [sums, dim]. Rows are added in the order of the pairs. Differentiable.
  torch::Tensor sum(const torch::Tensor& x) const;
  torch::Tensor mean(const torch::Tensor& x, double least_count = 1) const;
  const torch::Tensor& counts() const { return counts_; }  // [sums], float

 private:
  struct Lists {
    torch::Tensor members, ends;  // ends: [lists + 1], the offset of each list
  };
  static Lists lists(const torch::Tensor& members, const torch::Tensor& of, std::int64_t count);
  class Sum;

  std::shared_ptr<const Lists> by_sum_, by_row_;
  torch::Tensor counts_;
};

// GraphSAGE convolution: a linear layer of the aggregated neighbours plus a linear layer of the
// face itself.
class SageConvImpl : public torch::nn::Module {
 public:
  SageConvImpl(std::int64_t in, std::int64_t out, const SageConvConfig& config);
  torch::Tensor forward(const torch::Tensor& x, const RowLists& neighbours);
  // Reference path: operations in the order of the Python package. Pair i sends a message from face
  // from[i] to face to[i].
  torch::Tensor forward_reference(const torch::Tensor& x, const torch::Tensor& from,
                                  const torch::Tensor& to);

 private:
  // Messages to the neighbours, and the output for aggregated messages.
  torch::Tensor messages_of(const torch::Tensor& x);
  torch::Tensor combined(const torch::Tensor& aggregated, const torch::Tensor& x);

  SageConvConfig config_;
  torch::nn::Linear project_{nullptr}, left_{nullptr}, right_{nullptr};
};
TORCH_MODULE(SageConv);

}  // namespace millrace
