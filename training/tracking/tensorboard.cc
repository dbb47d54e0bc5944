// Writes TensorBoard's event files without the protobuf library. The messages used are Event,
// Summary, Summary.Value, Summary.Image, TensorProto and the metadata of the text and hparams
// plugins.
#include "crc32c.h"

#include <millrace/decoders/image/image_write.h>
#include <millrace/pipeline/base/error.h>
#include <millrace/training/tracking/tracker.h>

#include <bit>
#include <chrono>
#include <cstring>

#include <c10/util/StringUtil.h>
#include <unistd.h>

namespace millrace {

namespace {

// A protobuf message under construction. `field` is the field's number in the .proto file.
class Message {
 public:
  Message& number(int field, std::uint64_t value) { return tag(field, 0).varint(value); }
  Message& real(int field, double value) { return tag(field, 1).raw(&value, sizeof value); }
  Message& single(int field, float value) { return tag(field, 5).raw(&value, sizeof value); }
  Message& bytes(int field, std::string_view value) {
    return tag(field, 2).varint(value.size()).raw(value.data(), value.size());
  }
  Message& message(int field, const Message& value) { return bytes(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  Message& tag(int field, int type) {
    return varint(static_cast<std::uint64_t>(field << 3 | type));
  }
  Message& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
    return *this;
  }
  Message& raw(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  std::string bytes_;
};

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Message event(std::int64_t step) {
  Message message;
  message.real(1, now()).number(2, static_cast<std::uint64_t>(step));
  return message;
}

// TFRecord masks its checksums, because the CRC of data that contains CRCs is weak.
std::uint32_t masked(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

Message summary_of(const Message& value) {
  return Message().message(1, value);
}

}  // namespace

TensorBoardTracker::TensorBoardTracker(const std::filesystem::path& folder,
                                       std::int64_t first_step) {
  const auto seconds = static_cast<std::int64_t>(now());
  // TensorBoard reads the files of a folder in name order, so the name starts with the time.
  path_ = folder / c10::str("events.out.tfevents.", seconds, ".millrace.", ::getpid());
  file_.open(path_, std::ios::binary | std::ios::trunc);
  if (!file_) throw Error("cannot be written").at(path_.string());
  write(event(0).bytes(3, "brain.Event:2").bytes());
  if (first_step > 0) {
    // SessionLog START: TensorBoard discards events of earlier files from this step on.
    write(event(first_step).message(7, Message().number(1, 1)).bytes());
  }
}

void TensorBoardTracker::write(const std::string& event) {
  std::string record(8, '\0');
  const std::uint64_t size = event.size();
  std::memcpy(record.data(), &size, sizeof size);
  const std::uint32_t of_size = masked(record), of_event = masked(event);
  record.append(reinterpret_cast<const char*>(&of_size), sizeof of_size);
  record.append(event);
  record.append(reinterpret_cast<const char*>(&of_event), sizeof of_event);
  file_.write(record.data(), static_cast<std::streamsize>(record.size()));
}

void TensorBoardTracker::scalars(std::int64_t step, const Logs& logs) {
  Message summary;
  for (const auto& [name, value] : logs) {
    summary.message(1, Message().bytes(1, name).single(2, static_cast<float>(value)));
  }
  write(event(step).message(5, summary).bytes());
}

void TensorBoardTracker::picture(std::int64_t step, const std::string& name, const Array& picture) {
  std::vector<std::byte> png;
  if (Status status = encode_png(picture, {}, png); !status.ok()) throw status.error();
  Message image;
  image.number(1, static_cast<std::uint64_t>(picture.shape()[0]))
      .number(2, static_cast<std::uint64_t>(picture.shape()[1]))
      .number(3, static_cast<std::uint64_t>(picture.shape()[2]))
      .bytes(4, {reinterpret_cast<const char*>(png.data()), png.size()});
  write(event(step).message(5, summary_of(Message().bytes(1, name).message(4, image))).bytes());
}

void TensorBoardTracker::text(std::int64_t step, const std::string& name, const std::string& text) {
  constexpr std::uint64_t strings = 7;  // DT_STRING
  Message shape = Message().message(2, Message().number(1, 1));
  Message tensor;
  tensor.number(1, strings).message(2, shape).bytes(8, text);
  Message metadata = Message().message(1, Message().bytes(1, "text"));
  write(
      event(step)
          .message(5, summary_of(Message().bytes(1, name).message(9, metadata).message(8, tensor)))
          .bytes());
}

void TensorBoardTracker::hyper_parameters(
    const std::vector<std::pair<std::string, std::string>>& parameters) {
  Message session;  // SessionStartInfo: {hparams = 1, start_time_secs = 5}
  std::string table = "| option | value |\n|---|---|\n";
  for (const auto& [name, value] : parameters) {
    // An entry of map<string, google.protobuf.Value>; all values are strings.
    session.message(1, Message().bytes(1, name).message(2, Message().bytes(3, value)));
    table.append("| ").append(name).append(" | ").append(value).append(" |\n");
  }
  session.real(5, now());
  Message plugin = Message().bytes(1, "hparams").bytes(2, Message().message(3, session).bytes());
  Message value;
  value.bytes(1, "_hparams_/session_start_info").message(9, Message().message(1, plugin));
  write(event(0).message(5, summary_of(value)).bytes());
  text(0, "options", table);
}

}  // namespace millrace
