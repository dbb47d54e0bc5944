// Trackers record the metrics of a run: scalars, pictures and text. The scheduler on rank 0 calls
// every tracker that was added to it.
//
//   std::vector<std::unique_ptr<Tracker>> trackers;
//   trackers.push_back(std::make_unique<TensorBoardTracker>("results"));
//   trackers.push_back(std::make_unique<JsonLinesTracker>("results/metrics.jsonl", first_step));
#pragma once

#include <millrace/pipeline/data/array.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

// Names and values, in display order.
using Logs = std::vector<std::pair<std::string, double>>;

// The value of a name, or `otherwise` if the name is missing.
double value_of(const Logs& logs, const std::string& name, double otherwise = 0);

class Tracker {
 public:
  virtual ~Tracker() = default;
  virtual void scalars(std::int64_t step, const Logs& logs) = 0;
  // `picture` is uint8, [height, width, channels].
  virtual void picture(std::int64_t, const std::string& /*name*/, const Array& /*picture*/) {}
  virtual void text(std::int64_t, const std::string& /*name*/, const std::string& /*text*/) {}
  // The run's options; called once, at the start.
  virtual void hyper_parameters(const std::vector<std::pair<std::string, std::string>>&) {}
  // Writes buffered data to the file; called with every checkpoint.
  virtual void flush() {}
};

// Writes event files for TensorBoard: `tensorboard --logdir results`. Weights & Biases imports them
// with `wandb sync results`.
class TensorBoardTracker : public Tracker {
 public:
  // For a resumed run: TensorBoard discards events of earlier files from `first_step` on.
  explicit TensorBoardTracker(const std::filesystem::path& folder, std::int64_t first_step = 0);

  void scalars(std::int64_t step, const Logs& logs) override;
  void picture(std::int64_t step, const std::string& name, const Array& picture) override;
  void text(std::int64_t step, const std::string& name, const std::string& text) override;
  void hyper_parameters(
      const std::vector<std::pair<std::string, std::string>>& parameters) override;
  void flush() override { file_.flush(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  void write(const std::string& event);

  std::filesystem::path path_;
  std::ofstream file_;
};

// Writes one JSON object per line: {"step": 12, "loss": 0.5, ...}. Numbers are exact: reading them
// gives the same bits. A resumed run deletes the lines from `first_step` on and writes them again.
class JsonLinesTracker : public Tracker {
 public:
  explicit JsonLinesTracker(const std::filesystem::path& path, std::int64_t first_step = 0);

  void scalars(std::int64_t step, const Logs& logs) override;
  void flush() override { file_.flush(); }

 private:
  std::ofstream file_;
};

// Calls a function, for programs that embed a trainer.
class CallbackTracker : public Tracker {
 public:
  using LogFn = std::function<void(std::int64_t step, const Logs& logs)>;
  explicit CallbackTracker(LogFn log_fn) : log_fn_(std::move(log_fn)) {}
  void scalars(std::int64_t step, const Logs& logs) override { log_fn_(step, logs); }

 private:
  LogFn log_fn_;
};

}  // namespace millrace
