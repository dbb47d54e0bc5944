#include <millrace/pipeline/base/error.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/quantizers/vector_quantizer.h>

#include <algorithm>

#include <c10/util/StringUtil.h>

namespace millrace {

namespace F = torch::nn::functional;

namespace {

torch::Tensor unit(const torch::Tensor& x) {
  return F::normalize(x, F::NormalizeFuncOptions().dim(-1));
}

}  // namespace

CodebookImpl::CodebookImpl(const VectorQuantizerOptions& options) : options_(options) {
  torch::Tensor codes = torch::zeros({1, options.codebook_size, options.codebook_dim});
  if (!options.kmeans_init) {
    torch::nn::init::kaiming_uniform_(codes);
    if (options.use_cosine_sim) codes = unit(codes);
  }
  // Float instead of bool, as in the package's state_dict.
  initted_ = register_buffer("initted", torch::full({1}, options.kmeans_init ? 0.0F : 1.0F));
  cluster_size_ = register_buffer("cluster_size", torch::zeros({1, options.codebook_size}));
  embed_avg_ = register_buffer("embed_avg", codes.clone());
  embed_ = register_buffer("embed", codes);
}

torch::Tensor CodebookImpl::distances(const torch::Tensor& x, const torch::Tensor& codes) const {
  // As in the package, with a batch dimension for codebooks; a plain matrix product may round
  // differently.
  const torch::Tensor products =
      torch::einsum("hnd,hcd->hnc", {x.unsqueeze(0), codes.unsqueeze(0)})[0];
  if (options_.use_cosine_sim) return products;
  const torch::Tensor squares =
      x.square().sum(-1, true) + codes.square().sum(-1).unsqueeze(0) - 2 * products;
  return -squares.clamp_min(0).sqrt();
}

torch::Tensor CodebookImpl::nearest(const torch::Tensor& x) {
  return distances(x, embed_[0]).argmax(-1);
}

ChosenCodes CodebookImpl::chosen(const torch::Tensor& x) {
  const torch::Tensor similarity = distances(x, embed_[0]);
  ChosenCodes result{.indices = similarity.argmax(-1),
                     .margins = torch::ones({x.size(0)}, x.options())};
  if (similarity.size(1) < 2) return result;
  // The margin is the distance to the plane halfway between the nearest two codes.
  const auto [best, which] = similarity.topk(2, -1);
  const torch::Tensor first = best.select(-1, 0), second = best.select(-1, 1);
  const torch::Tensor two = embed_[0].index_select(0, which.flatten()).unflatten(0, which.sizes());
  const torch::Tensor distance = (two.select(1, 0) - two.select(1, 1)).norm(2, -1).clamp_min(1e-12);
  if (options_.use_cosine_sim) {
    result.margins = (first - second) / distance;
  } else {
    const torch::Tensor length = x.norm(2, -1).clamp_min(1e-12);
    result.margins = (second.square() - first.square()) / (2 * distance * length);
  }
  return result;
}

torch::Tensor CodebookImpl::drawn(const torch::Tensor& x) {
  // Processes some rows at a time to bound memory; all rows at once if a test replays recorded
  // numbers.
  const std::int64_t codes = options_.codebook_size;
  const std::int64_t most = std::max<std::int64_t>((std::int64_t{1} << 22) / codes, 1);
  const std::int64_t rows = draws->replays() ? std::max<std::int64_t>(x.size(0), 1) : most;
  auto log = [](const torch::Tensor& t) { return t.clamp_min(1e-20).log(); };
  std::vector<torch::Tensor> chosen;
  for (std::int64_t begin = 0; begin < x.size(0); begin += rows) {
    const torch::Tensor some = x.narrow(0, begin, std::min(rows, x.size(0) - begin));
    const torch::Tensor noise = draws->uniform({1, some.size(0), codes})[0].to(x.device());
    chosen.push_back((distances(some, embed_[0]) - log(-log(noise))).argmax(-1));
  }
  return chosen.empty() ? torch::zeros({0}, x.options().dtype(torch::kInt64)) : torch::cat(chosen);
}

// Chooses random rows out of the rows of all ranks, as one process with all rows would. Rank 0
// draws the row numbers; each rank contributes its rows; all ranks get the same result.
torch::Tensor CodebookImpl::sample(const torch::Tensor& x, std::int64_t count) const {
  torch::Tensor rows = torch::zeros({ranks.world}, torch::kInt64);
  rows[ranks.rank] = x.size(0);
  ranks.sum(rows);
  const std::int64_t total_rows = rows.sum().item<std::int64_t>();
  torch::Tensor chosen = torch::zeros({count}, torch::kInt64);
  if (ranks.rank == 0) {
    chosen.copy_(total_rows >= count ? draws->permutation(total_rows).slice(0, 0, count)
                                     : draws->integers(total_rows, {count}));
  }
  ranks.sum(chosen);
  chosen -= rows.slice(0, 0, ranks.rank).sum();
  const torch::Tensor mine = chosen.ge(0).logical_and(chosen.lt(x.size(0))).nonzero().squeeze(-1);
  const auto from = chosen.index_select(0, mine).to(x.device());
  torch::Tensor all = torch::zeros({count, x.size(1)}, x.options());
  all.index_copy_(0, mine.to(x.device()), x.index_select(0, from));
  ranks.sum(all);
  return all;
}

void CodebookImpl::start(const torch::Tensor& x) {
  if (initted_.item<float>() != 0) return;
  torch::Tensor means = sample(x, options_.codebook_size);
  torch::Tensor counts;
  for (int i = 0; i < options_.kmeans_iters; ++i) {
    const torch::Tensor buckets = distances(x, means).argmax(-1);
    counts = torch::bincount(buckets, {}, options_.codebook_size).to(x.scalar_type());
    torch::Tensor sums = torch::zeros_like(means).index_add_(0, buckets, x);
    ranks.sum(counts);
    ranks.sum(sums);
    torch::Tensor next = sums / counts.clamp_min(1).unsqueeze(-1);
    if (options_.use_cosine_sim) next = unit(next);
    means = torch::where((counts == 0).unsqueeze(-1), means, next);
  }
  embed_.copy_(means.unsqueeze(0));
  embed_avg_.copy_((means * counts.unsqueeze(-1)).unsqueeze(0));
  cluster_size_.copy_(counts.unsqueeze(0));
  initted_.fill_(1);
}

torch::Tensor CodebookImpl::sums_by_code(const torch::Tensor& x, const torch::Tensor& indices) {
  // Rounds as in the package; but its one-hot table would be too large for large codebooks.
  constexpr std::int64_t max_table = std::int64_t{1} << 22;
  if (indices.numel() * options_.codebook_size > max_table) {
    return torch::zeros_like(embed_[0]).index_add_(0, indices, x);
  }
  const torch::Tensor chosen = torch::one_hot(indices, options_.codebook_size).to(x.scalar_type());
  return torch::einsum("hnd,hnc->hcd", {x.unsqueeze(0), chosen.unsqueeze(0)})[0].contiguous();
}

void CodebookImpl::follow(const torch::Tensor& x, const torch::Tensor& indices,
                          const torch::Tensor& fresh) {
  torch::Tensor counts = torch::bincount(indices, {}, options_.codebook_size).to(x.scalar_type());
  torch::Tensor sums = sums_by_code(x, indices);
  ranks.sum(counts);
  ranks.sum(sums);
  cluster_size_.lerp_(counts.unsqueeze(0), 1 - options_.decay);
  embed_avg_.lerp_(sums.unsqueeze(0), 1 - options_.decay);
  const torch::Tensor total = cluster_size_.sum(-1, true);
  const torch::Tensor smooth =
      (cluster_size_ + options_.eps) /
      (total + static_cast<double>(options_.codebook_size) * options_.eps) * total;
  torch::Tensor codes = embed_avg_ / smooth.unsqueeze(-1);
  // Normalized twice, as in the package: a difference in the last bit can change the chosen code.
  if (options_.use_cosine_sim) codes = unit(unit(codes));
  embed_.copy_(codes);
  replace_dead(fresh.defined() ? fresh : x);
}

void CodebookImpl::replace_dead(const torch::Tensor& x) {
  const double threshold = options_.threshold_ema_dead_code;
  if (threshold == 0) return;
  const torch::Tensor dead = (cluster_size_[0] < threshold).nonzero().squeeze(-1);
  if (dead.numel() == 0) return;
  torch::Tensor fresh = sample(options_.use_cosine_sim ? unit(x) : x, dead.numel());
  embed_[0].index_copy_(0, dead, fresh);
  embed_avg_[0].index_copy_(0, dead, fresh * threshold);
  cluster_size_[0].index_fill_(0, dead, threshold);
}

VectorQuantizerImpl::VectorQuantizerImpl(const VectorQuantizerOptions& options)
    : options_(options) {
  auto& o = options_;
  if (o.codebook_dim == 0) o.codebook_dim = o.dim;
  if (o.dim < 1 || o.codebook_size < 1 || o.codebook_dim < 1) {
    throw Error(c10::str("dim, codebook_size and codebook_dim must be at least 1, but are ", o.dim,
                         ", ", o.codebook_size, " and ", o.codebook_dim))
        .kind(ErrorKind::usage);
  }
  if (o.codebook_dim != o.dim) {
    project_in_ = register_module("project_in", torch::nn::Linear(o.dim, o.codebook_dim));
    project_out_ = register_module("project_out", torch::nn::Linear(o.codebook_dim, o.dim));
  }
  codebook_ = register_module("_codebook", Codebook(o));
}

torch::Tensor VectorQuantizerImpl::vectors(const torch::Tensor& features) {
  torch::Tensor x = features.to(torch::kFloat32).permute({0, 2, 3, 1}).flatten(1, 2);
  if (project_in_) x = project(project_in_, x);
  return options_.use_cosine_sim ? unit(x) : x;
}

ChosenCodes VectorQuantizerImpl::choose(const torch::Tensor& features) {
  const torch::Tensor x = vectors(features).flatten(0, 1);
  codebook_->start(x);
  const ChosenCodes flat = codebook_->chosen(x);
  const std::vector<std::int64_t> shape{features.size(0), features.size(2), features.size(3)};
  return {.indices = flat.indices.reshape(shape), .margins = flat.margins.reshape(shape)};
}

Quantized VectorQuantizerImpl::forward(const torch::Tensor& features) {
  // Always in float32, even under autocast.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const std::int64_t batch = features.size(0), height = features.size(2), width = features.size(3);
  const torch::Tensor x = vectors(features);
  Quantized result;
  torch::Tensor codes;
  {
    torch::NoGradGuard no_grad;
    const torch::Tensor flat = x.detach().reshape({-1, x.size(-1)});
    codebook_->start(flat);
    const torch::Tensor indices = codebook_->nearest(flat);
    codes = codebook_->codes().index_select(0, indices).reshape(x.sizes());
    // The output uses the codes from before the update.
    if (is_training()) codebook_->follow(flat, indices);
    result.indices = indices.reshape({batch, height, width});
  }
  result.loss = torch::zeros({}, x.options());
  if (is_training()) {
    // Straight-through estimator before the loss, so that autograd sums gradients in the package's
    // order.
    const torch::Tensor nearest = codes;
    codes = x + (nearest - x).detach();
    result.commitment = F::mse_loss(nearest, x);
    result.loss = result.commitment * options_.commitment_weight;
  }
  if (project_out_) codes = project(project_out_, codes);
  // With this order of operations a batch of one is channels-last too, as in the package. The
  // strides decide in which order the following convolutions sum.
  result.features = codes.unflatten(1, {height, width}).permute({0, 3, 1, 2});
  return result;
}

torch::Tensor VectorQuantizerImpl::decode(const torch::Tensor& indices) {
  torch::Tensor codes = codebook_->codes().index_select(0, indices.flatten());
  if (project_out_) codes = project(project_out_, codes);
  return codes.reshape({indices.size(0), indices.size(1), indices.size(2), -1}).movedim(-1, 1);
}

}  // namespace millrace
