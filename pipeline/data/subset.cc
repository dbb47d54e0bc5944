#include <millrace/pipeline/data/subset.h>

#include <numeric>

namespace millrace {

Subset::Subset(AnyDataset dataset, std::vector<std::int64_t> indices)
    : Adapter(std::move(dataset)),
      indices_(std::make_shared<const std::vector<std::int64_t>>(std::move(indices))) {
  for (std::int64_t index : *indices_) {
    if (index < 0 || index >= inner().size()) {
      throw Error("a subset names sample " + std::to_string(index) + ", but the dataset has " +
                  std::to_string(inner().size()))
          .kind(ErrorKind::usage);
    }
  }
}

std::vector<Subset> random_parts(AnyDataset dataset, const std::vector<std::int64_t>& lengths,
                                 std::uint64_t seed) {
  std::int64_t total = 0;
  for (std::int64_t length : lengths) {
    if (length < 0) {
      throw Error("random_parts: a part cannot have " + std::to_string(length) + " samples")
          .kind(ErrorKind::usage);
    }
    total += length;
  }
  if (total != dataset->size()) {
    throw Error("random_parts: the parts have " + std::to_string(total) +
                " samples in all, but the dataset has " + std::to_string(dataset->size()))
        .kind(ErrorKind::usage);
  }
  std::vector<std::int64_t> order = torch_randperm(total, seed);
  std::vector<Subset> parts;
  auto from = order.begin();
  for (std::int64_t length : lengths) {
    parts.emplace_back(dataset, std::vector<std::int64_t>(from, from + length));
    from += length;
  }
  return parts;
}

Split random_split(AnyDataset dataset, SplitOptions options) {
  std::int64_t size = dataset->size();
  if (!(options.valid_fraction > 0 && options.valid_fraction < 1)) {
    throw Error("random_split: valid_fraction must lie between 0 and 1, but is " +
                std::to_string(options.valid_fraction))
        .kind(ErrorKind::usage);
  }
  auto train = static_cast<std::int64_t>((1 - options.valid_fraction) * static_cast<double>(size));
  std::int64_t valid = size - train;
  if (train == 0 || valid == 0) {
    throw Error("random_split: valid_fraction " + std::to_string(options.valid_fraction) + " of " +
                std::to_string(size) + " samples gives " + std::to_string(train) +
                " for training and " + std::to_string(valid) + " for validation; neither may be 0")
        .kind(ErrorKind::usage);
  }
  auto parts = random_parts(std::move(dataset), {train, valid}, options.seed);
  return {std::move(parts[0]), std::move(parts[1])};
}

}  // namespace millrace
