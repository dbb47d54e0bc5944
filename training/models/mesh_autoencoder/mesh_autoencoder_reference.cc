// Reference path of the mesh autoencoder's loss: operations in the order of the Python package. It
// keeps the padded batch, so sums have the same terms as in Python and round the same way. This
// matters for gradients that nearly cancel, e.g. of the queries of linear attention and of the area
// embedding.
#include "mesh_attention.h"
#include "mesh_autoencoder_parts.h"
#include "mesh_decoder.h"

#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/quantizers/quantizer.h>

namespace millrace {

torch::Tensor MeshAutoencoderImpl::encode_reference(const Graph& graph) {
  auto padded = [&](const torch::Tensor& of_faces) {
    const auto& sizes = graph.mask.sizes();
    return torch::zeros({sizes[0], sizes[1], of_faces.size(1)}, of_faces.options())
        .masked_scatter(graph.mask.unsqueeze(-1), of_faces);
  };
  auto embedded = [&](torch::nn::Embedding& table, const torch::Tensor& bins) {
    return torch::embedding(table->weight, padded(bins)).flatten(2);
  };
  const torch::Tensor seen = torch::cat(
      {embedded(coor_embed_, graph.features.coordinates),
       embedded(angle_embed_, graph.features.angles), embedded(area_embed_, graph.features.area),
       embedded(normal_embed_, graph.features.normals)},
      2);
  torch::Tensor x = project(project_in_, seen).index({graph.mask});
  const torch::Tensor pairs = graph.pairs_of(0, graph.mask.size(0));
  for (std::size_t i = 0; i < convs_.size(); ++i) {
    x = convs_[i]->forward_reference(x, pairs.select(1, 0), pairs.select(1, 1));
    if (i == 0) x = encoder_norm_->forward(torch::silu(x));
  }
  x = padded(x);
  for (auto& block : encoder_attention_) x = block->forward(x, graph.mask);
  return project(project_dim_codebook_, x);
}

torch::Tensor MeshAutoencoderImpl::decode_reference(const torch::Tensor& quantized,
                                                    const torch::Tensor& mask) {
  torch::Tensor x = quantized;
  for (auto& block : decoder_attention_) x = block->forward(x, mask);
  const torch::Tensor there = mask.unsqueeze(1);
  x = x.transpose(1, 2).masked_fill(there.logical_not(), 0);
  x = torch::silu(decoder_conv_->forward(x));
  x = decoder_norm_->forward(x.transpose(1, 2)).transpose(1, 2);
  for (auto& block : decoders_) x = block->forward_reference(x, there);
  return x.transpose(1, 2);
}

MeshLoss MeshAutoencoderImpl::loss_reference(const Graph& graph) {
  const Encoded encoded = quantize(graph, encode_reference(graph).index({graph.mask}));
  const torch::Tensor logits = project(to_logits_, decode_reference(encoded.features, graph.mask))
                                   .unflatten(-1, {config_.coordinates(), -1});
  const torch::Tensor& there = graph.features.coordinates;
  const torch::Tensor bins =
      torch::zeros({graph.mask.size(0), graph.mask.size(1), there.size(1)}, there.options())
          .masked_scatter(graph.mask.unsqueeze(-1), there);
  MeshLoss loss{.total = {},
                .reconstruction = coordinate_loss_reference(logits, bins, graph.mask, config_),
                .commitment = encoded.losses};
  loss.total = loss.reconstruction + loss.commitment.sum() * config_.commit_loss_weight;
  return loss;
}

}  // namespace millrace
