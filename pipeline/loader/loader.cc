#include "ring.h"

#include <millrace/pipeline/loader/loader.h>

#include <utility>

namespace millrace {

Loader::Loader(AnyDataset dataset, LoaderOptions options)
    : ring_(std::make_shared<detail::Ring>(std::move(dataset), std::move(options))) {}
Loader::~Loader() {
  if (ring_) ring_->close();
}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&& other) noexcept {
  if (ring_ && ring_ != other.ring_) ring_->close();
  ring_ = std::move(other.ring_);
  return *this;
}

std::optional<Batch> Loader::next() {
  auto data = ring_->next();
  if (data == nullptr) return std::nullopt;
  return Batch(std::move(data));
}
Loader::Cycle Loader::cycle() {
  ring_->cycle();
  return Cycle(*this);
}
Position Loader::position() const {
  return ring_->position();
}
void Loader::seek(const Position& position) {
  ring_->seek(position);
}
void Loader::cancel() {
  ring_->cancel();
}
std::int64_t Loader::batches_per_epoch() const {
  return ring_->parts.sampler.steps_per_epoch();
}
LoaderStats Loader::stats() const {
  return ring_->stats();
}
const Ledger& Loader::ledger() const {
  return ring_->parts.ledger;
}
const Schema& Loader::schema() const {
  return ring_->parts.schema;
}
std::string Loader::dump_graph() const {
  return ring_->slots[0]->dump_graph();
}
void Loader::write_trace(const std::filesystem::path& path) const {
  ring_->parts.clock.write_trace(path);
}

}  // namespace millrace
