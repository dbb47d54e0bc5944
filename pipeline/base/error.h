// The only error type. Tasks and decoders return it as a value (Status); Loader::next() and
// programs throw it. It says what went wrong, in which file, at which stage, and what to do:
//
//   Status status = Error("cannot decode (invalid NAL unit)").at("clips/a.mp4").stage("video")
//       .hint("Check the file with: inspect clips/a.mp4");
//   if (!status.ok()) throw status.error();
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace millrace {

enum class ErrorKind {
  data,       // a sample is bad: ErrorPolicy decides what the loader does
  usage,      // wrong options or arguments: always thrown
  cancelled,  // after Loader::cancel()
  stalled,    // the wait for a batch exceeded LoaderOptions::stall_timeout
};

class Error : public std::exception {
 public:
  explicit Error(std::string reason) : reason_(std::move(reason)) { render(); }

  // Each returns the error itself, so one expression can build and return or throw it.
  Error& at(std::string source) & { return set(source_, std::move(source)); }
  Error& stage(std::string name) & { return set(stage_, std::move(name)); }
  Error& hint(std::string advice) & { return set(hint_, std::move(advice)); }
  Error& kind(ErrorKind kind) & { return kind_ = kind, *this; }
  // Marks a failure that may not happen again, e.g. of the network: the sample is replaced in this
  // epoch and tried again in the next.
  Error& transient() & { return transient_ = true, *this; }
  Error&& at(std::string source) && { return std::move(at(std::move(source))); }
  Error&& stage(std::string name) && { return std::move(stage(std::move(name))); }
  Error&& hint(std::string advice) && { return std::move(hint(std::move(advice))); }
  Error&& kind(ErrorKind which) && { return std::move(kind(which)); }
  Error&& transient() && { return std::move(transient()); }

  const std::string& reason() const { return reason_; }
  const std::string& source() const { return source_; }
  const std::string& stage() const { return stage_; }
  const std::string& hint() const { return hint_; }
  ErrorKind kind() const { return kind_; }
  bool is_transient() const { return transient_; }

  // "clips/a.mp4: video: cannot decode (invalid NAL unit). Check the file with: ..."
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Error& set(std::string& member, std::string value) {
    member = std::move(value);
    render();
    return *this;
  }
  void render() {
    message_.clear();
    if (!source_.empty()) message_ += source_ + ": ";
    if (!stage_.empty()) message_ += stage_ + ": ";
    message_ += reason_;
    if (!hint_.empty()) message_ += ". " + hint_;
  }

  std::string reason_, source_, stage_, hint_, message_;
  ErrorKind kind_ = ErrorKind::data;
  bool transient_ = false;
};

// For wrong options and arguments: programs end with exit code 2.
[[noreturn]] inline void throw_usage_error(std::string reason) {
  throw Error(std::move(reason)).kind(ErrorKind::usage);
}

// Success, or an Error. One pointer wide, so that success costs nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::make_unique<Error>(std::move(error))) {}  // NOLINT: implicit

  bool ok() const { return error_ == nullptr; }
  const Error& error() const { return *error_; }
  Error& error() { return *error_; }

 private:
  std::unique_ptr<Error> error_;
};

}  // namespace millrace
