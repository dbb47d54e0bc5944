// A data set for tests: sample i is the number i, a keyed random number, and a ragged list of i % 5
// elements. It can be slow, fail, or count.
#pragma once

#include <millrace/pipeline/base/log.h>
#include <millrace/pipeline/data/dataset.h>
#include <millrace/pipeline/loader/loader.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace millrace {

class Numbers : public Dataset {
 public:
  explicit Numbers(std::int64_t size) : size_(size) {}

  std::int64_t size() const override { return size_; }
  const Schema& schema() const override { return schema_; }
  Status load(std::int64_t index, const LoadContext& context, Sample& sample) const override {
    loads->fetch_add(1);
    if (before_load) {
      if (Status status = before_load(index, context); !status.ok()) return status;
    }
    sample.out("number").as<std::int64_t>()[0] = index;
    sample.out("noise").as<std::uint32_t>()[0] = context.random("noise")();
    auto ragged = sample.resize("ragged", {index % 5}).as<std::int32_t>();
    for (std::size_t i = 0; i < ragged.size(); ++i) {
      ragged[i] = static_cast<std::int32_t>(index * 10 + static_cast<std::int64_t>(i));
    }
    sample.set_text("name", "n" + std::to_string(index));
    return {};
  }

  std::function<Status(std::int64_t, const LoadContext&)> before_load;
  std::shared_ptr<std::atomic<std::int64_t>> loads = std::make_shared<std::atomic<std::int64_t>>(0);

 private:
  std::int64_t size_;
  Schema schema_{{.name = "number", .dtype = DType::int64, .shape = {}},
                 {.name = "noise", .dtype = DType::uint32, .shape = {}},
                 {.name = "ragged", .dtype = DType::int32, .shape = {-1}},
                 text_field("name")};
};

// Everything a consumer can see of a batch, as one string: two batches are equal if these are.
inline std::string fingerprint(const Batch& batch) {
  std::string text = "e" + std::to_string(batch.position().epoch) + "@" +
                     std::to_string(batch.position().next) + ":";
  auto numbers = batch["number"].as<const std::int64_t>();
  auto noise = batch["noise"].as<const std::uint32_t>();
  auto ragged = batch.list("ragged");
  auto names = batch.texts("name");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    text += " " + std::to_string(numbers[i]) + "/" + std::to_string(noise[i]) + "/" +
            std::string(names[i]) + "[";
    for (std::int32_t value : ragged[i].as<const std::int32_t>())
      text += std::to_string(value) + ",";
    text += "]";
  }
  return text;
}

inline std::vector<std::string> fingerprints(Loader& loader) {
  std::vector<std::string> all;
  for (const Batch& batch : loader) all.push_back(fingerprint(batch));
  return all;
}

inline std::vector<std::int64_t> numbers_in(const Batch& batch) {
  auto numbers = batch["number"].as<const std::int64_t>();
  return {numbers.begin(), numbers.end()};
}

// Captures the log for one test.
class CapturedLog {
 public:
  CapturedLog() {
    set_log_sink([this](LogLevel, const std::string& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
    });
  }
  ~CapturedLog() { set_log_sink({}); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  std::string text() const {
    std::lock_guard lock(mutex_);
    std::string all;
    for (const std::string& line : lines_) all += line + "\n";
    return all;
  }
  int count(const std::string& part) const {
    std::lock_guard lock(mutex_);
    int n = 0;
    for (const std::string& line : lines_) n += line.find(part) != std::string::npos ? 1 : 0;
    return n;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

// What an expression throws, as text; empty if nothing.
template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace millrace
