#include "archive.h"

#include "pickle_writer.h"
#include "unpickler.h"

#include <millrace/pipeline/base/error.h>

#include <new>

namespace millrace::detail {

namespace {

constexpr std::size_t max_pickle = std::size_t{256} << 20;

}  // namespace

void write_archive(const Value& value, const ZipWriter::Sink& sink) {
  const Pickle pickle = PickleWriter::write(value);
  ZipWriter archive("archive", sink);
  archive.add("data.pkl", pickle.bytes);
  archive.add("byteorder", "little");
  for (std::size_t i = 0; i < pickle.storages.size(); ++i) {
    archive.add("data/" + std::to_string(i), pickle.storages[i].bytes());
  }
  archive.finish();
}

Value read_archive(const ZipReader& archive) {
  if (!archive.has("data.pkl")) throw Error("is no checkpoint: it has no data.pkl");
  // Longer than the two orders that exist: not read into memory to be compared.
  if (archive.has("byteorder") &&
      (archive.size("byteorder") > 6 || archive.read("byteorder") != "little")) {
    throw Error("was written on a big-endian machine");
  }
  if (archive.has("constants.pkl")) {
    throw Error("is a TorchScript program, not a checkpoint")
        .hint("Save the state in Python: torch.save(model.state_dict(), path)");
  }
  if (archive.size("data.pkl") > max_pickle) throw Error("has a pickle of more than 256 MB");
  try {
    const std::string pickle = archive.read("data.pkl");
    return Unpickler(pickle,
                     [&](const std::string& record) {
                       TensorStorage storage = TensorStorage::allocate(archive.size(record));
                       archive.read(record, storage.data());
                       return storage;
                     })
        .read();
  } catch (const std::bad_alloc&) {
    throw Error("does not fit into memory");
  }
}

}  // namespace millrace::detail
